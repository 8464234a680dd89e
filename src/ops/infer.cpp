#include "ops/infer.h"

#include <fmt/format.h>

#include <algorithm>

namespace rlx {
namespace {

[[noreturn]] void wrong_dtype(const InferArgs& in, std::size_t i, std::string_view expected) {
  throw InvalidArgument(
      fmt::format("{} is {}, expected {}", in.label(i), name(in[i].dtype), expected));
}

}  // namespace

void require_dtype(const InferArgs& in, std::size_t i, DType expected) {
  if (in[i].dtype != expected) wrong_dtype(in, i, name(expected));
}

void require_floating(const InferArgs& in, std::size_t i) {
  if (!is_floating(in[i].dtype)) wrong_dtype(in, i, "a floating type");
}

void require_number(const InferArgs& in, std::size_t i) {
  const DType d = in[i].dtype;
  if (!is_floating(d) && !is_integer(d) && !is_complex(d)) wrong_dtype(in, i, "a number");
}

void require_index(const InferArgs& in, std::size_t i) {
  if (in[i].dtype != DType::i32 && in[i].dtype != DType::i64) wrong_dtype(in, i, "i32 or i64");
}

void require_rank(const InferArgs& in, std::size_t i, std::size_t rank) {
  if (in[i].rank() == rank) return;
  throw ShapeError(
      fmt::format("{} is {}, expected rank {}", in.label(i), to_string(in[i].shape), rank));
}

void require_rank_at_least(const InferArgs& in, std::size_t i, std::size_t rank) {
  if (in[i].rank() >= rank) return;
  throw ShapeError(
      fmt::format("{} is {}, expected rank {} or more", in.label(i), to_string(in[i].shape), rank));
}

void require_same_dtype(const InferArgs& in, std::size_t i, std::size_t j) {
  if (in[i].dtype == in[j].dtype) return;
  throw InvalidArgument(fmt::format("{} is {} and {} is {}", in.label(i), name(in[i].dtype),
                                    in.label(j), name(in[j].dtype)));
}

void require_axis(std::int64_t axis, std::size_t rank) {
  if (axis >= 0 && axis < static_cast<std::int64_t>(rank)) return;
  throw InvalidArgument(fmt::format("axis {} is out of range for rank {}", axis, rank));
}

void require_axes(const std::vector<std::int64_t>& axes, std::size_t rank) {
  for (std::size_t i = 0; i < axes.size(); ++i) {
    require_axis(axes[i], rank);
    if (std::find(axes.begin(), axes.begin() + static_cast<std::ptrdiff_t>(i), axes[i]) !=
        axes.begin() + static_cast<std::ptrdiff_t>(i)) {
      throw InvalidArgument(fmt::format("axis {} is listed twice", axes[i]));
    }
  }
}

void require_shape(InferArgs& in, std::size_t i, const Shape& shape) {
  require_rank(in, i, shape.rank());
  for (std::size_t axis = 0; axis < shape.rank(); ++axis) {
    in.same(in[i].shape[axis], shape[axis], fmt::format("extent {} of {}", axis, in.label(i)));
  }
}

Shape broadcast_shapes(InferArgs& in, const Shape& a, const Shape& b) {
  const std::size_t rank = std::max(a.rank(), b.rank());
  std::vector<Dim> dims(rank);
  for (std::size_t axis = 0; axis < rank; ++axis) {
    const bool in_a = axis + a.rank() >= rank;
    const bool in_b = axis + b.rank() >= rank;
    const Dim x = in_a ? a[axis + a.rank() - rank] : Dim(1);
    const Dim y = in_b ? b[axis + b.rank() - rank] : Dim(1);
    if (x == Dim(1)) {
      dims[axis] = y;
    } else if (y == Dim(1)) {
      dims[axis] = x;
    } else {
      dims[axis] = in.same(x, y, fmt::format("broadcast of {} and {}", to_string(a), to_string(b)));
    }
  }
  return Shape(std::move(dims));
}

void require_broadcasts_to(InferArgs& in, std::size_t i, const Shape& to) {
  const Shape& from = in[i].shape;
  if (from.rank() > to.rank()) {
    throw ShapeError(fmt::format("{} is {}, which does not broadcast to {}", in.label(i),
                                 to_string(from), to_string(to)));
  }
  for (std::size_t axis = 0; axis < from.rank(); ++axis) {
    const Dim target = to[axis + to.rank() - from.rank()];
    if (from[axis] == Dim(1)) continue;
    in.same(from[axis], target,
            fmt::format("broadcast of {} to {}", to_string(from), to_string(to)));
  }
}

std::int64_t normal_axis(std::int64_t axis, std::size_t rank) {
  const auto r = static_cast<std::int64_t>(rank);
  if (axis < -r || axis >= r)
    throw InvalidArgument(fmt::format("axis {} is out of range for rank {}", axis, rank));
  return axis < 0 ? axis + r : axis;
}

std::vector<std::int64_t> normal_axes(const std::vector<std::int64_t>& axes, std::size_t rank) {
  std::vector<std::int64_t> normal;
  normal.reserve(axes.size());
  for (const std::int64_t axis : axes) normal.push_back(normal_axis(axis, rank));
  return normal;
}

}  // namespace rlx
