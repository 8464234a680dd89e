#include "compiler/passes/legalise.h"

#include <fmt/format.h>

#include "ir/leaves.h"

namespace rlx {
namespace {

bool is_leaf(const Node& node) {
  return node.is(input_def) || node.is(param_def) || node.is(constant_def) || node.is(size_def) ||
         node.is(state_def);
}

// Replaces the node by its decomposition.
void decompose_node(Graph& graph, Node& node) {
  const std::string origin = graph.origin();
  graph.set_origin(node.name());
  const std::vector<Value> values = node.op().def().decompose(node.op(), node.inputs());
  graph.set_origin(origin);
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (values[i]) graph.replace_uses(node.output(i), values[i]);
  }
}

}  // namespace

bool legalise(Graph& graph, const PassContext& context) {
  bool changed = false;
  // A decomposition may hold composites in turn: each round goes one level deeper.
  for (int round = 0; round < 8; ++round) {
    std::string refused;
    bool decomposed = false;
    for (Node* node : graph.topological_order()) {
      std::string why;
      if (is_leaf(*node) || context.target.claims(*node, &why)) continue;
      if (node->op().def().decompose != nullptr) {
        decompose_node(graph, *node);
        decomposed = true;
        continue;
      }
      refused += fmt::format("\n  {} ({} {}): {}", node->name(), node->op().name(),
                             to_string(node->type()), why);
    }
    if (!refused.empty())
      throw Unsupported(fmt::format("{} has no kernel for:{}", context.target.device(), refused));
    if (!decomposed) return changed;
    graph.prune();
    changed = true;
  }
  throw InternalError("decompositions do not end");
}

}  // namespace rlx
