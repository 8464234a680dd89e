#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "formats/onnx/handlers.h"
#include "ir/leaves.h"
#include "ops/host_array.h"
#include "rlx/error.h"
#include "rlx/ops.h"

namespace rlx::onnx {
namespace {

using Values = std::vector<Value>;

Values shape_of(const Site& site) {
  const Shape& shape = site.input(0).shape();
  const auto rank = static_cast<std::int64_t>(shape.rank());
  const auto clamped = [&](std::int64_t axis) {
    return std::clamp<std::int64_t>(axis < 0 ? axis + rank : axis, 0, rank);
  };
  const std::int64_t start = clamped(site.integer("start", 0));
  const std::int64_t end = std::max(start, clamped(site.integer("end", rank)));
  const std::vector<Dim> extents(shape.dims().begin() + start, shape.dims().begin() + end);
  return {symbolic_tensor(site.graph(), i64, extents, {end - start})};
}

Values size_of(const Site& site) {
  return {symbolic_tensor(site.graph(), i64, {site.input(0).shape().element_count()}, {})};
}

template <class T>
Tensor list(const std::vector<T>& values) {
  return {{static_cast<std::int64_t>(values.size())}, std::span<const T>(values)};
}

Tensor constant_tensor(const Site& site) {
  if (const TensorProto* value = site.tensor("value")) return site.importer.tensors().load(*value);
  if (site.has_attribute("value_int")) return {Tensor::Dims{}, {site.integer("value_int", 0)}};
  if (site.has_attribute("value_ints")) return list(site.integers("value_ints"));
  if (site.has_attribute("value_float"))
    return {Tensor::Dims{}, {static_cast<float>(site.real("value_float", 0))}};
  if (site.has_attribute("value_floats")) {
    const std::vector<double> reals = site.reals("value_floats");
    return list(std::vector<float>(reals.begin(), reals.end()));
  }
  if (site.has_attribute("value_string"))
    return Tensor::of_strings({}, {std::string(site.text("value_string", ""))});
  if (site.has_attribute("value_strings")) {
    const auto texts = site.texts("value_strings");
    return Tensor::of_strings({static_cast<std::int64_t>(texts.size())},
                              {texts.begin(), texts.end()});
  }
  throw Unsupported("no value that RLX reads");
}

Values constant(const Site& site) {
  const std::string_view name = site.wants_output(0) ? site.node.outputs[0] : "constant";
  return {site.importer.weight(site.frame(), name, constant_tensor(site))};
}

Values constant_of_shape(const Site& site) {
  Tensor value(Tensor::Dims{}, {0.0F});
  if (const TensorProto* given = site.tensor("value")) {
    value = site.importer.tensors().load(*given);
    if (value.size() != 1) site.bad_attribute("value", "of one element");
    value = value.reshaped({});
  }
  const std::vector<Dim> extents = site.extents(0, "the extents of the result");
  const Value element = site.graph().constant(std::move(value));
  if (extents.empty()) return {element};
  return {broadcast(element, Shape(extents))};
}

double constant_number(const Site& site, std::size_t i, std::string_view what) {
  const Tensor* tensor = constant_of(site.input(i));
  if (tensor == nullptr || tensor->size() != 1)
    throw Unsupported(fmt::format("the {} is a number that depends on data", what));
  return HostArray(*tensor).real(0);
}

Dim real_count(const Site& site) {
  const double start = constant_number(site, 0, "start");
  const double limit = constant_number(site, 1, "limit");
  const double step = constant_number(site, 2, "step");
  const double count = std::ceil((limit - start) / step);
  constexpr double kMost = 9e15;  // whole numbers are exact
  if (!(std::fabs(count) < kMost)) {
    throw ShapeError(fmt::format("from {} to {} by {} are no number of steps", start, limit, step));
  }
  return static_cast<std::int64_t>(std::max(count, 0.0));
}

Dim integer_count(const Site& site) {
  const auto one = [&](std::size_t i, std::string_view what) {
    const std::vector<Dim> found = site.extents(i, what);
    if (found.size() != 1)
      throw ShapeError(fmt::format("{} has {} elements, expected one", what, found.size()));
    return found[0];
  };
  const Dim start = one(0, "start");
  const Dim limit = one(1, "limit");
  const Dim step = one(2, "step");
  if (step.upper_bound() < 0) return max(ceil_div(start - limit, -step), 0);
  if (step.lower_bound() > 0) return max(ceil_div(limit - start, step), 0);
  throw Unsupported(fmt::format("the sign of the step {} is not known", step.to_string()));
}

bool is_number(Value v, double number) {
  const Tensor* tensor = constant_of(v);
  return tensor != nullptr && tensor->size() == 1 && HostArray(*tensor).real(0) == number;
}

Values range(const Site& site) {
  const auto as_scalar = [](Value v) { return v.rank() == 0 ? v : reshape(v, {}); };
  const Value start = as_scalar(site.input(0));
  const Value step = as_scalar(site.input(2));
  const Dim count = is_floating(start.dtype()) ? real_count(site) : integer_count(site);
  Value y = iota(site.graph(), start.dtype(), {count}, 0);
  if (!is_number(step, 1)) y = y * step;
  if (!is_number(start, 0)) y = y + start;
  return {y};
}

constexpr HandlerRow kRows[] = {
    {"Constant", constant}, {"ConstantOfShape", constant_of_shape},
    {"Range", range},       {"Shape", shape_of},
    {"Size", size_of},
};

}  // namespace

std::span<const HandlerRow> shape_handlers() { return kRows; }

}  // namespace rlx::onnx
