#include <fmt/format.h>

#include "formats/onnx/handlers.h"
#include "ops/infer.h"
#include "rlx/error.h"
#include "rlx/ops.h"

namespace rlx::onnx {
namespace {

using Values = std::vector<Value>;

void require_only_first_output(const Site& site) {
  for (std::size_t i = 1; i < site.node.outputs.size(); ++i) {
    if (site.wants_output(i)) throw Unsupported(fmt::format("its output {} is used", i));
  }
}

Values batch_norm_of(const Site& site) {
  if (site.flag("training_mode")) throw Unsupported("training_mode is 1");
  if (!site.flag("spatial", true)) throw Unsupported("spatial is 0");
  require_only_first_output(site);
  return {batch_norm(site.input(0), site.input(1), site.input(2), site.input(3), site.input(4),
                     site.real("epsilon", 1e-5F))};
}

/// Scale and bias with the extents of the axes from `axis` on, which ONNX lets broadcast.
Value stretched(Value weight, Value x, std::int64_t axis) {
  if (!weight) return weight;
  const Shape to(std::vector<Dim>(x.shape().dims().begin() + axis, x.shape().dims().end()));
  return weight.shape() == to ? weight : broadcast(weight, to);
}

Values layer_norm_of(const Site& site) {
  require_only_first_output(site);
  const Value x = site.input(0);
  const std::int64_t axis = normal_axis(site.integer("axis", -1), x.rank());
  return {layer_norm(x, stretched(site.input(1), x, axis),
                     stretched(site.optional_input(2), x, axis), site.real("epsilon", 1e-5F),
                     axis)};
}

Values rms_norm_of(const Site& site) {
  const Value x = site.input(0);
  const std::int64_t axis = normal_axis(site.integer("axis", -1), x.rank());
  return {rms_norm(x, stretched(site.input(1), x, axis), site.real("epsilon", 1e-5F), axis)};
}

std::int64_t channels_of(Value scale) {
  const auto extents = scale.shape().static_extents();
  if (!extents || extents->size() != 1) {
    throw ShapeError(
        fmt::format("scale is {}, expected one known extent", to_string(scale.shape())));
  }
  return extents->front();
}

// A group of one channel.
Values instance_norm(const Site& site) {
  const Value scale = site.input(1);
  return {group_norm(site.input(0), scale, site.input(2), channels_of(scale),
                     site.real("epsilon", 1e-5F))};
}

Values group_norm_of(const Site& site) {
  return {group_norm(site.input(0), site.input(1), site.input(2),
                     site.required_integer("num_groups"), site.real("epsilon", 1e-5F))};
}

// At first scale and bias had one element a group.
Values group_norm_by_group(const Site& site) {
  const Value x = site.input(0);
  const std::int64_t groups = site.required_integer("num_groups");
  if (groups < 1 || x.rank() < 2) site.bad_attribute("num_groups", "at least 1");
  const Dim channels = x.shape()[1];
  const auto by_channel = [&](Value v) {
    return reshape(broadcast(unsqueeze(v, {1}), {groups, floor_div(channels, groups)}), {channels});
  };
  return {group_norm(x, by_channel(site.input(1)), by_channel(site.input(2)), groups,
                     site.real("epsilon", 1e-5F))};
}

Values lp_norm(const Site& site) {
  const Value x = site.input(0);
  const std::int64_t axis = site.integer("axis", -1);
  const std::int64_t p = site.integer("p", 2);
  if (p != 1 && p != 2) site.bad_attribute("p", "1 or 2");
  const Value norm = p == 1 ? sum(abs(x), {axis}, true) : sqrt(sum(x * x, {axis}, true));
  // Of zeros the result is zeros.
  return {select(equal(norm, scalar(x, 0)), scalar(x, 0), x / norm)};
}

constexpr HandlerRow kRows[] = {
    {"BatchNormalization", batch_norm_of},     {"GroupNormalization", group_norm_by_group},
    {"GroupNormalization", group_norm_of, 21}, {"InstanceNormalization", instance_norm},
    {"LayerNormalization", layer_norm_of},     {"LpNormalization", lp_norm},
    {"RMSNormalization", rms_norm_of},
};

}  // namespace

std::span<const HandlerRow> norm_handlers() { return kRows; }

}  // namespace rlx::onnx
