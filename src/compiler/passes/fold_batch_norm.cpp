#include "compiler/passes/fold_batch_norm.h"

#include "compiler/passes/fuse_epilogue.h"
#include "ir/leaves.h"
#include "ir/node.h"
#include "ops/conv.h"
#include "ops/norm.h"
#include "rlx/ops.h"

namespace rlx {
namespace {

constexpr int kMaxDepth = 8;  // of expressions over weights

/// Whether the value (none counts) is the same in all runs. Deep expressions count as not.
bool is_invariant(Value value, int depth = kMaxDepth) {
  if (!value) return true;
  const Node& node = *value.node();
  if (node.is(param_def) || node.is(constant_def)) return true;
  if (depth == 0 || node.inputs().empty() || node.op().def().stateful) return false;
  for (const Value v : node.inputs()) {
    if (!is_invariant(v, depth - 1)) return false;
  }
  return true;
}

bool all_invariant(const Node& node, std::size_t from) {
  for (std::size_t i = from; i < node.inputs().size(); ++i) {
    if (!is_invariant(node.input(i))) return false;
  }
  return true;
}

// The batch norm over the channels of a convolution, as the only reader of it.
Node* foldable_norm(const Graph& graph, Node& conv) {
  const DType dtype = conv.type().dtype;
  if (dtype != DType::f32 && dtype != DType::f64)
    return nullptr;  // narrow weights would round twice
  Node* norm = only_reader(graph, conv.output());
  const BatchNorm* op = norm == nullptr ? nullptr : norm->as<BatchNorm>();
  if (op == nullptr || op->axis != 1 || norm->input(0) != conv.output()) return nullptr;
  return all_invariant(conv, 1) && all_invariant(*norm, 1) ? norm : nullptr;
}

Value input(const Node& node, std::size_t i) {
  return i < node.inputs().size() ? node.input(i) : Value();
}

// y = (conv(x, w) + b - mean) factor + bias, with factor = scale / sqrt(variance + epsilon).
Value folded(Graph& graph, const Node& conv, const Node& norm) {
  const Value w = conv.input(1);
  const Value mean = norm.input(3);
  const Value variance = norm.input(4);
  Value factor = rsqrt(variance + scalar(variance, norm.as<BatchNorm>()->epsilon));
  if (input(norm, 1)) factor = factor * norm.input(1);
  Value bias = (input(conv, 2) ? conv.input(2) - mean : -mean) * factor;
  if (input(norm, 2)) bias = bias + norm.input(2);
  Shape rows{w.shape()[0]};
  while (rows.rank() < w.rank()) rows.push_back(1);
  return graph.add1(conv.op(), {conv.input(0), w * reshape(factor, rows), bias});
}

}  // namespace

bool fold_batch_norm(Graph& graph, const PassContext& context) {
  bool changed = false;
  for (Node* node : graph.topological_order()) {
    if (!node->is(conv_def)) continue;
    Node* norm = foldable_norm(graph, *node);
    if (norm == nullptr) continue;
    graph.set_origin(node->name());
    graph.replace_uses(norm->output(), folded(graph, *node, *norm));
    context.count("folded batch norm");
    changed = true;
  }
  graph.set_origin({});
  return changed;
}

}  // namespace rlx
