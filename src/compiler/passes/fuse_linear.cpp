#include "compiler/passes/fuse_linear.h"

#include "compiler/fused.h"
#include "compiler/passes/fuse_epilogue.h"
#include "ir/node.h"
#include "ops/dot_general.h"

namespace rlx {
namespace {

using Axes = std::vector<std::int64_t>;

/// A product and what has been taken into it so far.
struct Fusion {
  FusedLinear op;
  Value x, w, bias;
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
  return Fusion{
      {.transposed = dot->b_contracting[0] == 1}, node.input(0), node.input(1), {}, node.output()};
}

void take_bias(const Graph& graph, Fusion& f) {
  Node* reader = only_reader(graph, f.result);
  if (reader == nullptr) return;
  const Value bias = other_addend(*reader, f.result);
  if (!bias || bias.rank() != 1 || bias.shape()[0] != f.result.shape().back()) return;
  f.bias = bias;
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
    const FusedEpilogue epilogue = find_epilogue(graph, fusion->result);
    epilogue.set(fusion->op);
    graph.set_origin(node->name());
    const Value y = graph.add1(make_op(fused_linear_def, fusion->op),
                               {fusion->x, fusion->w, fusion->bias, epilogue.residual});
    graph.replace_uses(epilogue.result, y);
    context.count("fused linear");
    changed = true;
  }
  graph.set_origin({});
  return changed;
}

}  // namespace rlx
