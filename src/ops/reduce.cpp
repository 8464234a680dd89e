#include "ops/reduce.h"

#include <fmt/format.h>

#include <algorithm>

#include "ir/node.h"
#include "ops/fold.h"
#include "ops/host_array.h"
#include "ops/infer.h"

namespace rlx {

Shape reduced_shape(const Shape& shape, const std::vector<std::int64_t>& axes, bool keep_dims) {
  Shape result;
  for (std::size_t axis = 0; axis < shape.rank(); ++axis) {
    const bool reduced =
        std::find(axes.begin(), axes.end(), static_cast<std::int64_t>(axis)) != axes.end();
    if (!reduced) result.push_back(shape[axis]);
    if (reduced && keep_dims) result.push_back(1);
  }
  return result;
}

TensorType infer(const Reduce& op, InferArgs& in) {
  require_number(in, 0);
  require_axes(op.axes, in[0].rank());
  const bool ordered = op.kind == Reduction::max || op.kind == Reduction::min;
  if (ordered && is_complex(in[0].dtype)) throw InvalidArgument("complex numbers have no order");
  if (op.kind == Reduction::mean && is_integer(in[0].dtype)) {
    throw InvalidArgument(
        fmt::format("x is {}, the mean takes a floating or complex type", name(in[0].dtype)));
  }
  return {in[0].dtype, reduced_shape(in[0].shape, op.axes, op.keep_dims)};
}

void evaluate(const Reduce& op, Evaluation& run) {
  const HostArray& x = run.in(0);
  HostArray& y = run.out();
  std::vector<std::int64_t> kept = x.dims();  // the result's extents with reduced axes as 1
  for (const std::int64_t axis : op.axes) kept[static_cast<std::size_t>(axis)] = 1;
  const std::vector<std::int64_t> strides = broadcast_strides(kept, x.dims());
  visit_numbers(x, [&](auto zero) {
    using T = decltype(zero);
    std::vector<T>& to = y.as<T>();
    std::ranges::fill(to, identity<T>(op.kind, x.dtype()));
    for_each_index(x.dims(), [&](std::span<const std::int64_t> at, std::int64_t i) {
      T& total = to[static_cast<std::size_t>(offset_of(at, strides))];
      total = combine(op.kind, total, x.as<T>()[static_cast<std::size_t>(i)]);
    });
    if (op.kind != Reduction::mean) return;
    // Of no elements the mean is 0 / 0.
    const double count =
        y.size() == 0 ? 1 : static_cast<double>(x.size()) / static_cast<double>(y.size());
    if constexpr (!std::is_integral_v<T>) {
      for (T& v : to) v /= count;
    }
  });
}

constinit const OpDef reduce_def = define<Reduce>({
    .name = "reduce",
    .summary = "Sum, mean, max, min or product over `axes`. Of no elements: 0, NaN, the lowest, "
               "the highest value, 1.",
    .inputs = {"x"},
    .outputs = {"y"},
});

inline namespace v0 {

Value reduce(Value x, Reduction kind, std::vector<std::int64_t> axes, bool keep_dims) {
  axes = normal_axes(axes, x.rank());
  std::sort(axes.begin(), axes.end());
  return x.graph().add1(make_op(reduce_def, Reduce{kind, std::move(axes), keep_dims}), {x});
}
Value sum(Value x, std::vector<std::int64_t> axes, bool keep_dims) {
  return reduce(x, Reduction::sum, std::move(axes), keep_dims);
}
Value mean(Value x, std::vector<std::int64_t> axes, bool keep_dims) {
  return reduce(x, Reduction::mean, std::move(axes), keep_dims);
}

}  // namespace v0
}  // namespace rlx
