#include "compiler/passes/hoist_params.h"

#include <fmt/format.h>

#include <unordered_map>

#include "ir/leaves.h"
#include "ir/node.h"

namespace rlx {
namespace {

/// What a node's value depends on: nothing that changes between runs, and at least one param.
class Invariance {
 public:
  explicit Invariance(const std::vector<Node*>& order) {
    for (const Node* node : order) known_[node] = classify(*node);
  }
  /// Of params, not of constants alone.
  bool is_hoistable(const Node& node) const {
    return known_.at(&node) == Kind::of_params && !node.is(param_def);
  }

 private:
  enum class Kind : std::uint8_t { of_runs, of_constants, of_params };

  Kind classify(const Node& node) const {
    if (node.is(param_def)) return Kind::of_params;
    if (node.is(constant_def)) return Kind::of_constants;
    if (node.inputs().empty() || node.op().def().stateful || !has_static_types(node))
      return Kind::of_runs;
    Kind kind = Kind::of_constants;
    for (const Value v : node.inputs()) {
      if (!v) continue;
      const Kind input = known_.at(v.node());
      if (input == Kind::of_runs) return Kind::of_runs;
      if (input == Kind::of_params) kind = Kind::of_params;
    }
    return kind;
  }

  static bool has_static_types(const Node& node) {
    for (std::size_t i = 0; i < node.output_count(); ++i) {
      if (!node.type(i).shape.is_static()) return false;
    }
    return true;
  }

  std::unordered_map<const Node*, Kind> known_;
};

bool is_read_by_runs(const Graph& graph, Node& node, const Invariance& invariance) {
  if (graph.is_output(node.output())) return true;
  for (const Node::Use& use : node.uses()) {
    if (!invariance.is_hoistable(*use.user)) return true;
  }
  return false;
}

/// Copies the value and all it depends on into a graph of its own.
class Extractor {
 public:
  Graph extract(Value value) {
    graph_.output("y", copy(value));
    return std::move(graph_);
  }

 private:
  Value copy(Value value) {
    if (!value) return {};
    if (const auto at = copies_.find(value.node()); at != copies_.end())
      return at->second[value.index()];
    Node& node = *value.node();
    std::vector<Value> results;
    if (const auto* param = node.as<Param>()) {
      results = {graph_.param(param->name, param->type)};
    } else if (const auto* constant = node.as<Constant>()) {
      results = {graph_.constant(constant->value)};
    } else {
      std::vector<Value> inputs;
      for (const Value v : node.inputs()) inputs.push_back(copy(v));
      graph_.set_origin(node.name());
      results = graph_.add(node.op(), std::move(inputs));
    }
    return (copies_[&node] = std::move(results))[value.index()];
  }

  Graph graph_;
  std::unordered_map<const Node*, std::vector<Value>> copies_;
};

}  // namespace

bool hoist_params(Graph& graph, const PassContext& context) {
  const std::vector<Node*> order = graph.topological_order();
  const Invariance invariance(order);
  bool changed = false;
  for (Node* node : order) {
    if (!invariance.is_hoistable(*node) || node->output_count() != 1) continue;
    if (!is_read_by_runs(graph, *node, invariance)) continue;
    const std::string name = fmt::format("prepared/{}", node->name());
    context.prepared.push_back({name, Extractor().extract(node->output())});
    graph.replace_uses(node->output(), graph.param(name, node->type()));
    context.count("prepared param");
    changed = true;
  }
  return changed;
}

}  // namespace rlx
