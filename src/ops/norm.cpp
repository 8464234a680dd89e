#include "ops/norm.h"

#include <fmt/format.h>

#include <cmath>
#include <numeric>

#include "ir/node.h"
#include "ops/host_array.h"
#include "ops/infer.h"
#include "rlx/ops.h"

namespace rlx {
namespace {

void require_epsilon(double epsilon) {
  if (!(epsilon >= 0))
    throw InvalidArgument(fmt::format("epsilon is {}, expected 0 or more", epsilon));
}

Shape trailing_shape(const Shape& shape, std::int64_t axis) {
  return Shape(std::vector<Dim>(shape.begin() + axis, shape.end()));
}

// A scale or bias: of x's dtype and of this shape.
void require_weights(InferArgs& in, std::initializer_list<std::size_t> inputs, const Shape& shape) {
  for (const std::size_t i : inputs) {
    if (!in.has(i)) continue;
    require_same_dtype(in, 0, i);
    require_shape(in, i, shape);
  }
}

TensorType infer_trailing_norm(std::int64_t axis, double epsilon, InferArgs& in) {
  require_floating(in, 0);
  require_axis(axis, in[0].rank());
  require_epsilon(epsilon);
  require_weights(in, {1, 2}, trailing_shape(in[0].shape, axis));
  return in[0];
}

double mean_of(std::span<const double> x) {
  return std::accumulate(x.begin(), x.end(), 0.0) / static_cast<double>(x.size());
}

// The mean of the squared distances from `centre`.
double moment(std::span<const double> x, double centre) {
  double total = 0;
  for (const double v : x) total += (v - centre) * (v - centre);
  return total / static_cast<double>(x.size());
}

double weight(const Evaluation& run, std::size_t input, std::size_t i, double absent) {
  return run.has(input) ? run.in(input).as<double>()[i] : absent;
}

std::vector<std::int64_t> axes_from(std::int64_t first, std::size_t rank) {
  std::vector<std::int64_t> axes(rank - static_cast<std::size_t>(first));
  std::iota(axes.begin(), axes.end(), first);
  return axes;
}

Value optional_input(std::span<const Value> in, std::size_t i) {
  return i < in.size() ? in[i] : Value();
}

Value scaled(Value y, Value scale, Value bias) {
  if (scale) y = y * scale;
  return bias ? y + bias : y;
}

// A vector over `axis` of a tensor of that rank.
Value along_axis(Value v, std::int64_t axis, std::size_t rank) {
  if (!v) return v;
  Shape shape(std::vector<Dim>(rank, Dim(1)));
  shape[static_cast<std::size_t>(axis)] = v.shape()[0];
  return reshape(v, shape);
}

}  // namespace

// ---------------------------------------------------------------- layer norm, RMS norm

TensorType infer(const LayerNorm& op, InferArgs& in) {
  return infer_trailing_norm(op.axis, op.epsilon, in);
}
TensorType infer(const RmsNorm& op, InferArgs& in) {
  return infer_trailing_norm(op.axis, op.epsilon, in);
}

namespace {

void evaluate_rows(std::int64_t axis, double epsilon, bool centre, Evaluation& run) {
  const std::vector<double>& x = run.in(0).as<double>();
  std::vector<double>& y = run.out().as<double>();
  const auto& dims = run.in(0).dims();
  std::size_t length = 1;
  for (std::size_t i = static_cast<std::size_t>(axis); i < dims.size(); ++i)
    length *= static_cast<std::size_t>(dims[i]);
  if (length == 0) return;
  for (std::size_t row = 0; row < x.size() / length; ++row) {
    const std::span<const double> from(x.data() + row * length, length);
    const double mean = centre ? mean_of(from) : 0;
    const double scale = 1 / std::sqrt(moment(from, mean) + epsilon);
    for (std::size_t i = 0; i < length; ++i) {
      y[row * length + i] = (from[i] - mean) * scale * weight(run, 1, i, 1) + weight(run, 2, i, 0);
    }
  }
}

}  // namespace

void evaluate(const LayerNorm& op, Evaluation& run) {
  evaluate_rows(op.axis, op.epsilon, true, run);
}
void evaluate(const RmsNorm& op, Evaluation& run) {
  evaluate_rows(op.axis, op.epsilon, false, run);
}

Value decompose(const LayerNorm& op, std::span<const Value> in) {
  const auto axes = axes_from(op.axis, in[0].rank());
  const Value centred = in[0] - mean(in[0], axes, true);
  const Value variance = mean(centred * centred, axes, true);
  return scaled(centred / sqrt(variance + op.epsilon), optional_input(in, 1),
                optional_input(in, 2));
}

Value decompose(const RmsNorm& op, std::span<const Value> in) {
  const Value squares = mean(in[0] * in[0], axes_from(op.axis, in[0].rank()), true);
  return scaled(in[0] / sqrt(squares + op.epsilon), optional_input(in, 1), {});
}

constinit const OpDef layer_norm_def = define<LayerNorm>({
    .name = "layer_norm",
    .summary = "(x - mean) / sqrt(variance + epsilon), times scale, plus bias; statistics over the "
               "axes from `axis` on.",
    .inputs = {"x", "scale?", "bias?"},
    .outputs = {"y"},
});
constinit const OpDef rms_norm_def = define<RmsNorm>({
    .name = "rms_norm",
    .summary =
        "x / sqrt(mean of squares + epsilon), times scale; the mean over the axes from `axis` on.",
    .inputs = {"x", "scale?"},
    .outputs = {"y"},
});

// ---------------------------------------------------------------- group norm

TensorType infer(const GroupNorm& op, InferArgs& in) {
  require_floating(in, 0);
  require_rank_at_least(in, 0, 2);
  require_epsilon(op.epsilon);
  const Dim channels = in[0].shape[1];
  const bool divides = op.groups > 0 && mod(channels, op.groups) == Dim(0);
  if (!divides)
    throw ShapeError(fmt::format("{} groups do not divide the {} channels of x", op.groups,
                                 channels.to_string()));
  require_weights(in, {1, 2}, {channels});
  return in[0];
}

void evaluate(const GroupNorm& op, Evaluation& run) {
  const std::vector<double>& x = run.in(0).as<double>();
  std::vector<double>& y = run.out().as<double>();
  if (x.empty()) return;
  const auto& dims = run.in(0).dims();
  const auto channels = static_cast<std::size_t>(dims[1]);
  const std::size_t spatial = x.size() / (static_cast<std::size_t>(dims[0]) * channels);
  const std::size_t length = channels / static_cast<std::size_t>(op.groups) * spatial;
  for (std::size_t group = 0; group < x.size() / length; ++group) {
    const std::span<const double> from(x.data() + group * length, length);
    const double mean = mean_of(from);
    const double scale = 1 / std::sqrt(moment(from, mean) + op.epsilon);
    for (std::size_t i = 0; i < length; ++i) {
      const std::size_t channel = (group * length + i) / spatial % channels;
      y[group * length + i] =
          (from[i] - mean) * scale * weight(run, 1, channel, 1) + weight(run, 2, channel, 0);
    }
  }
}

Value decompose(const GroupNorm& op, std::span<const Value> in) {
  const Shape& shape = in[0].shape();
  Dim rest = floor_div(shape[1], op.groups);
  for (std::size_t axis = 2; axis < shape.rank(); ++axis) rest = rest * shape[axis];
  const Value grouped = reshape(in[0], {shape[0], op.groups, rest});
  const Value y = reshape(layer_norm(grouped, {}, {}, op.epsilon, 2), shape);
  return scaled(y, along_axis(optional_input(in, 1), 1, shape.rank()),
                along_axis(optional_input(in, 2), 1, shape.rank()));
}

constinit const OpDef group_norm_def = define<GroupNorm>({
    .name = "group_norm",
    .summary =
        "Normalises each run of channels of each sample, then scales and shifts each channel.",
    .inputs = {"x", "scale?", "bias?"},
    .outputs = {"y"},
});

// ---------------------------------------------------------------- batch norm

TensorType infer(const BatchNorm& op, InferArgs& in) {
  require_floating(in, 0);
  require_axis(op.axis, in[0].rank());
  require_epsilon(op.epsilon);
  require_weights(in, {1, 2, 3, 4}, {in[0].shape[static_cast<std::size_t>(op.axis)]});
  return in[0];
}

void evaluate(const BatchNorm& op, Evaluation& run) {
  const AxisView v = fold_axis(run.in(0).dims(), op.axis);
  for (std::int64_t o = 0; o < v.outer; ++o) {
    for (std::int64_t k = 0; k < v.length; ++k) {
      const auto channel = static_cast<std::size_t>(k);
      const double scale =
          weight(run, 1, channel, 1) / std::sqrt(weight(run, 4, channel, 1) + op.epsilon);
      for (std::int64_t i = 0; i < v.inner; ++i) {
        const auto at = static_cast<std::size_t>(v.at(o, k, i));
        run.out().as<double>()[at] =
            (run.in(0).as<double>()[at] - weight(run, 3, channel, 0)) * scale +
            weight(run, 2, channel, 0);
      }
    }
  }
}

Value decompose(const BatchNorm& op, std::span<const Value> in) {
  const auto channel = [&](Value v) { return along_axis(v, op.axis, in[0].rank()); };
  Value factor = rsqrt(in[4] + op.epsilon);
  if (in[1]) factor = in[1] * factor;
  const Value y = (in[0] - channel(in[3])) * channel(factor);
  return in[2] ? y + channel(in[2]) : y;
}

constinit const OpDef batch_norm_def = define<BatchNorm>({
    .name = "batch_norm",
    .summary = "(x - mean) / sqrt(variance + epsilon) scale + bias, with given statistics of each "
               "channel.",
    .inputs = {"x", "scale?", "bias?", "mean", "variance"},
    .outputs = {"y"},
});

// ---------------------------------------------------------------- builders

inline namespace v0 {

Value layer_norm(Value x, Value scale, Value bias, double epsilon, std::int64_t axis) {
  return x.graph().add1(make_op(layer_norm_def, LayerNorm{normal_axis(axis, x.rank()), epsilon}),
                        {x, scale, bias});
}
Value rms_norm(Value x, Value scale, double epsilon, std::int64_t axis) {
  return x.graph().add1(make_op(rms_norm_def, RmsNorm{normal_axis(axis, x.rank()), epsilon}),
                        {x, scale});
}
Value group_norm(Value x, Value scale, Value bias, std::int64_t groups, double epsilon) {
  return x.graph().add1(make_op(group_norm_def, GroupNorm{groups, epsilon}), {x, scale, bias});
}
Value batch_norm(Value x, Value scale, Value bias, Value mean, Value variance, double epsilon,
                 std::int64_t axis) {
  return x.graph().add1(make_op(batch_norm_def, BatchNorm{normal_axis(axis, x.rank()), epsilon}),
                        {x, scale, bias, mean, variance});
}

}  // namespace v0
}  // namespace rlx
