#include "compiler/passes/merge_duplicates.h"

#include <unordered_map>

#include "ir/leaves.h"
#include "ir/node.h"

namespace rlx {
namespace {

std::uint64_t hash_of(const Node& node) {
  std::uint64_t h = node.op().hash();
  for (const Value v : node.inputs()) {
    h = hash_mix(h, v ? v.node()->id() * 31 + v.index() : ~std::uint64_t{0});
  }
  return h;
}

bool is_candidate(const Node& node) {
  return !node.op().def().stateful && !node.is(input_def) && !node.is(param_def) &&
         !node.is(state_def);
}

}  // namespace

bool merge_duplicates(Graph& graph, const PassContext&) {
  bool changed = false;
  std::unordered_multimap<std::uint64_t, Node*> seen;
  for (Node* node : graph.topological_order()) {
    if (!is_candidate(*node)) continue;
    const std::uint64_t h = hash_of(*node);
    Node* twin = nullptr;
    const auto [from, to] = seen.equal_range(h);
    for (auto at = from; at != to && twin == nullptr; ++at) {
      if (at->second->op() == node->op() && at->second->inputs() == node->inputs())
        twin = at->second;
    }
    if (twin == nullptr) {
      seen.emplace(h, node);
      continue;
    }
    for (std::size_t i = 0; i < node->output_count(); ++i)
      graph.replace_uses(node->output(i), twin->output(i));
    changed = true;
  }
  return changed;
}

}  // namespace rlx
