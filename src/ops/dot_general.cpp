#include "ops/dot_general.h"

#include <fmt/format.h>

#include <algorithm>

#include "ir/node.h"
#include "ops/host_array.h"
#include "ops/infer.h"
#include "rlx/ops.h"

namespace rlx {
namespace {

using Axes = std::vector<std::int64_t>;

bool holds(const Axes& axes, std::int64_t axis) {
  return std::ranges::find(axes, axis) != axes.end();
}

Axes free_axes(std::size_t rank, const Axes& batch, const Axes& contracting) {
  Axes free;
  for (std::int64_t axis = 0; axis < static_cast<std::int64_t>(rank); ++axis) {
    if (!holds(batch, axis) && !holds(contracting, axis)) free.push_back(axis);
  }
  return free;
}

void require_disjoint(const Axes& batch, const Axes& contracting, std::size_t rank) {
  Axes all = batch;
  all.insert(all.end(), contracting.begin(), contracting.end());
  require_axes(all, rank);
}

bool is_byte(DType d) { return d == DType::i8 || d == DType::u8; }

DType natural_result(DType a, DType b) { return is_byte(a) && is_byte(b) ? DType::i32 : a; }

std::size_t at(std::int64_t axis) { return static_cast<std::size_t>(axis); }

}  // namespace

TensorType infer(const DotGeneral& op, InferArgs& in) {
  require_number(in, 0);
  require_number(in, 1);
  const DType a = in[0].dtype;
  const DType b = in[1].dtype;
  if (!(is_byte(a) && is_byte(b))) require_same_dtype(in, 0, 1);
  if (op.result != natural_result(a, b)) {
    throw InvalidArgument(fmt::format("of {} and {} the result is {}, not {}", name(a), name(b),
                                      name(natural_result(a, b)), name(op.result)));
  }
  require_disjoint(op.a_batch, op.a_contracting, in[0].rank());
  require_disjoint(op.b_batch, op.b_contracting, in[1].rank());
  if (op.a_batch.size() != op.b_batch.size() ||
      op.a_contracting.size() != op.b_contracting.size()) {
    throw InvalidArgument("both operands have as many batch and contracted axes");
  }
  Shape y;
  for (std::size_t i = 0; i < op.a_batch.size(); ++i) {
    y.push_back(in.same(in[0].shape[at(op.a_batch[i])], in[1].shape[at(op.b_batch[i])],
                        fmt::format("batch axis {}", i)));
  }
  for (std::size_t i = 0; i < op.a_contracting.size(); ++i) {
    in.same(in[0].shape[at(op.a_contracting[i])], in[1].shape[at(op.b_contracting[i])],
            fmt::format("inner dimensions of {} and {}", to_string(in[0].shape),
                        to_string(in[1].shape)));
  }
  for (const std::int64_t axis : free_axes(in[0].rank(), op.a_batch, op.a_contracting))
    y.push_back(in[0].shape[at(axis)]);
  for (const std::int64_t axis : free_axes(in[1].rank(), op.b_batch, op.b_contracting))
    y.push_back(in[1].shape[at(axis)]);
  return {op.result, std::move(y)};
}

namespace {

// Extents and strides of some axes of an array.
struct Part {
  std::vector<std::int64_t> dims, strides;
  Part(const HostArray& x, const Axes& axes) {
    const auto all = row_major_strides(x.dims());
    for (const std::int64_t axis : axes) {
      dims.push_back(x.dims()[at(axis)]);
      strides.push_back(all[at(axis)]);
    }
  }
};

std::vector<std::size_t> offsets(const Part& part) {
  std::vector<std::size_t> all;
  for_each_index(part.dims, [&](std::span<const std::int64_t> index, std::int64_t) {
    all.push_back(static_cast<std::size_t>(offset_of(index, part.strides)));
  });
  return all;
}

template <class T>
T multiply_add(T total, T a, T b) {
  if constexpr (std::is_integral_v<T>) {
    return static_cast<T>(static_cast<std::uint64_t>(total) +
                          static_cast<std::uint64_t>(a) * static_cast<std::uint64_t>(b));
  } else {
    return total + a * b;
  }
}

// Integer operands as int64, whatever their signs: products of bytes fit.
template <class T>
T element(const HostArray& x, std::size_t i) {
  if constexpr (std::is_integral_v<T>) {
    return static_cast<T>(x.index(i));
  } else {
    return x.as<T>()[i];
  }
}

}  // namespace

void evaluate(const DotGeneral& op, Evaluation& run) {
  const HostArray& a = run.in(0);
  const HostArray& b = run.in(1);
  HostArray& y = run.out();
  const auto a_batch = offsets(Part(a, op.a_batch));
  const auto b_batch = offsets(Part(b, op.b_batch));
  const auto a_free = offsets(Part(a, free_axes(a.rank(), op.a_batch, op.a_contracting)));
  const auto b_free = offsets(Part(b, free_axes(b.rank(), op.b_batch, op.b_contracting)));
  const auto a_inner = offsets(Part(a, op.a_contracting));
  const auto b_inner = offsets(Part(b, op.b_contracting));
  visit_numbers(y, [&](auto zero) {
    using T = decltype(zero);
    std::size_t to = 0;
    for (std::size_t batch = 0; batch < a_batch.size(); ++batch) {
      for (const std::size_t m : a_free) {
        for (const std::size_t n : b_free) {
          T total = 0;
          for (std::size_t k = 0; k < a_inner.size(); ++k) {
            total = multiply_add(total, element<T>(a, a_batch[batch] + m + a_inner[k]),
                                 element<T>(b, b_batch[batch] + n + b_inner[k]));
          }
          y.as<T>()[to++] = total;
        }
      }
    }
  });
}

constinit const OpDef dot_general_def = define<DotGeneral>({
    .name = "dot_general",
    .summary = "Sums of products over the contracted axes; result axes are batch, free axes of a, "
               "free axes of b.",
    .inputs = {"a", "b"},
    .outputs = {"y"},
});

inline namespace v0 {

Value dot_general(Value a, Value b, std::vector<std::int64_t> a_batch,
                  std::vector<std::int64_t> b_batch, std::vector<std::int64_t> a_contracting,
                  std::vector<std::int64_t> b_contracting, std::optional<DType> result) {
  DotGeneral op{normal_axes(a_batch, a.rank()), normal_axes(b_batch, b.rank()),
                normal_axes(a_contracting, a.rank()), normal_axes(b_contracting, b.rank()),
                result.value_or(natural_result(a.dtype(), b.dtype()))};
  return a.graph().add1(make_op(dot_general_def, std::move(op)), {a, b});
}

namespace {

// The axes before the last two.
Shape batch_shape(Value x) {
  Shape batch;
  for (std::size_t axis = 0; axis + 2 < x.rank(); ++axis) batch.push_back(x.shape()[axis]);
  return batch;
}

Dim broadcast_extent(Dim a, Dim b) {
  if (a == Dim(1)) return b;
  return b == Dim(1) || b.complexity() >= a.complexity() ? a : b;
}

Value with_batch(Value x, const Shape& batch) {
  Shape to = batch;
  to.push_back(x.shape()[x.rank() - 2]);
  to.push_back(x.shape().back());
  return x.shape() == to ? x : broadcast(x, to);
}

// Both operands have batch axes: those that differ are stretched.
Value batched_matmul(Value a, Value b) {
  const Shape x = batch_shape(a);
  const Shape y = batch_shape(b);
  Shape batch;
  const std::size_t rank = std::max(x.rank(), y.rank());
  for (std::size_t axis = 0; axis < rank; ++axis) {
    const Dim p = axis + x.rank() >= rank ? x[axis + x.rank() - rank] : Dim(1);
    const Dim q = axis + y.rank() >= rank ? y[axis + y.rank() - rank] : Dim(1);
    batch.push_back(broadcast_extent(p, q));
  }
  Axes axes(rank);
  for (std::size_t i = 0; i < rank; ++i) axes[i] = static_cast<std::int64_t>(i);
  return dot_general(with_batch(a, batch), with_batch(b, batch), axes, axes, {-1}, {-2});
}

}  // namespace

Value matmul(Value a, Value b) {
  if (a.rank() == 0 || b.rank() == 0)
    throw ShapeError("matmul takes operands of rank 1 or more, found a scalar");
  if (a.rank() == 1 && b.rank() > 2) {
    // [k] times [..., k, n]: the vector is a row of its own.
    return squeeze(matmul(unsqueeze(a, {0}), b), {-2});
  }
  if (a.rank() <= 2 && b.rank() <= 2)
    return dot_general(a, b, {}, {}, {-1}, {b.rank() == 2 ? -2 : -1});
  if (b.rank() <= 2) return dot_general(a, b, {}, {}, {-1}, {b.rank() == 2 ? -2 : -1});
  return batched_matmul(a, b);
}

Value linear(Value x, Value w, Value bias) {
  const Value y = matmul(x, w);
  return bias ? y + bias : y;
}

}  // namespace v0
}  // namespace rlx
