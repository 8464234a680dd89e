#include "compiler/passes/raise.h"

#include <cmath>
#include <numbers>

#include "compiler/pattern.h"
#include "ir/leaves.h"
#include "ops/elementwise.h"
#include "ops/norm.h"
#include "ops/reduce.h"
#include "rlx/ops.h"

namespace rlx {
namespace {

// ---- the vocabulary of the patterns

Pattern operator+(const Pattern& a, const Pattern& b) { return Pattern::op(add_def, {a, b}); }
Pattern operator-(const Pattern& a, const Pattern& b) { return Pattern::op(sub_def, {a, b}); }
Pattern operator*(const Pattern& a, const Pattern& b) { return Pattern::op(mul_def, {a, b}); }
Pattern operator/(const Pattern& a, const Pattern& b) { return Pattern::op(div_def, {a, b}); }
Pattern number(double value) { return Pattern::scalar(value); }
Pattern unary(const OpDef& def, const Pattern& x) { return Pattern::op(def, {x}); }

/// x c, or x / (1/c).
Pattern scaled(const Pattern& x, double c) {
  return Pattern::either({x * number(c), x / number(1 / c)});
}

Pattern square(const Pattern& x) {
  return Pattern::either({x * x, Pattern::op(pow_def, {x, number(2)})});
}

Pattern mean_of(const Pattern& x) {
  return Pattern::op(reduce_def, {x}).where([](const Node& node) {
    const auto& op = *node.as<Reduce>();
    return op.kind == Reduction::mean && op.keep_dims && !op.axes.empty();
  });
}

/// x / sqrt(v), in the spellings of exporters.
Pattern over_sqrt(const Pattern& x, const Pattern& v) {
  const Pattern root =
      Pattern::either({unary(sqrt_def, v), Pattern::op(pow_def, {v, number(0.5)})});
  const Pattern inverse =
      Pattern::either({unary(rsqrt_def, v), unary(reciprocal_def, root), number(1) / root,
                       Pattern::op(pow_def, {v, number(-0.5)})});
  return Pattern::either({x / root, x * inverse});
}

// ---- rules

/// What to look for, and what to put there. `build` declines with an absent value.
struct Rule {
  std::string_view name;
  Pattern pattern;
  Value (*build)(const Captures& captures);
};

Value captured(const Captures& c, std::string_view name) { return c.find(name)->second; }

Pattern gelu_erf_pattern() {
  const Pattern x = Pattern::any("x");
  const Pattern gate = unary(erf_def, scaled(x, 1 / std::numbers::sqrt2)) + number(1);
  return Pattern::either({scaled(x * gate, 0.5), x * scaled(gate, 0.5), scaled(x, 0.5) * gate});
}

Pattern gelu_tanh_pattern() {
  const Pattern x = Pattern::any("x");
  const double root = std::sqrt(2 / std::numbers::pi);
  const Pattern cube =
      Pattern::either({Pattern::op(pow_def, {x, number(3)}), x * square(x), square(x) * x});
  const Pattern inner = Pattern::either({
      (x + cube * number(0.044715)) * number(root),
      x * (number(1) + square(x) * number(0.044715)) * number(root),
      x * number(root) * (number(1) + square(x) * number(0.044715)),
      x * number(root) * (number(1) + x * number(0.044715) * x),
  });
  const Pattern gate = unary(tanh_def, inner) + number(1);
  return Pattern::either({scaled(x * gate, 0.5), x * scaled(gate, 0.5), scaled(x, 0.5) * gate});
}

Pattern silu_pattern() {
  const Pattern x = Pattern::any("x");
  const Pattern denominator = number(1) + unary(exp_def, unary(neg_def, x));
  return Pattern::either({x * unary(sigmoid_def, x), x / denominator});
}

Pattern layer_norm_pattern() {
  const Pattern x = Pattern::any("x");
  const Pattern centred = (x - mean_of(x).named("mean")).named("centred");
  // torch subtracts once for the numerator and once for the variance.
  const Pattern variance = mean_of(square(x - mean_of(x))).named("variance");
  return over_sqrt(centred, variance + Pattern::number("epsilon"));
}

Pattern rms_norm_pattern() {
  const Pattern x = Pattern::any("x");
  return over_sqrt(x, mean_of(square(x)).named("variance") + Pattern::number("epsilon"));
}

// The first of the reduced axes if they are the last ones of the tensor.
std::optional<std::int64_t> trailing_axis(Value mean) {
  const auto& axes = mean.node()->as<Reduce>()->axes;
  const auto rank = static_cast<std::int64_t>(mean.node()->input(0).rank());
  for (std::size_t i = 0; i < axes.size(); ++i) {
    if (axes[i] != rank - static_cast<std::int64_t>(axes.size() - i)) return std::nullopt;
  }
  return axes[0];
}

Value build_layer_norm(const Captures& c) {
  const auto axis = trailing_axis(captured(c, "mean"));
  if (!axis || axis != trailing_axis(captured(c, "variance"))) return {};
  return layer_norm(captured(c, "x"), {}, {}, *scalar_of(captured(c, "epsilon")), *axis);
}

Value build_rms_norm(const Captures& c) {
  const auto axis = trailing_axis(captured(c, "variance"));
  if (!axis) return {};
  return rms_norm(captured(c, "x"), {}, *scalar_of(captured(c, "epsilon")), *axis);
}

// A scale or bias of a norm: exactly the extents of the normalised axes.
bool fits_norm(Value weight, Value x, std::int64_t axis) {
  const auto from = static_cast<std::size_t>(axis);
  if (weight.rank() != x.rank() - from) return false;
  for (std::size_t i = 0; i < weight.rank(); ++i) {
    if (weight.shape()[i] != x.shape()[from + i]) return false;
  }
  return true;
}

Pattern norm_of(const OpDef& def, std::vector<Pattern> inputs) {
  return Pattern::op(def, std::move(inputs)).named("norm");
}

Value build_scaled_layer_norm(const Captures& c) {
  const auto& op = *captured(c, "norm").node()->as<LayerNorm>();
  if (!fits_norm(captured(c, "w"), captured(c, "x"), op.axis)) return {};
  return layer_norm(captured(c, "x"), captured(c, "w"), {}, op.epsilon, op.axis);
}

Value build_biased_layer_norm(const Captures& c) {
  const Value norm = captured(c, "norm");
  const auto& op = *norm.node()->as<LayerNorm>();
  if (!fits_norm(captured(c, "b"), captured(c, "x"), op.axis)) return {};
  return layer_norm(captured(c, "x"), norm.node()->input(1), captured(c, "b"), op.epsilon, op.axis);
}

Value build_scaled_rms_norm(const Captures& c) {
  const auto& op = *captured(c, "norm").node()->as<RmsNorm>();
  if (!fits_norm(captured(c, "w"), captured(c, "x"), op.axis)) return {};
  return rms_norm(captured(c, "x"), captured(c, "w"), op.epsilon, op.axis);
}

std::vector<Rule> make_rules() {
  const Pattern x = Pattern::any("x");
  const Pattern w = Pattern::any("w");
  const Pattern b = Pattern::any("b");
  return {
      {"gelu", gelu_erf_pattern(), [](const Captures& c) { return gelu(captured(c, "x")); }},
      {"gelu_tanh", gelu_tanh_pattern(),
       [](const Captures& c) { return gelu_tanh(captured(c, "x")); }},
      {"silu", silu_pattern(), [](const Captures& c) { return silu(captured(c, "x")); }},
      {"layer_norm", layer_norm_pattern(), build_layer_norm},
      {"rms_norm", rms_norm_pattern(), build_rms_norm},
      {"", norm_of(layer_norm_def, {x}) * w, build_scaled_layer_norm},
      {"", norm_of(layer_norm_def, {x}) + b, build_biased_layer_norm},
      {"", norm_of(layer_norm_def, {x, w}) + b, build_biased_layer_norm},
      {"", norm_of(rms_norm_def, {x}) * w, build_scaled_rms_norm},
  };
}

// The first rule that fits the value and gives one of its type.
Value raised(Value value, const std::vector<Rule>& rules, std::string_view* name) {
  for (const Rule& rule : rules) {
    Captures captures;
    if (!rule.pattern.matches(value, captures)) continue;
    const Value result = rule.build(captures);
    if (!result || result.type() != value.type()) continue;
    *name = rule.name;
    return result;
  }
  return {};
}

}  // namespace

bool raise_compositions(Graph& graph, const PassContext& context) {
  static const std::vector<Rule> rules = make_rules();
  bool changed = false;
  for (Node* node : graph.topological_order()) {
    if (node->output_count() != 1) continue;
    graph.set_origin(node->name());
    std::string_view name;
    const Value result = raised(node->output(), rules, &name);
    if (!result) continue;
    graph.replace_uses(node->output(), result);
    if (!name.empty()) context.count("raised " + std::string(name));
    changed = true;
  }
  graph.set_origin({});
  return changed;
}

}  // namespace rlx
