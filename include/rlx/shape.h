#pragma once

#include <initializer_list>
#include <string>
#include <vector>

#include "rlx/dim.h"
#include "rlx/dtype.h"

namespace rlx {
inline namespace v0 {

/// The extents of a tensor, outermost first; rank 0 is a scalar.
class RLX_EXPORT Shape {
 public:
  Shape() = default;
  Shape(std::initializer_list<Dim> dims) : dims_(dims) {}
  explicit Shape(std::vector<Dim> dims) : dims_(std::move(dims)) {}
  static Shape of(std::span<const std::int64_t> extents);

  std::size_t rank() const noexcept { return dims_.size(); }
  Dim operator[](std::size_t axis) const noexcept { return dims_[axis]; }
  Dim& operator[](std::size_t axis) noexcept { return dims_[axis]; }
  auto begin() const noexcept { return dims_.begin(); }
  auto end() const noexcept { return dims_.end(); }
  Dim back() const noexcept { return dims_.back(); }
  void push_back(Dim d) { dims_.push_back(d); }
  const std::vector<Dim>& dims() const noexcept { return dims_; }

  bool is_static() const noexcept;
  /// The extents, if all of them are constants.
  std::optional<std::vector<std::int64_t>> static_extents() const;
  /// The product of the extents.
  Dim element_count() const;
  std::vector<std::int64_t> evaluate(const DimBinding& sizes) const;

  bool operator==(const Shape&) const = default;

 private:
  std::vector<Dim> dims_;
};

struct TensorType {
  DType dtype = DType::f32;
  Shape shape;

  std::size_t rank() const noexcept { return shape.rank(); }
  bool operator==(const TensorType&) const = default;
};

RLX_EXPORT std::string to_string(const Shape& shape);      ///< "[batch, 784]"
RLX_EXPORT std::string to_string(const TensorType& type);  ///< "f32[batch, 784]"

}  // namespace v0
}  // namespace rlx
