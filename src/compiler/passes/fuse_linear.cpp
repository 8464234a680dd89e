#include "compiler/passes/fuse_linear.h"

#include <algorithm>

#include "compiler/fused.h"
#include "compiler/pattern.h"
#include "ir/node.h"
#include "ops/dot_general.h"
#include "ops/elementwise.h"

namespace rlx {
namespace {

using Axes = std::vector<std::int64_t>;

/// A product and what has been taken into it so far.
struct Fusion {
  FusedLinear op;
  Value x, w, bias, residual;
  Value result;  ///< the value that the fused node replaces
};

// x [..., k] times a matrix, contracted on x's last axis.
std::optional<Fusion> product_of(Node& node) {
  const auto* dot = node.as<DotGeneral>();
  if (dot == nullptr || !dot->a_batch.empty() || node.input(1).rank() != 2 ||
      node.input(0).rank() == 0)
    return std::nullopt;
  if (!is_floating(node.type().dtype) ||
      dot->a_contracting != Axes{static_cast<std::int64_t>(node.input(0).rank()) - 1})
    return std::nullopt;
  if (dot->b_contracting.size() != 1) return std::nullopt;
  return Fusion{{.transposed = dot->b_contracting[0] == 1},
                node.input(0),
                node.input(1),
                {},
                {},
                node.output()};
}

// The only reader of a value; none where there are several or it leaves the graph.
Node* only_reader(const Graph& graph, Value value) {
  if (graph.use_count(value) != 1 || graph.is_output(value)) return nullptr;
  return value.node()->uses()[0].user;
}

// The other operand of an addition that keeps the result's type.
Value other_addend(const Node& node, Value known) {
  if (!node.is(add_def) || node.type() != known.type()) return {};
  const Value other = node.input(node.input(0) == known ? 1 : 0);
  return other == known ? Value() : other;
}

bool take_bias(const Graph& graph, Fusion& f) {
  Node* reader = only_reader(graph, f.result);
  if (reader == nullptr) return false;
  const Value bias = other_addend(*reader, f.result);
  if (!bias || bias.rank() != 1 || bias.shape()[0] != f.result.shape().back()) return false;
  f.bias = bias;
  f.result = reader->output();
  return true;
}

void take_activation(const Graph& graph, Fusion& f) {
  static constexpr std::pair<const OpDef*, FusedActivation> kActivations[] = {
      {&relu_def, FusedActivation::relu},           {&gelu_def, FusedActivation::gelu},
      {&gelu_tanh_def, FusedActivation::gelu_tanh}, {&silu_def, FusedActivation::silu},
      {&sigmoid_def, FusedActivation::sigmoid},     {&tanh_def, FusedActivation::tanh}};
  const Node* reader = only_reader(graph, f.result);
  if (reader == nullptr) return;
  const auto at =
      std::ranges::find_if(kActivations, [&](const auto& a) { return reader->is(*a.first); });
  if (at == std::end(kActivations)) return;
  f.op.activation = at->second;
  f.result = const_cast<Node*>(reader)->output();
}

// The product has a single reader, so the residual cannot depend on it.
void take_residual(const Graph& graph, Fusion& f) {
  Node* reader = only_reader(graph, f.result);
  if (reader == nullptr) return;
  const Value other = other_addend(*reader, f.result);
  if (!other || other.type() != f.result.type()) return;
  f.residual = other;
  f.result = reader->output();
}

}  // namespace

bool fuse_linear(Graph& graph, const PassContext& context) {
  if (!context.target.has_kernels(fused_linear_def)) return false;
  bool changed = false;
  for (Node* node : graph.topological_order()) {
    auto fusion = product_of(*node);
    if (!fusion || fusion->result.dtype() != DType::f32) continue;
    take_bias(graph, *fusion);
    take_activation(graph, *fusion);
    take_residual(graph, *fusion);
    graph.set_origin(node->name());
    const Value y = graph.add1(make_op(fused_linear_def, fusion->op),
                               {fusion->x, fusion->w, fusion->bias, fusion->residual});
    graph.replace_uses(fusion->result, y);
    context.count("fused linear");
    changed = true;
  }
  graph.set_origin({});
  return changed;
}

}  // namespace rlx
