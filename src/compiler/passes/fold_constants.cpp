#include "compiler/passes/fold_constants.h"

#include "ir/leaves.h"
#include "ir/node.h"
#include "ops/evaluate.h"
#include "ops/symbolic.h"

namespace rlx {
namespace {

constexpr std::size_t kMaxBytes = 1024;

bool is_small(const TensorType& type) {
  const auto count = type.shape.element_count().constant();
  if (!type.shape.is_static() || !count || type.dtype == DType::string || is_block(type.dtype))
    return false;
  return byte_size(type.dtype, static_cast<std::size_t>(*count)) <= kMaxBytes;
}

bool has_only_constants(const Node& node) {
  if (node.inputs().empty()) return false;
  for (const Value v : node.inputs()) {
    if (v && constant_of(v) == nullptr) return false;
  }
  return true;
}

// A data fault (division by zero, an index out of range) is left for the run to report.
std::optional<Tensor> evaluated(const Node& node) {
  std::vector<HostArray> arrays;
  for (const Value v : node.inputs())
    arrays.push_back(v ? HostArray(*constant_of(v)) : HostArray());
  std::vector<const HostArray*> inputs;
  for (std::size_t i = 0; i < arrays.size(); ++i)
    inputs.push_back(node.inputs()[i] ? &arrays[i] : nullptr);
  try {
    return evaluate_op(node.op(), inputs)[0].to_tensor();
  } catch (const IndexError&) {
    return std::nullopt;
  }
}

Value folded(Graph& graph, Node& node) {
  if (node.output_count() != 1 || node.op().def().stateful || node.is(size_def)) return {};
  if (has_only_constants(node) && is_small(node.type())) {
    if (auto value = evaluated(node)) return graph.constant(std::move(*value));
  }
  if (node.type() != TensorType{DType::i64, {}} || node.inputs().empty()) return {};
  const auto elements = symbolic_value(node.output());
  if (!elements || elements->size() != 1) return {};
  const Dim extent = (*elements)[0];
  return extent.is_constant()
             ? graph.constant(
                   Tensor(Tensor::Dims{}, std::initializer_list<std::int64_t>{*extent.constant()}))
             : graph.size(extent);
}

}  // namespace

bool fold_constants(Graph& graph, const PassContext&) {
  bool changed = false;
  for (Node* node : graph.topological_order()) {
    const Value value = folded(graph, *node);
    if (!value) continue;
    graph.replace_uses(node->output(), value);
    changed = true;
  }
  return changed;
}

}  // namespace rlx
