#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "formats/dense.h"
#include "formats/onnx/handlers.h"
#include "ops/infer.h"
#include "rlx/error.h"
#include "rlx/ops.h"

namespace rlx::onnx {
namespace {

using Values = std::vector<Value>;
using Axes = std::vector<std::int64_t>;

// ---------------------------------------------------------------- reshape

/// The extent that -1 stands for: what the product of `from` leaves over that of `to`. Extents that
/// both sides have are taken out first, so that quotients of sums come out.
Dim remaining_extent(Graph& graph, std::vector<Dim> from, std::vector<Dim> to,
                     std::string_view node) {
  std::erase_if(to, [&](Dim d) {
    const auto twin = std::find(from.begin(), from.end(), d);
    if (twin == from.end() || d == Dim(0)) return false;
    from.erase(twin);
    return true;
  });
  const Dim total = std::accumulate(from.begin(), from.end(), Dim(1), std::multiplies<>());
  const Dim known = std::accumulate(to.begin(), to.end(), Dim(1), std::multiplies<>());
  if (known == Dim(0)) throw ShapeError("an extent of -1 stands beside one of 0");
  if (const auto exact = exact_div(total, known)) return *exact;
  const Dim quotient = floor_div(total, known);
  graph.require_equal(total, quotient * known, node, "number of elements");
  return quotient;
}

Values reshape_to(const Site& site) {
  const Value x = site.input(0);
  std::vector<Dim> to = site.extents(1, "the extents of the result");
  std::optional<std::size_t> open;
  for (std::size_t axis = 0; axis < to.size(); ++axis) {
    if (to[axis] == Dim(0) && !site.flag("allowzero")) {
      if (axis >= x.rank()) {
        throw ShapeError(fmt::format("the extent of axis {} is copied from an input of rank {}",
                                     axis, x.rank()));
      }
      to[axis] = x.shape()[axis];
    }
    if (to[axis] != Dim(-1)) continue;
    if (open) throw ShapeError("two extents are -1");
    open = axis;
  }
  if (open) {
    std::vector<Dim> others = to;
    others.erase(others.begin() + static_cast<std::ptrdiff_t>(*open));
    to[*open] = remaining_extent(site.graph(), x.shape().dims(), others, site.graph().origin());
  }
  return {reshape(x, Shape(std::move(to)))};
}

Values flatten_of(const Site& site) { return {flatten(site.input(0), site.integer("axis", 1))}; }

Values transpose_of(const Site& site) {
  const Value x = site.input(0);
  Axes permutation = site.integers("perm");
  if (!site.has_attribute("perm")) {
    permutation.resize(x.rank());
    std::iota(permutation.rbegin(), permutation.rend(), 0);
  }
  return {transpose(x, std::move(permutation))};
}

constexpr std::int64_t kAxesAreInputsSince = 13;

Values squeeze_of(const Site& site) {
  const Value x = site.input(0);
  if (const auto axes = site.numbers_from("axes", 1, kAxesAreInputsSince - 1))
    return {squeeze(x, *axes)};
  Axes axes;
  for (std::size_t axis = 0; axis < x.rank(); ++axis) {
    const Dim d = x.shape()[axis];
    if (!d.is_constant()) {
      throw Unsupported(
          fmt::format("which axes are squeezed depends on the extent {}", d.to_string()));
    }
    if (d == Dim(1)) axes.push_back(static_cast<std::int64_t>(axis));
  }
  return {squeeze(x, axes)};
}

Values unsqueeze_of(const Site& site) {
  const auto axes = site.numbers_from("axes", 1, kAxesAreInputsSince - 1);
  if (!axes) throw FormatError("the axes are not given", site.node.offset);
  return {unsqueeze(site.input(0), *axes)};
}

// ---------------------------------------------------------------- slices

/// Beyond this, an end says "to the last element".
constexpr std::int64_t kEndless = 2'147'483'647;
/// A bound this large is not meant to cut anything: it is checked when sizes are bound, and extents
/// stay simple.
constexpr std::int64_t kMeansAll = 1'000'000'000;

struct AxisSlice {
  Dim start, size;
};

// A negative position counts from the end.
Dim from_front(Dim position, Dim extent) {
  if (position.lower_bound() >= 0) return position;
  if (position.upper_bound() < 0) return position + extent;
  return position + extent * min(max(-position, 0), 1);
}

/// min(position, extent) for a position that is not negative.
Dim not_past(Graph& graph, Dim position, Dim extent) {
  const auto value = position.constant();
  if (value && *value >= kEndless) return extent;
  if (value && *value >= kMeansAll && !extent.is_constant()) {
    graph.require_at_most(extent, position, graph.origin(), "end of a slice");
    return extent;
  }
  return min(position, extent);
}

// An extent is never negative, whatever its expression says of itself: what comes from it needs no
// limit at zero.
AxisSlice slice_up(Graph& graph, Dim start, Dim end, std::int64_t step, Dim extent) {
  const auto inside = [&](Dim position) -> Dim {
    if (position == Dim(0) || position.constant().value_or(0) <= -kEndless) return 0;
    const Dim front = from_front(position, extent);
    return not_past(graph, front.lower_bound() >= 0 ? front : max(front, 0), extent);
  };
  const Dim first = inside(start);
  const Dim last = inside(end);
  const Dim size = ceil_div(last - first, step);
  return {first, last - first == extent ? size : max(size, 0)};
}

AxisSlice slice_down(Dim start, Dim end, std::int64_t step, Dim extent) {
  const auto inside = [&](Dim position, Dim lowest) -> Dim {
    const std::int64_t value = position.constant().value_or(0);
    if (value <= -kEndless) return lowest;
    if (value >= kEndless || position == Dim(-1)) return extent - 1;
    return min(max(from_front(position, extent), lowest), extent - 1);
  };
  const Dim first = inside(start, 0);
  const Dim last = inside(end, -1);  // stays out
  const Dim size = ceil_div(first - last, -step);
  return {first, first - last == extent ? size : max(size, 0)};
}

struct SliceBounds {
  std::vector<Dim> starts, ends;
  Axes axes, steps;
};

Value sliced(const Site& site, Value x, SliceBounds bounds) {
  const std::size_t count = bounds.starts.size();
  if (bounds.axes.empty()) {
    bounds.axes.resize(count);
    std::iota(bounds.axes.begin(), bounds.axes.end(), 0);
  }
  if (bounds.steps.empty()) bounds.steps.assign(count, 1);
  if (bounds.ends.size() != count || bounds.axes.size() != count || bounds.steps.size() != count) {
    throw ShapeError(fmt::format("{} starts, {} ends, {} axes and {} steps", count,
                                 bounds.ends.size(), bounds.axes.size(), bounds.steps.size()));
  }
  std::vector<Dim> starts(x.rank(), Dim(0));
  std::vector<Dim> sizes = x.shape().dims();
  Axes steps(x.rank(), 1);
  const Axes axes = normal_axes(bounds.axes, x.rank());
  require_axes(axes, x.rank());
  for (std::size_t i = 0; i < count; ++i) {
    const auto axis = static_cast<std::size_t>(axes[i]);
    const std::int64_t step = bounds.steps[i];
    constexpr std::int64_t kLargestStep = std::int64_t{1} << 40;
    if (step == 0 || step > kLargestStep || step < -kLargestStep)
      throw InvalidArgument(fmt::format("the step of axis {} is {}", axis, step));
    const AxisSlice part =
        step > 0 ? slice_up(site.graph(), bounds.starts[i], bounds.ends[i], step, x.shape()[axis])
                 : slice_down(bounds.starts[i], bounds.ends[i], step, x.shape()[axis]);
    starts[axis] = part.start;
    sizes[axis] = part.size;
    steps[axis] = step;
  }
  const bool is_whole = sizes == x.shape().dims() &&
                        std::all_of(steps.begin(), steps.end(), [](auto s) { return s == 1; });
  return is_whole ? x : slice(x, std::move(starts), std::move(sizes), std::move(steps));
}

std::vector<Dim> as_dims(const Axes& values) { return {values.begin(), values.end()}; }

Values slice_attributes(const Site& site) {
  return {sliced(site, site.input(0),
                 {as_dims(site.integers("starts")),
                  as_dims(site.integers("ends")),
                  site.integers("axes"),
                  {}})};
}

Values slice_inputs(const Site& site) {
  SliceBounds bounds{site.extents(1, "the starts"), site.extents(2, "the ends"), {}, {}};
  if (site.has(3)) bounds.axes = site.numbers(3, "the axes");
  if (site.has(4)) bounds.steps = site.numbers(4, "the steps");
  return {sliced(site, site.input(0), std::move(bounds))};
}

// ---------------------------------------------------------------- concat, split, tile, expand

Values concat_of(const Site& site) {
  return {concat(site.inputs(), site.required_integer("axis"))};
}

std::vector<Dim> equal_parts(Dim extent, std::int64_t count) {
  const Dim part = ceil_div(extent, count);
  std::vector<Dim> sizes(static_cast<std::size_t>(count), part);
  sizes.back() = extent - part * (count - 1);
  return sizes;
}

Values split_of(const Site& site) {
  const Value x = site.input(0);
  const std::int64_t axis = normal_axis(site.integer("axis", 0), x.rank());
  std::vector<Dim> sizes;
  if (site.opset < kAxesAreInputsSince) {
    sizes = as_dims(site.integers("split"));
  } else if (site.has(1)) {
    sizes = site.extents(1, "the sizes of the parts");
  }
  if (sizes.empty()) {
    const auto count =
        site.integer("num_outputs", static_cast<std::int64_t>(site.node.outputs.size()));
    if (count < 1 || count > static_cast<std::int64_t>(site.node.outputs.size()))
      site.bad_attribute("num_outputs", "the number of outputs");
    sizes = equal_parts(x.shape()[static_cast<std::size_t>(axis)], count);
  }
  return split(x, sizes, axis);
}

Values tile_of(const Site& site) { return {tile(site.input(0), site.extents(1, "the repeats"))}; }

Values expand(const Site& site) {
  const Value x = site.input(0);
  std::vector<Dim> to = site.extents(1, "the extents of the result");
  if (to.size() < x.rank()) to.insert(to.begin(), x.rank() - to.size(), Dim(1));
  for (std::size_t i = 0; i < x.rank(); ++i) {
    Dim& target = to[to.size() - x.rank() + i];
    if (target == Dim(1)) target = x.shape()[i];
  }
  if (Shape(to) == x.shape()) return {x};
  return {broadcast(x, Shape(std::move(to)))};
}

// ---------------------------------------------------------------- pad

PadMode pad_mode(const Site& site) {
  const std::string_view mode = site.text("mode", "constant");
  if (mode == "constant") return PadMode::constant;
  if (mode == "reflect") return PadMode::reflect;
  if (mode == "edge") return PadMode::edge;
  if (mode == "wrap") return PadMode::wrap;
  throw Unsupported(fmt::format("mode {}", in_quotes(mode)));
}

/// Negative padding cuts off.
Value cropped(Value x, std::vector<Dim>& low, std::vector<Dim>& high) {
  std::vector<Dim> starts(x.rank(), Dim(0));
  std::vector<Dim> sizes = x.shape().dims();
  bool cuts = false;
  for (std::size_t axis = 0; axis < x.rank(); ++axis) {
    for (auto* side : {&low, &high}) {
      Dim& amount = (*side)[axis];
      if (amount.lower_bound() >= 0) continue;
      if (!amount.is_constant())
        throw Unsupported(fmt::format("padding by {} may be negative", amount.to_string()));
      if (side == &low) starts[axis] = -amount;
      sizes[axis] = sizes[axis] + amount;
      amount = 0;
      cuts = true;
    }
  }
  return cuts ? slice(x, std::move(starts), std::move(sizes)) : x;
}

/// `amounts` are all lows, then all highs, one an axis of `axes`.
Value padded(Value x, const std::vector<Dim>& amounts, const Axes& axes, PadMode mode,
             Value value) {
  if (amounts.size() != 2 * axes.size()) {
    throw ShapeError(
        fmt::format("{} amounts for {} axes, expected two each", amounts.size(), axes.size()));
  }
  std::vector<Dim> low(x.rank(), Dim(0));
  std::vector<Dim> high = low;
  for (std::size_t i = 0; i < axes.size(); ++i) {
    low[static_cast<std::size_t>(axes[i])] = amounts[i];
    high[static_cast<std::size_t>(axes[i])] = amounts[axes.size() + i];
  }
  x = cropped(x, low, high);
  const auto is_zero = [](Dim d) { return d == Dim(0); };
  if (std::all_of(low.begin(), low.end(), is_zero) &&
      std::all_of(high.begin(), high.end(), is_zero))
    return x;
  return pad(x, std::move(low), std::move(high), mode, mode == PadMode::constant ? value : Value());
}

Axes every_axis(Value x) {
  Axes axes(x.rank());
  std::iota(axes.begin(), axes.end(), 0);
  return axes;
}

Values pad_attributes(const Site& site) {
  const Value x = site.input(0);
  return {padded(x, as_dims(site.integers("pads")), every_axis(x), pad_mode(site),
                 scalar(x, site.real("value", 0)))};
}

Values pad_inputs(const Site& site) {
  const Value x = site.input(0);
  Axes axes = every_axis(x);
  if (site.has(3)) {
    axes = normal_axes(site.numbers(3, "the axes"), x.rank());
    require_axes(axes, x.rank());
  }
  Value value = site.optional_input(2);
  if (value && value.rank() > 0) value = reshape(value, {});
  return {padded(x, site.extents(1, "the padding"), axes, pad_mode(site), value)};
}

// ---------------------------------------------------------------- blocks of pixels

struct Image {
  Dim n, c, h, w;
};
Image image_of(Value x) {
  if (x.rank() != 4) {
    throw ShapeError(fmt::format("x is {}, expected rank 4", to_string(x.shape())));
  }
  return {x.shape()[0], x.shape()[1], x.shape()[2], x.shape()[3]};
}

std::int64_t block_size(const Site& site) {
  const std::int64_t b = site.required_integer("blocksize");
  if (b < 1 || b > 4096) site.bad_attribute("blocksize", "from 1 to 4096");
  return b;
}

Values depth_to_space(const Site& site) {
  const Value x = site.input(0);
  const auto [n, c, h, w] = image_of(x);
  const std::int64_t b = block_size(site);
  const std::string_view mode = site.text("mode", "DCR");
  if (mode != "DCR" && mode != "CRD") site.bad_attribute("mode", "DCR or CRD");
  const Dim rest = floor_div(c, b * b);
  const Value apart = mode == "DCR"
                          ? transpose(reshape(x, {n, b, b, rest, h, w}), {0, 3, 4, 1, 5, 2})
                          : transpose(reshape(x, {n, rest, b, b, h, w}), {0, 1, 4, 2, 5, 3});
  return {reshape(apart, {n, rest, h * b, w * b})};
}

Values space_to_depth(const Site& site) {
  const Value x = site.input(0);
  const auto [n, c, h, w] = image_of(x);
  const std::int64_t b = block_size(site);
  const Dim rows = floor_div(h, b);
  const Dim columns = floor_div(w, b);
  const Value apart = transpose(reshape(x, {n, c, rows, b, columns, b}), {0, 3, 5, 1, 2, 4});
  return {reshape(apart, {n, c * (b * b), rows, columns})};
}

Values triangle_of(const Site& site) {
  const std::int64_t diagonal = site.has(1) ? site.number(1, "k") : 0;
  return {triangle(site.input(0), site.flag("upper", true), diagonal)};
}

constexpr HandlerRow kRows[] = {
    {"Concat", concat_of},       {"DepthToSpace", depth_to_space},
    {"Expand", expand},          {"Flatten", flatten_of},
    {"Pad", pad_attributes},     {"Pad", pad_inputs, 11},
    {"Reshape", reshape_to},     {"Slice", slice_attributes},
    {"Slice", slice_inputs, 10}, {"SpaceToDepth", space_to_depth},
    {"Split", split_of},         {"Squeeze", squeeze_of},
    {"Tile", tile_of},           {"Transpose", transpose_of},
    {"Trilu", triangle_of},      {"Unsqueeze", unsqueeze_of},
};

}  // namespace

std::span<const HandlerRow> movement_handlers() { return kRows; }

}  // namespace rlx::onnx
