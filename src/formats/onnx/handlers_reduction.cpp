#include <fmt/format.h>

#include <numeric>

#include "formats/onnx/handlers.h"
#include "rlx/error.h"
#include "rlx/ops.h"

namespace rlx::onnx {
namespace {

using Values = std::vector<Value>;
using Axes = std::vector<std::int64_t>;

Axes all_axes(Value x) {
  Axes axes(x.rank());
  std::iota(axes.begin(), axes.end(), 0);
  return axes;
}

/// `axes` is an attribute at first and an input from the opset `since` on. Nothing if the node asks
/// to reduce nothing.
std::optional<Axes> axes_of(const Site& site, std::int64_t since) {
  const auto given = site.numbers_from("axes", 1, since - 1);
  if (given && !given->empty()) return given;
  if (site.flag("noop_with_empty_axes")) return std::nullopt;
  return all_axes(site.input(0));
}

constexpr std::int64_t kSumSince = 13, kOthersSince = 18;

// Integers have no mean of their own: the quotient is truncated, as elsewhere.
Value mean_over(Value x, const Axes& axes, bool keep_dims) {
  if (!is_integer(x.dtype())) return mean(x, axes, keep_dims);
  Dim count = 1;
  for (const std::int64_t axis : axes)
    count = count * x.shape()[static_cast<std::size_t>(
                        axis < 0 ? axis + static_cast<std::int64_t>(x.rank()) : axis)];
  return sum(x, axes, keep_dims) / cast(x.graph().size(count), x.dtype());
}

template <Reduction Kind>
Values reduction(const Site& site) {
  const auto axes = axes_of(site, Kind == Reduction::sum ? kSumSince : kOthersSince);
  const Value x = site.input(0);
  const bool keep_dims = site.flag("keepdims", true);
  if (!axes) return {x};
  if constexpr (Kind == Reduction::mean) {
    return {mean_over(x, *axes, keep_dims)};
  } else {
    if (x.dtype() == DType::boolean)
      return {cast(reduce(cast(x, DType::u8), Kind, *axes, keep_dims), DType::boolean)};
    return {reduce(x, Kind, *axes, keep_dims)};
  }
}

/// `before` each element, then the sum, then `after`.
template <Value (*Before)(Value), Value (*After)(Value)>
Values summed(const Site& site) {
  const auto axes = axes_of(site, kOthersSince);
  const Value x = Before(site.input(0));
  return {After(axes ? sum(x, *axes, site.flag("keepdims", true)) : x)};
}

Value same(Value x) { return x; }
Value square(Value x) { return x * x; }

Values log_sum_exp(const Site& site) {
  const Value x = site.input(0);
  const auto axes = axes_of(site, kOthersSince);
  if (!axes) return {x};
  const Value top = reduce(x, Reduction::max, *axes, true);
  const Value shift = select(is_inf(top), scalar(x, 0), top);
  const Value y = log(sum(exp(x - shift), *axes, true)) + shift;
  return {site.flag("keepdims", true) ? y : squeeze(y, *axes)};
}

template <Value (*F)(Value, std::int64_t, bool, bool)>
Values arg(const Site& site) {
  return {F(site.input(0), site.integer("axis", 0), site.flag("keepdims", true),
            site.flag("select_last_index"))};
}

template <Value (*F)(Value, std::int64_t)>
Values softmax_of(const Site& site) {
  return {F(site.input(0), site.integer("axis", -1))};
}

// Before opset 13 all axes from `axis` on are one.
template <Value (*F)(Value, std::int64_t)>
Values flat_softmax(const Site& site) {
  const Value x = site.input(0);
  const std::int64_t axis = site.integer("axis", 1);
  const auto rank = static_cast<std::int64_t>(x.rank());
  if (axis == rank - 1 || axis == -1) return {F(x, -1)};
  return {reshape(F(flatten(x, axis), 1), x.shape())};
}

Values cumulative_sum(const Site& site) {
  return {cumulative(site.input(0), Accumulation::sum, site.number(1, "axis"),
                     site.flag("exclusive"), site.flag("reverse"))};
}

Values top_k_of(const Site& site, Dim k) {
  const TopKResult found = top_k(site.input(0), k, site.integer("axis", -1),
                                 site.flag("largest", true), site.flag("sorted", true));
  return {found.values, found.indices};
}
Values top_k_attribute(const Site& site) { return top_k_of(site, site.required_integer("k")); }
Values top_k_input(const Site& site) {
  const std::vector<Dim> k = site.extents(1, "k");
  if (k.size() != 1) throw ShapeError(fmt::format("k has {} elements, expected one", k.size()));
  return top_k_of(site, k[0]);
}

constexpr HandlerRow kRows[] = {
    {"ArgMax", arg<arg_max>},
    {"ArgMin", arg<arg_min>},
    {"CumSum", cumulative_sum},
    {"LogSoftmax", flat_softmax<log_softmax>},
    {"LogSoftmax", softmax_of<log_softmax>, 13},
    {"ReduceL1", summed<abs, same>},
    {"ReduceL2", summed<square, sqrt>},
    {"ReduceLogSum", summed<same, log>},
    {"ReduceLogSumExp", log_sum_exp},
    {"ReduceMax", reduction<Reduction::max>},
    {"ReduceMean", reduction<Reduction::mean>},
    {"ReduceMin", reduction<Reduction::min>},
    {"ReduceProd", reduction<Reduction::prod>},
    {"ReduceSum", reduction<Reduction::sum>},
    {"ReduceSumSquare", summed<square, same>},
    {"Softmax", flat_softmax<softmax>},
    {"Softmax", softmax_of<softmax>, 13},
    {"TopK", top_k_attribute},
    {"TopK", top_k_input, 10},
};

}  // namespace

std::span<const HandlerRow> reduction_handlers() { return kRows; }

}  // namespace rlx::onnx
