#include "ops/movement.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "ir/node.h"
#include "ops/host_array.h"
#include "ops/infer.h"

namespace rlx {
namespace {

// Blocks run along the last axis, so nothing may cut, join or move them.
void refuse_blocks(const InferArgs& in, std::size_t i, std::string_view unless = {}) {
  if (!is_block(in[i].dtype)) return;
  throw InvalidArgument(fmt::format("{} is {}, which {} does not take{}", in.label(i),
                                    name(in[i].dtype), in.op().name(), unless));
}

void require_one_per_axis(std::string_view attribute, std::size_t count, std::size_t rank) {
  if (count == rank) return;
  throw InvalidArgument(
      fmt::format("{} has {} entries, expected one for each of {} axes", attribute, count, rank));
}

void require_not_negative(InferArgs& in, const Shape& shape) {
  for (std::size_t axis = 0; axis < shape.rank(); ++axis)
    in.at_most(0, shape[axis], fmt::format("extent {} of {}", axis, to_string(shape)));
}

// y[i] = x[source(coordinates of i)], for elements of any type.
template <class F>
void copy_elements(const HostArray& x, HostArray& y, F&& source) {
  std::visit(
      [&](auto& to) {
        using Elements = std::decay_t<decltype(to)>;
        const auto& from = std::get<Elements>(x.values());
        for_each_index(y.dims(), [&](std::span<const std::int64_t> at, std::int64_t i) {
          to[static_cast<std::size_t>(i)] = from[static_cast<std::size_t>(source(at))];
        });
      },
      y.values());
}

}  // namespace

// ---------------------------------------------------------------- reshape

TensorType infer(const Reshape& op, InferArgs& in) {
  const Shape& from = in[0].shape;
  const bool keeps_rows = from.rank() > 0 && op.to.rank() > 0 && from.back() == op.to.back();
  if (!keeps_rows) refuse_blocks(in, 0, " unless the last extent stays");
  require_not_negative(in, op.to);
  in.same(from.element_count(), op.to.element_count(),
          fmt::format("number of elements of {} and {}", to_string(from), to_string(op.to)));
  return {in[0].dtype, op.to};
}

void evaluate(const Reshape&, Evaluation& run) { run.out().values() = run.in(0).values(); }

constinit const OpDef reshape_def = define<Reshape>({
    .name = "reshape",
    .summary = "The same elements in row-major order under other extents of the same product.",
    .inputs = {"x"},
    .outputs = {"y"},
});

// ---------------------------------------------------------------- transpose

TensorType infer(const Transpose& op, InferArgs& in) {
  refuse_blocks(in, 0);
  require_one_per_axis("permutation", op.permutation.size(), in[0].rank());
  require_axes(op.permutation, in[0].rank());
  Shape shape;
  for (const std::int64_t axis : op.permutation)
    shape.push_back(in[0].shape[static_cast<std::size_t>(axis)]);
  return {in[0].dtype, std::move(shape)};
}

void evaluate(const Transpose& op, Evaluation& run) {
  const std::vector<std::int64_t> own = row_major_strides(run.in(0).dims());
  std::vector<std::int64_t> strides;
  for (const std::int64_t axis : op.permutation)
    strides.push_back(own[static_cast<std::size_t>(axis)]);
  copy_elements(run.in(0), run.out(),
                [&](std::span<const std::int64_t> at) { return offset_of(at, strides); });
}

constinit const OpDef transpose_def = define<Transpose>({
    .name = "transpose",
    .summary = "Axis i of the result is axis permutation[i] of x.",
    .inputs = {"x"},
    .outputs = {"y"},
});

// ---------------------------------------------------------------- broadcast

TensorType infer(const Broadcast& op, InferArgs& in) {
  refuse_blocks(in, 0);
  require_not_negative(in, op.to);
  require_broadcasts_to(in, 0, op.to);
  return {in[0].dtype, op.to};
}

void evaluate(const Broadcast&, Evaluation& run) {
  const auto strides = broadcast_strides(run.in(0).dims(), run.out().dims());
  copy_elements(run.in(0), run.out(),
                [&](std::span<const std::int64_t> at) { return offset_of(at, strides); });
}

constinit const OpDef broadcast_def = define<Broadcast>({
    .name = "broadcast",
    .summary = "Repeats axes of extent 1 and adds leading axes, aligned at the trailing axes.",
    .inputs = {"x"},
    .outputs = {"y"},
});

// ---------------------------------------------------------------- slice

namespace {

// The first and the last element read lie inside; a size of 0 leaves room for a start at either
// end.
void require_slice_inside(InferArgs& in, std::size_t axis, Dim start, Dim size, std::int64_t step) {
  const Dim extent = in[0].shape[axis];
  const std::string what =
      fmt::format("axis {} from {}, size {}, step {} in extent {}", axis, start.to_string(),
                  size.to_string(), step, extent.to_string());
  if (step == 0) throw InvalidArgument(fmt::format("{}: a step is not 0", what));
  in.at_most(0, size, what);
  const Dim last = start + (size - 1) * Dim(step);
  in.at_most(0, step > 0 ? start : last, what);
  in.at_most((step > 0 ? last : start) + 1, extent, what);
}

bool takes_whole_axis(const Slice& op, std::size_t axis, Dim extent) {
  return op.starts[axis] == Dim(0) && op.sizes[axis] == extent && op.steps[axis] == 1;
}

}  // namespace

TensorType infer(const Slice& op, InferArgs& in) {
  const Shape& from = in[0].shape;
  require_one_per_axis("starts", op.starts.size(), from.rank());
  require_one_per_axis("sizes", op.sizes.size(), from.rank());
  require_one_per_axis("steps", op.steps.size(), from.rank());
  if (from.rank() == 0 || !takes_whole_axis(op, from.rank() - 1, from.back()))
    refuse_blocks(in, 0, " along the last axis");
  for (std::size_t axis = 0; axis < from.rank(); ++axis)
    require_slice_inside(in, axis, op.starts[axis], op.sizes[axis], op.steps[axis]);
  return {in[0].dtype, Shape(op.sizes)};
}

void evaluate(const Slice& op, Evaluation& run) {
  std::vector<std::int64_t> strides = row_major_strides(run.in(0).dims());
  std::int64_t first = 0;
  for (std::size_t axis = 0; axis < strides.size(); ++axis) {
    first += op.starts[axis].evaluate(run.sizes) * strides[axis];
    strides[axis] *= op.steps[axis];
  }
  copy_elements(run.in(0), run.out(),
                [&](std::span<const std::int64_t> at) { return first + offset_of(at, strides); });
}

constinit const OpDef slice_def = define<Slice>({
    .name = "slice",
    .summary = "Every steps-th element from `starts` on, `sizes` of them along each axis; a "
               "negative step walks down.",
    .inputs = {"x"},
    .outputs = {"y"},
});

// ---------------------------------------------------------------- pad

namespace {

// How far beyond an edge the mode can reach.
void require_padding_fits(InferArgs& in, const Pad& op, std::size_t axis, Dim padding) {
  const Dim extent = in[0].shape[axis];
  const std::string what = fmt::format("{} padding of axis {} by {} with extent {}",
                                       enum_names(op.mode)[static_cast<std::size_t>(op.mode)], axis,
                                       padding.to_string(), extent.to_string());
  in.at_most(0, padding, what);
  const Dim any = min(padding, 1);  // 0 where there is nothing to pad
  if (op.mode == PadMode::reflect) in.at_most(padding + any, extent, what);
  if (op.mode == PadMode::wrap) in.at_most(padding, extent, what);
  if (op.mode == PadMode::edge) in.at_most(any, extent, what);
}

// The element of an axis that stands at `i`, which may be outside; -1 for the constant.
std::int64_t padded_index(std::int64_t i, std::int64_t extent, PadMode mode) {
  if (i >= 0 && i < extent) return i;
  switch (mode) {
    case PadMode::constant:
      return -1;
    case PadMode::reflect:
      return i < 0 ? -i : 2 * (extent - 1) - i;
    case PadMode::edge:
      return i < 0 ? 0 : extent - 1;
    case PadMode::wrap:
      return i < 0 ? i + extent : i - extent;
  }
  return -1;
}

}  // namespace

TensorType infer(const Pad& op, InferArgs& in) {
  refuse_blocks(in, 0);
  require_one_per_axis("low", op.low.size(), in[0].rank());
  require_one_per_axis("high", op.high.size(), in[0].rank());
  if (in.has(1)) {
    if (op.mode != PadMode::constant)
      throw InvalidArgument("value is given, which only the constant mode takes");
    require_same_dtype(in, 0, 1);
    require_rank(in, 1, 0);
  }
  Shape shape = in[0].shape;
  for (std::size_t axis = 0; axis < shape.rank(); ++axis) {
    require_padding_fits(in, op, axis, op.low[axis]);
    require_padding_fits(in, op, axis, op.high[axis]);
    shape[axis] = op.low[axis] + shape[axis] + op.high[axis];
  }
  return {in[0].dtype, std::move(shape)};
}

void evaluate(const Pad& op, Evaluation& run) {
  const HostArray& x = run.in(0);
  HostArray& y = run.out();
  const std::vector<std::int64_t> strides = row_major_strides(x.dims());
  std::vector<std::int64_t> low;
  for (const Dim d : op.low) low.push_back(d.evaluate(run.sizes));
  // Offset of the element at these coordinates, -1 for the constant.
  const auto source = [&](std::span<const std::int64_t> at) {
    std::int64_t offset = 0;
    for (std::size_t axis = 0; axis < at.size(); ++axis) {
      const std::int64_t i = padded_index(at[axis] - low[axis], x.dims()[axis], op.mode);
      if (i < 0) return std::int64_t{-1};
      offset += i * strides[axis];
    }
    return offset;
  };
  std::visit(
      [&](auto& to) {
        using Elements = std::decay_t<decltype(to)>;
        const auto& from = std::get<Elements>(x.values());
        const auto filler = run.has(1) ? std::get<Elements>(run.in(1).values())[0]
                                       : typename Elements::value_type{};
        for_each_index(y.dims(), [&](std::span<const std::int64_t> at, std::int64_t i) {
          const std::int64_t offset = source(at);
          to[static_cast<std::size_t>(i)] =
              offset < 0 ? filler : from[static_cast<std::size_t>(offset)];
        });
      },
      y.values());
}

constinit const OpDef pad_def = define<Pad>({
    .name = "pad",
    .summary = "Adds `low` and `high` elements around each axis: the value, the mirror image "
               "without its edge, the edge, or the other end.",
    .inputs = {"x", "value?"},
    .outputs = {"y"},
});

// ---------------------------------------------------------------- concat

TensorType infer(const Concat& op, InferArgs& in) {
  if (in.size() == 0) throw InvalidArgument("takes one input or more, found 0");
  require_axis(op.axis, in[0].rank());
  const auto joined = static_cast<std::size_t>(op.axis);
  if (joined + 1 == in[0].rank()) refuse_blocks(in, 0, " along the last axis");
  Shape shape = in[0].shape;
  for (std::size_t i = 1; i < in.size(); ++i) {
    require_same_dtype(in, 0, i);
    require_rank(in, i, shape.rank());
    for (std::size_t axis = 0; axis < shape.rank(); ++axis) {
      shape[axis] =
          axis == joined
              ? shape[axis] + in[i].shape[axis]
              : in.same(shape[axis], in[i].shape[axis],
                        fmt::format("extent {} of {} and {}", axis, in.label(0), in.label(i)));
    }
  }
  return {in[0].dtype, std::move(shape)};
}

void evaluate(const Concat& op, Evaluation& run) {
  HostArray& y = run.out();
  const AxisView to = fold_axis(y.dims(), op.axis);
  std::int64_t start = 0;
  for (const HostArray* x : run.inputs) {
    const AxisView from = fold_axis(x->dims(), op.axis);
    std::visit(
        [&](auto& elements) {
          const auto& source = std::get<std::decay_t<decltype(elements)>>(x->values());
          for (std::int64_t o = 0; o < from.outer; ++o) {
            std::copy_n(source.begin() + from.at(o, 0, 0), from.length * from.inner,
                        elements.begin() + to.at(o, start, 0));
          }
        },
        y.values());
    start += from.length;
  }
}

constinit const OpDef concat_def = define<Concat>({
    .name = "concat",
    .summary = "The inputs one after the other along `axis`.",
    .inputs = {"x..."},
    .outputs = {"y"},
});

// ---------------------------------------------------------------- iota

TensorType infer(const Iota& op, InferArgs& in) {
  const DType d = op.type.dtype;
  if (!is_integer(d) && !is_floating(d) && !is_complex(d))
    throw InvalidArgument(fmt::format("iota of {}, expected a number", name(d)));
  require_axis(op.axis, op.type.rank());
  require_not_negative(in, op.type.shape);
  return op.type;
}

void evaluate(const Iota& op, Evaluation& run) {
  HostArray& y = run.out();
  visit_numbers(y, [&](auto zero) {
    using T = decltype(zero);
    for_each_index(y.dims(), [&](std::span<const std::int64_t> at, std::int64_t i) {
      const std::int64_t count = at[static_cast<std::size_t>(op.axis)];
      if constexpr (std::is_same_v<T, std::complex<double>>) {
        y.as<T>()[static_cast<std::size_t>(i)] = static_cast<double>(count);
      } else {
        y.as<T>()[static_cast<std::size_t>(i)] = static_cast<T>(count);
      }
    });
  });
}

constinit const OpDef iota_def = define<Iota>({
    .name = "iota",
    .summary = "0, 1, 2, … along `axis`; integers wrap, floats round.",
    .inputs = {},
    .outputs = {"y"},
});

// ---------------------------------------------------------------- builders

namespace {

Shape without_axes(const Shape& shape, const std::vector<std::int64_t>& axes) {
  Shape kept;
  for (std::size_t axis = 0; axis < shape.rank(); ++axis) {
    if (std::ranges::find(axes, static_cast<std::int64_t>(axis)) == axes.end())
      kept.push_back(shape[axis]);
  }
  return kept;
}

// Whose constraint it is, where a builder of several nodes records one.
std::string_view blamed(const Graph& graph, std::string_view builder) {
  return graph.origin().empty() ? builder : std::string_view(graph.origin());
}

}  // namespace

inline namespace v0 {

Value reshape(Value x, Shape to) {
  return x.graph().add1(make_op(reshape_def, Reshape{std::move(to)}), {x});
}

Value transpose(Value x, std::vector<std::int64_t> permutation) {
  permutation = normal_axes(permutation, x.rank());
  return x.graph().add1(make_op(transpose_def, Transpose{std::move(permutation)}), {x});
}

Value broadcast(Value x, Shape to) {
  return x.graph().add1(make_op(broadcast_def, Broadcast{std::move(to)}), {x});
}

Value slice(Value x, std::vector<Dim> starts, std::vector<Dim> sizes,
            std::vector<std::int64_t> steps) {
  if (steps.empty()) steps.assign(x.rank(), 1);
  return x.graph().add1(
      make_op(slice_def, Slice{std::move(starts), std::move(sizes), std::move(steps)}), {x});
}

Value slice_axis(Value x, std::int64_t axis, Dim start, Dim size) {
  std::vector<Dim> starts(x.rank(), Dim(0));
  std::vector<Dim> sizes = x.shape().dims();
  const auto at = static_cast<std::size_t>(normal_axis(axis, x.rank()));
  starts[at] = start;
  sizes[at] = size;
  return slice(x, std::move(starts), std::move(sizes));
}

Value reverse(Value x, std::vector<std::int64_t> axes) {
  axes = normal_axes(axes, x.rank());
  require_axes(axes, x.rank());
  std::vector<Dim> starts(x.rank(), Dim(0));
  std::vector<std::int64_t> steps(x.rank(), 1);
  for (const std::int64_t axis : axes) {
    const auto at = static_cast<std::size_t>(axis);
    starts[at] = x.shape()[at] - 1;
    steps[at] = -1;
  }
  return slice(x, std::move(starts), x.shape().dims(), std::move(steps));
}

Value pad(Value x, std::vector<Dim> low, std::vector<Dim> high, PadMode mode, Value value) {
  return x.graph().add1(make_op(pad_def, Pad{std::move(low), std::move(high), mode}), {x, value});
}

Value concat(std::vector<Value> xs, std::int64_t axis) {
  if (xs.empty()) throw InvalidArgument("concat takes one input or more, found 0");
  Graph& graph = xs[0].graph();
  const std::int64_t at = normal_axis(axis, xs[0].rank());
  return graph.add1(make_op(concat_def, Concat{at}), std::move(xs));
}

std::vector<Value> split(Value x, const std::vector<Dim>& sizes, std::int64_t axis) {
  axis = normal_axis(axis, x.rank());
  const Dim extent = x.shape()[static_cast<std::size_t>(axis)];
  const Dim total = std::accumulate(sizes.begin(), sizes.end(), Dim(0));
  x.graph().require_equal(total, extent, blamed(x.graph(), "split"),
                          fmt::format("sum of the sizes along axis {}", axis));
  std::vector<Value> parts;
  Dim start(0);
  for (const Dim size : sizes) {
    parts.push_back(slice_axis(x, axis, start, size));
    start = start + size;
  }
  return parts;
}

Value tile(Value x, const std::vector<Dim>& repeats) {
  require_one_per_axis("repeats", repeats.size(), x.rank());
  Shape apart;     // an axis of extent 1 before each that repeats
  Shape repeated;  // the same with the repeats
  Shape together;
  for (std::size_t axis = 0; axis < x.rank(); ++axis) {
    const Dim extent = x.shape()[axis];
    if (repeats[axis] != Dim(1)) {
      apart.push_back(1);
      repeated.push_back(repeats[axis]);
    }
    apart.push_back(extent);
    repeated.push_back(extent);
    together.push_back(repeats[axis] * extent);
  }
  if (together == x.shape()) return x;
  return reshape(broadcast(reshape(x, std::move(apart)), std::move(repeated)), std::move(together));
}

Value squeeze(Value x, std::vector<std::int64_t> axes) {
  axes = normal_axes(axes, x.rank());
  require_axes(axes, x.rank());
  for (const std::int64_t axis : axes) {
    x.graph().require_equal(x.shape()[static_cast<std::size_t>(axis)], 1,
                            blamed(x.graph(), "squeeze"), fmt::format("squeeze of axis {}", axis));
  }
  return reshape(x, without_axes(x.shape(), axes));
}

Value unsqueeze(Value x, std::vector<std::int64_t> axes) {
  const std::size_t rank = x.rank() + axes.size();
  axes = normal_axes(axes, rank);
  require_axes(axes, rank);
  Shape to;
  std::size_t next = 0;
  for (std::size_t axis = 0; axis < rank; ++axis) {
    const bool added = std::ranges::find(axes, static_cast<std::int64_t>(axis)) != axes.end();
    to.push_back(added ? Dim(1) : x.shape()[next++]);
  }
  return reshape(x, std::move(to));
}

Value flatten(Value x, std::int64_t axis) {
  const auto rank = static_cast<std::int64_t>(x.rank());
  if (axis < -rank || axis > rank)
    throw InvalidArgument(fmt::format("axis {} is out of range for rank {}", axis, rank));
  if (axis < 0) axis += rank;
  Shape to{1, 1};
  for (std::int64_t i = 0; i < rank; ++i) {
    Dim& part = to[i < axis ? 0 : 1];
    part = part * x.shape()[static_cast<std::size_t>(i)];
  }
  return reshape(x, std::move(to));
}

Value iota(Graph& graph, DType dtype, Shape shape, std::int64_t axis) {
  axis = normal_axis(axis, shape.rank());
  return graph.add1(make_op(iota_def, Iota{{dtype, std::move(shape)}, axis}), {});
}

Value triangle(Value x, bool upper, std::int64_t diagonal) {
  if (x.rank() < 2) {
    throw ShapeError(
        fmt::format("triangle: x is {}, expected rank 2 or more", to_string(x.shape())));
  }
  Graph& graph = x.graph();
  const Value row = iota(graph, i64, {x.shape()[x.rank() - 2], 1}, 0);
  const Value column = iota(graph, i64, {x.shape().back()}, 0);
  const Value distance = column - row;  // cannot overflow, whatever the diagonal
  const Value offset = graph.constant(Tensor(Tensor::Dims{}, {diagonal}));
  const Value keep = upper ? greater_equal(distance, offset) : less_equal(distance, offset);
  return select(keep, x, scalar(x, 0));
}

}  // namespace v0
}  // namespace rlx
