#include "compiler/passes/join_linear.h"

#include <algorithm>

#include "compiler/fused.h"
#include "ir/leaves.h"
#include "ir/node.h"
#include "rlx/ops.h"

namespace rlx {
namespace {

bool is_param(Value v) { return v && v.node()->is(param_def); }

// A bare product with a weight, with or without a bias.
bool is_plain(const Node& node) {
  const auto* op = node.as<FusedLinear>();
  if (op == nullptr || op->activation != FusedActivation::none || node.input(3)) return false;
  return is_param(node.input(1)) && (!node.input(2) || is_param(node.input(2)));
}

// Products of the same value that may become one, in the order of their nodes.
std::vector<Node*> siblings_of(Node& first) {
  std::vector<Node*> group;
  for (const Node::Use& use : first.input(0).node()->uses()) {
    Node* node = use.user;
    if (use.input != 0 || !is_plain(*node) || node->input(0) != first.input(0)) continue;
    const bool alike = node->op() == first.op() &&
                       static_cast<bool>(node->input(2)) == static_cast<bool>(first.input(2));
    if (alike) group.push_back(node);
  }
  std::ranges::sort(group, {}, &Node::id);
  return group;
}

void join(Graph& graph, const std::vector<Node*>& group) {
  const auto& op = *group[0]->as<FusedLinear>();
  std::vector<Value> weights;
  std::vector<Value> biases;
  for (const Node* node : group) {
    weights.push_back(node->input(1));
    if (node->input(2)) biases.push_back(node->input(2));
  }
  const Value w = concat(weights, op.transposed ? 0 : 1);
  const Value bias = biases.empty() ? Value() : concat(biases, 0);
  const Value joined = graph.add1(make_op(fused_linear_def, op), {group[0]->input(0), w, bias});
  const auto last = static_cast<std::int64_t>(joined.rank()) - 1;
  Dim from = 0;
  for (Node* node : group) {
    const Dim columns = node->type().shape.back();
    graph.replace_uses(node->output(), slice_axis(joined, last, from, columns));
    from = from + columns;
  }
}

}  // namespace

bool join_linear(Graph& graph, const PassContext& context) {
  bool changed = false;
  for (Node* node : graph.topological_order()) {
    if (!is_plain(*node) || graph.use_count(node->output()) == 0) continue;
    const std::vector<Node*> group = siblings_of(*node);
    if (group.size() < 2) continue;
    graph.set_origin(node->name());
    join(graph, group);
    context.count("joined linear");
    changed = true;
  }
  graph.set_origin({});
  return changed;
}

}  // namespace rlx
