#include <fmt/format.h>

#include <limits>

#include "formats/dense.h"
#include "formats/onnx/handlers.h"
#include "rlx/error.h"
#include "rlx/ops.h"

namespace rlx::onnx {
namespace {

using Values = std::vector<Value>;

/// Folds any number of operands from the left.
template <Value (*F)(Value, Value)>
Values fold(const Site& site) {
  const Values operands = site.inputs();
  if (operands.empty()) throw FormatError("takes one input or more, found 0", site.node.offset);
  Value total = operands[0];
  for (std::size_t i = 1; i < operands.size(); ++i) total = F(total, operands[i]);
  return {total};
}

Value plus(Value a, Value b) { return a + b; }

Values mean_of(const Site& site) {
  return {fold<plus>(site)[0] / static_cast<double>(site.input_count())};
}

// The exponent may have another dtype than the base, whose dtype the result has.
Values power(const Site& site) {
  const Value base = site.input(0);
  const Value exponent = site.input(1);
  if (is_integer(base.dtype()) && is_floating(exponent.dtype())) {
    return {cast(pow(cast(base, exponent.dtype()), exponent), base.dtype())};
  }
  return {pow(base, cast(exponent, base.dtype()))};
}

Values modulus(const Site& site) {
  const Value a = site.input(0);
  const Value b = site.input(1);
  return {site.flag("fmod") ? remainder(a, b) : modulo(a, b)};
}

Values infinite(const Site& site) {
  const Value x = site.input(0);
  const Value zero = scalar(x, 0);
  Value y = is_inf(x);
  if (!site.flag("detect_negative", true)) y = logical_and(y, greater(x, zero));
  if (!site.flag("detect_positive", true)) y = logical_and(y, less(x, zero));
  return {y};
}

Values bit_shift(const Site& site) {
  const std::string_view direction = site.text("direction", "");
  if (direction != "LEFT" && direction != "RIGHT") site.bad_attribute("direction", "LEFT or RIGHT");
  const Value a = site.input(0);
  const Value b = site.input(1);
  return {direction == "LEFT" ? shift_left(a, b) : shift_right(a, b)};
}

Values clip_attributes(const Site& site) {
  Value x = site.input(0);
  constexpr double kMax = std::numeric_limits<float>::max();
  const double low = site.real("min", -kMax);
  const double high = site.real("max", kMax);
  return {clamp(x, scalar(x, low), scalar(x, high))};
}

Values clip(const Site& site) {
  const Value x = site.input(0);
  const Value low = site.optional_input(1);
  const Value high = site.optional_input(2);
  if (low && high) return {clamp(x, low, high)};
  if (low) return {max(x, low)};
  return {high ? min(x, high) : x};
}

Values cast_to(const Site& site) {
  return {cast(site.input(0), dtype_from(static_cast<std::int32_t>(site.required_integer("to")),
                                         site.node.offset))};
}
Values cast_like(const Site& site) { return {cast(site.input(0), site.input(1).dtype())}; }

Values where(const Site& site) { return {select(site.input(0), site.input(1), site.input(2))}; }

Values gelu_of(const Site& site) {
  const std::string_view approximate = site.text("approximate", "none");
  if (approximate == "tanh") return {gelu_tanh(site.input(0))};
  if (approximate != "none") site.bad_attribute("approximate", "none or tanh");
  return {gelu(site.input(0))};
}

Values elu_of(const Site& site) { return {elu(site.input(0), site.real("alpha", 1))}; }
Values celu_of(const Site& site) { return {celu(site.input(0), site.real("alpha", 1))}; }
Values selu_of(const Site& site) {
  return {selu(site.input(0), site.real("alpha", 1.67326319217681884765625),
               site.real("gamma", 1.05070102214813232421875))};
}
Values leaky_relu_of(const Site& site) {
  return {leaky_relu(site.input(0), site.real("alpha", 0.01F))};
}
Values prelu_of(const Site& site) { return {prelu(site.input(0), site.input(1))}; }
Values hard_sigmoid_of(const Site& site) {
  return {hard_sigmoid(site.input(0), site.real("alpha", 0.2F), site.real("beta", 0.5))};
}
Values swish(const Site& site) {
  const Value x = site.input(0);
  const double alpha = site.real("alpha", 1);
  return {alpha == 1 ? silu(x) : x * sigmoid(alpha * x)};
}
Values thresholded_relu(const Site& site) {
  const Value x = site.input(0);
  return {select(greater(x, scalar(x, site.real("alpha", 1))), x, scalar(x, 0))};
}
Values shrink(const Site& site) {
  const Value x = site.input(0);
  const double bias = site.real("bias", 0);
  const double lambda = site.real("lambd", 0.5);
  const Value below = select(less(x, scalar(x, -lambda)), x + bias, scalar(x, 0));
  return {select(greater(x, scalar(x, lambda)), x - bias, below)};
}

Values identity(const Site& site) { return {site.input(0)}; }

Values dropout(const Site& site) {
  const Value x = site.input(0);
  if (site.has(2)) {
    const auto training = site.frame().symbolic.decide(site.input(2));
    if (!training || *training) throw Unsupported("training_mode is not false");
  }
  if (!site.wants_output(1)) return {x};
  return {x, broadcast(scalar(site.graph(), boolean, 1), x.shape())};
}

constexpr HandlerRow kRows[] = {
    {"BitShift", bit_shift},
    {"Cast", cast_to},
    {"CastLike", cast_like},
    {"Celu", celu_of},
    {"Clip", clip_attributes},
    {"Clip", clip, 11},
    {"Dropout", dropout},
    {"Elu", elu_of},
    {"Gelu", gelu_of},
    {"HardSigmoid", hard_sigmoid_of},
    {"Identity", identity},
    {"IsInf", infinite},
    {"LeakyRelu", leaky_relu_of},
    {"Max", fold<max>},
    {"Mean", mean_of},
    {"Min", fold<min>},
    {"Mod", modulus},
    {"PRelu", prelu_of},
    {"Pow", power},
    {"Selu", selu_of},
    {"Shrink", shrink},
    {"Sum", fold<plus>},
    {"Swish", swish},
    {"ThresholdedRelu", thresholded_relu},
    {"Where", where},
};

}  // namespace

std::span<const HandlerRow> elementwise_handlers() { return kRows; }

}  // namespace rlx::onnx
