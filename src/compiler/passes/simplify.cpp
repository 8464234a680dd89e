#include "compiler/passes/simplify.h"

#include "compiler/pattern.h"
#include "ir/leaves.h"
#include "ops/elementwise.h"
#include "ops/movement.h"
#include "rlx/ops.h"

namespace rlx {
namespace {

bool is_identity(const std::vector<std::int64_t>& permutation) {
  for (std::size_t i = 0; i < permutation.size(); ++i) {
    if (permutation[i] != static_cast<std::int64_t>(i)) return false;
  }
  return true;
}

// x where a constant operand changes nothing and x already has the result's type.
Value neutral_operand(const Node& node) {
  const auto keeps = [&](std::size_t constant, double neutral) {
    const auto found = scalar_of(node.input(constant));
    return found && *found == neutral && node.input(1 - constant).type() == node.type();
  };
  if (node.is(add_def) || node.is(sub_def)) {
    if (keeps(1, 0)) return node.input(0);
    return node.is(add_def) && keeps(0, 0) ? node.input(1) : Value();
  }
  if (node.is(mul_def) || node.is(div_def)) {
    if (keeps(1, 1)) return node.input(0);
    return node.is(mul_def) && keeps(0, 1) ? node.input(1) : Value();
  }
  return node.is(pow_def) && keeps(1, 1) ? node.input(0) : Value();
}

Value simplified_transpose(const Node& node) {
  const auto& outer = node.as<Transpose>()->permutation;
  if (is_identity(outer)) return node.input(0);
  const auto* below = node.input(0).node()->as<Transpose>();
  if (below == nullptr) return {};
  std::vector<std::int64_t> composed;
  for (const std::int64_t axis : outer)
    composed.push_back(below->permutation[static_cast<std::size_t>(axis)]);
  const Value source = node.input(0).node()->input(0);
  return is_identity(composed) ? source : transpose(source, composed);
}

Value simplified_reshape(const Node& node) {
  const Node& below = *node.input(0).node();
  return below.is(reshape_def) ? reshape(below.input(0), node.type().shape) : Value();
}

bool is_whole_slice(const Node& node) {
  const auto* op = node.as<Slice>();
  if (op == nullptr) return false;
  for (std::size_t axis = 0; axis < op->starts.size(); ++axis) {
    const bool forward = op->steps.empty() || op->steps[axis] == 1;
    if (op->starts[axis] != Dim(0) || !forward) return false;
  }
  return node.input(0).type() == node.type();
}

Value simplified(const Node& node) {
  if (node.elementwise() != nullptr) return neutral_operand(node);
  if (node.is(transpose_def)) return simplified_transpose(node);
  const bool same_type =
      !node.inputs().empty() && node.input(0) && node.input(0).type() == node.type();
  if (same_type && (node.is(reshape_def) || node.is(broadcast_def) || node.is(cast_def)))
    return node.input(0);
  if (node.is(reshape_def)) return simplified_reshape(node);
  return is_whole_slice(node) ? node.input(0) : Value();
}

}  // namespace

bool simplify(Graph& graph, const PassContext&) {
  bool changed = false;
  for (Node* node : graph.topological_order()) {
    if (node->output_count() != 1) continue;
    graph.set_origin(node->name());
    const Value value = simplified(*node);
    if (!value) continue;
    graph.replace_uses(node->output(), value);
    changed = true;
  }
  graph.set_origin({});
  return changed;
}

}  // namespace rlx
