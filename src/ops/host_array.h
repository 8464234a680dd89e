#pragma once

#include <complex>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "base/check.h"
#include "ir/op.h"
#include "rlx/tensor.h"

namespace rlx {

/// A tensor as reference evaluations see it. It stores the declared dtype's values in a wide type
/// (double, int64, uint64 for unsigned and bool, complex double, string) and rounds to the dtype
/// once per node.
class HostArray {
 public:
  using Dims = Tensor::Dims;
  using Storage =
      std::variant<std::vector<double>, std::vector<std::int64_t>, std::vector<std::uint64_t>,
                   std::vector<std::complex<double>>, std::vector<std::string>>;

  HostArray() : HostArray(DType::f32, {0}) {}
  /// Zeros.
  HostArray(DType dtype, Dims dims);
  explicit HostArray(const Tensor& tensor);
  /// Rounds to the dtype: to nearest even for floats, modulo 2^bits for integers.
  Tensor to_tensor() const;

  DType dtype() const { return dtype_; }
  const Dims& dims() const { return dims_; }
  std::size_t rank() const { return dims_.size(); }
  std::size_t size() const { return size_; }

  template <class T>
  std::vector<T>& as() {
    return std::get<std::vector<T>>(values_);
  }
  template <class T>
  const std::vector<T>& as() const {
    return std::get<std::vector<T>>(values_);
  }
  Storage& values() { return values_; }
  const Storage& values() const { return values_; }
  /// Element i of an integer array.
  std::int64_t index(std::size_t i) const;
  /// Element i of any array of real numbers.
  double real(std::size_t i) const;

 private:
  DType dtype_;
  Dims dims_;
  std::size_t size_;
  Storage values_;
};

/// Calls f(std::vector<T>&) for the array's wide type T; with `visit_numbers`, strings are an
/// internal error.
template <class F>
decltype(auto) visit_numbers(const HostArray& x, F&& f) {
  return std::visit(
      [&](const auto& values) {
        using T = typename std::decay_t<decltype(values)>::value_type;
        if constexpr (std::is_same_v<T, std::string>) {
          fail_assertion("numeric dtype", __FILE__, __LINE__);
        } else {
          f(T{});
        }
      },
      x.values());
}

/// As `visit_numbers`, for double, int64 and uint64 only.
template <class F>
void visit_reals(const HostArray& x, F&& f) {
  visit_numbers(x, [&](auto zero) {
    if constexpr (std::is_same_v<decltype(zero), std::complex<double>>) {
      fail_assertion("real dtype", __FILE__, __LINE__);
    } else {
      f(zero);
    }
  });
}

/// One reference evaluation: inputs (null where absent) and outputs of the inferred dtype and
/// extents, zero-filled.
struct Evaluation {
  std::span<const HostArray* const> inputs;
  std::span<HostArray> outputs;
  const DimBinding& sizes;
  /// Runs a subgraph on its inputs in order.
  std::function<std::vector<HostArray>(const Graph&, std::vector<HostArray>)> run_graph;

  bool has(std::size_t i) const { return i < inputs.size() && inputs[i] != nullptr; }
  const HostArray& in(std::size_t i) const { return *inputs[i]; }
  HostArray& out(std::size_t i = 0) const { return outputs[i]; }
};

// ---- walking over elements

/// Strides in elements, row-major.
std::vector<std::int64_t> row_major_strides(std::span<const std::int64_t> dims);
/// Strides of `dims` seen as `target`: 0 along stretched axes. Precondition: it broadcasts.
std::vector<std::int64_t> broadcast_strides(std::span<const std::int64_t> dims,
                                            std::span<const std::int64_t> target);

/// Calls f(coordinates, linear index) for each element of `dims` in row-major order.
template <class F>
void for_each_index(std::span<const std::int64_t> dims, F&& f) {
  std::int64_t count = 1;
  for (const std::int64_t d : dims) count *= d;
  std::vector<std::int64_t> at(dims.size(), 0);
  for (std::int64_t i = 0; i < count; ++i) {
    f(std::span<const std::int64_t>(at), i);
    for (std::size_t axis = dims.size(); axis-- > 0;) {
      if (++at[axis] < dims[axis]) break;
      at[axis] = 0;
    }
  }
}

inline std::int64_t offset_of(std::span<const std::int64_t> at,
                              std::span<const std::int64_t> strides) {
  std::int64_t offset = 0;
  for (std::size_t i = 0; i < at.size(); ++i) offset += at[i] * strides[i];
  return offset;
}

/// A shape folded around one axis: [outer, length, inner].
struct AxisView {
  std::int64_t outer = 1, length = 1, inner = 1;
  std::int64_t at(std::int64_t o, std::int64_t k, std::int64_t i) const {
    return (o * length + k) * inner + i;
  }
};
AxisView fold_axis(std::span<const std::int64_t> dims, std::int64_t axis);

/// A negative index counts from the end once; out of range throws `IndexError` with index and
/// extent.
std::int64_t checked_index(std::int64_t index, std::int64_t extent, std::string_view what);

}  // namespace rlx
