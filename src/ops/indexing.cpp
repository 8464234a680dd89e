#include "ops/indexing.h"

#include <fmt/format.h>

#include <algorithm>

#include "ir/node.h"
#include "ops/host_array.h"
#include "ops/infer.h"
#include "rlx/ops.h"

namespace rlx {
namespace {

constexpr std::size_t kX = 0, kIndices = 1;

// Blocks run along the last axis, so no index may point into it.
void require_whole_blocks(const InferArgs& in, bool indexes_last_axis) {
  if (!is_block(in[kX].dtype) || !indexes_last_axis) return;
  throw InvalidArgument(fmt::format("{} is {}, which {} does not take along the last axis",
                                    in.label(kX), name(in[kX].dtype), in.op().name()));
}

// Calls f(x's elements, y's elements) with their common wide type.
template <class F>
void visit_elements(const HostArray& x, HostArray& y, F&& f) {
  std::visit([&](auto& to) { f(std::get<std::decay_t<decltype(to)>>(x.values()), to); },
             y.values());
}

std::int64_t index_at(const HostArray& indices, std::int64_t offset, std::int64_t extent) {
  return checked_index(indices.index(static_cast<std::size_t>(offset)), extent, "index");
}

}  // namespace

// ---------------------------------------------------------------- gather

TensorType infer(const Gather& op, InferArgs& in) {
  require_index(in, kIndices);
  const Shape& x = in[kX].shape;
  require_axis(op.axis, x.rank());
  const auto axis = static_cast<std::size_t>(op.axis);
  require_whole_blocks(in, axis + 1 == x.rank());
  Shape shape;
  for (std::size_t i = 0; i < axis; ++i) shape.push_back(x[i]);
  for (const Dim d : in[kIndices].shape) shape.push_back(d);
  for (std::size_t i = axis + 1; i < x.rank(); ++i) shape.push_back(x[i]);
  return {in[kX].dtype, std::move(shape)};
}

void evaluate(const Gather& op, Evaluation& run) {
  const HostArray& x = run.in(kX);
  const HostArray& indices = run.in(kIndices);
  const AxisView from = fold_axis(x.dims(), op.axis);
  const AxisView to{from.outer, static_cast<std::int64_t>(indices.size()), from.inner};
  if (run.out().size() == 0) return;
  visit_elements(x, run.out(), [&](const auto& source, auto& target) {
    for (std::int64_t o = 0; o < to.outer; ++o) {
      for (std::int64_t k = 0; k < to.length; ++k) {
        std::copy_n(source.begin() + from.at(o, index_at(indices, k, from.length), 0), to.inner,
                    target.begin() + to.at(o, k, 0));
      }
    }
  });
}

constinit const OpDef gather_def = define<Gather>({
    .name = "gather",
    .summary = "The slices of x along `axis` that the indices name; a negative index counts from "
               "the end, one out of range is a fault of the run.",
    .inputs = {"x", "indices"},
    .outputs = {"y"},
});

// ---------------------------------------------------------------- gather_elements

TensorType infer(const GatherElements& op, InferArgs& in) {
  require_index(in, kIndices);
  const Shape& x = in[kX].shape;
  const Shape& indices = in[kIndices].shape;
  require_rank(in, kIndices, x.rank());
  require_axis(op.axis, x.rank());
  require_whole_blocks(in, true);
  for (std::size_t axis = 0; axis < x.rank(); ++axis) {
    if (axis == static_cast<std::size_t>(op.axis)) continue;
    in.at_most(indices[axis], x[axis], fmt::format("extent {} of indices and x", axis));
  }
  return {in[kX].dtype, indices};
}

void evaluate(const GatherElements& op, Evaluation& run) {
  const HostArray& x = run.in(kX);
  const HostArray& indices = run.in(kIndices);
  const auto axis = static_cast<std::size_t>(op.axis);
  const std::vector<std::int64_t> strides = row_major_strides(x.dims());
  visit_elements(x, run.out(), [&](const auto& source, auto& target) {
    for_each_index(indices.dims(), [&](std::span<const std::int64_t> at, std::int64_t i) {
      const std::int64_t picked = index_at(indices, i, x.dims()[axis]);
      const std::int64_t offset = offset_of(at, strides) + (picked - at[axis]) * strides[axis];
      target[static_cast<std::size_t>(i)] = source[static_cast<std::size_t>(offset)];
    });
  });
}

constinit const OpDef gather_elements_def = define<GatherElements>({
    .name = "gather_elements",
    .summary = "For each index the element of x at the same place but along `axis`, where the "
               "index says.",
    .inputs = {"x", "indices"},
    .outputs = {"y"},
});

// ---------------------------------------------------------------- gather_nd

TensorType infer(const GatherNd& op, InferArgs& in) {
  require_index(in, kIndices);
  require_rank_at_least(in, kIndices, 1);
  const Shape& x = in[kX].shape;
  const Shape& indices = in[kIndices].shape;
  const auto width = indices.back().constant();
  if (!width) {
    throw ShapeError(fmt::format("indices are {}, expected a last extent that is a constant",
                                 to_string(indices)));
  }
  const std::int64_t batch = op.batch_dims;
  const auto rank = static_cast<std::int64_t>(x.rank());
  if (batch < 0 || batch >= static_cast<std::int64_t>(indices.rank()) || batch > rank) {
    throw InvalidArgument(fmt::format("batch_dims {} is out of range for x {} and indices {}",
                                      batch, to_string(x), to_string(indices)));
  }
  if (*width > rank - batch) {
    throw ShapeError(fmt::format("indices are {} and address {} axes, x is {} with {} batch axes",
                                 to_string(indices), *width, to_string(x), batch));
  }
  require_whole_blocks(in, batch + *width == rank);
  Shape shape;
  for (std::size_t i = 0; i + 1 < indices.rank(); ++i) {
    const bool is_batch = i < static_cast<std::size_t>(batch);
    shape.push_back(is_batch ? in.same(x[i], indices[i], fmt::format("batch extent {}", i))
                             : indices[i]);
  }
  for (auto i = static_cast<std::size_t>(batch + *width); i < x.rank(); ++i) shape.push_back(x[i]);
  return {in[kX].dtype, std::move(shape)};
}

namespace {

std::int64_t product(std::span<const std::int64_t> extents) {
  std::int64_t count = 1;
  for (const std::int64_t d : extents) count *= d;
  return count;
}

}  // namespace

void evaluate(const GatherNd& op, Evaluation& run) {
  const HostArray& x = run.in(kX);
  const HostArray& indices = run.in(kIndices);
  if (run.out().size() == 0) return;
  const std::span<const std::int64_t> extents(x.dims());
  const std::int64_t width = indices.dims().back();
  const auto batch = static_cast<std::size_t>(op.batch_dims);
  const std::span<const std::int64_t> addressed =
      extents.subspan(batch, static_cast<std::size_t>(width));
  const std::int64_t slice = product(extents.subspan(batch + static_cast<std::size_t>(width)));
  const std::int64_t rows = static_cast<std::int64_t>(run.out().size()) / slice;
  const std::int64_t rows_of_a_batch = rows / product(extents.first(batch));
  // The slice that a row of indices names, counted in slices.
  const auto slice_of = [&](std::int64_t row) {
    std::int64_t at = row / rows_of_a_batch;
    for (std::int64_t i = 0; i < width; ++i) {
      const std::int64_t extent = addressed[static_cast<std::size_t>(i)];
      at = at * extent + index_at(indices, row * width + i, extent);
    }
    return at;
  };
  visit_elements(x, run.out(), [&](const auto& source, auto& target) {
    for (std::int64_t row = 0; row < rows; ++row)
      std::copy_n(source.begin() + slice_of(row) * slice, slice, target.begin() + row * slice);
  });
}

constinit const OpDef gather_nd_def = define<GatherNd>({
    .name = "gather_nd",
    .summary = "Each row of indices addresses the axes of x after the first `batch_dims`; the rest "
               "of x is copied.",
    .inputs = {"x", "indices"},
    .outputs = {"y"},
});

// ---------------------------------------------------------------- builders

inline namespace v0 {

Value gather(Value x, Value indices, std::int64_t axis) {
  return x.graph().add1(make_op(gather_def, Gather{normal_axis(axis, x.rank())}), {x, indices});
}

Value gather_elements(Value x, Value indices, std::int64_t axis) {
  return x.graph().add1(make_op(gather_elements_def, GatherElements{normal_axis(axis, x.rank())}),
                        {x, indices});
}

Value gather_nd(Value x, Value indices, std::int64_t batch_dims) {
  return x.graph().add1(make_op(gather_nd_def, GatherNd{batch_dims}), {x, indices});
}

Value embedding(Value table, Value indices) {
  if (table.rank() != 2) {
    throw ShapeError(
        fmt::format("embedding: table is {}, expected rank 2", to_string(table.shape())));
  }
  return gather(table, indices, 0);
}

// An index outside [-depth, depth) meets no position and leaves its row off.
Value one_hot(Value indices, Dim depth, Value off_value, Value on_value, std::int64_t axis) {
  if (indices.dtype() != i32 && indices.dtype() != i64) {
    throw InvalidArgument(
        fmt::format("one_hot: indices is {}, expected i32 or i64", name(indices.dtype())));
  }
  Graph& graph = indices.graph();
  axis = normal_axis(axis, indices.rank() + 1);
  const Value wide = cast(indices, i64);
  const Value count = depth.is_constant()
                          ? graph.constant(Tensor(Tensor::Dims{}, {*depth.constant()}))
                          : graph.size(depth);
  const Value wrapped = select(less(wide, scalar(wide, 0)), wide + count, wide);
  Shape positions{depth};  // along `axis`, the rest broadcasts
  for (auto i = static_cast<std::size_t>(axis); i < indices.rank(); ++i) positions.push_back(1);
  const Value is_on = equal(unsqueeze(wrapped, {axis}), iota(graph, i64, positions, 0));
  return select(is_on, on_value, off_value);
}

}  // namespace v0
}  // namespace rlx
