#include "compiler/passes/fuse_epilogue.h"

#include <algorithm>

#include "compiler/pattern.h"
#include "ops/elementwise.h"

namespace rlx {
namespace {

bool take_activation(const Graph& graph, FusedEpilogue& e) {
  static constexpr std::pair<const OpDef*, FusedActivation> kActivations[] = {
      {&relu_def, FusedActivation::relu},           {&gelu_def, FusedActivation::gelu},
      {&gelu_tanh_def, FusedActivation::gelu_tanh}, {&silu_def, FusedActivation::silu},
      {&sigmoid_def, FusedActivation::sigmoid},     {&tanh_def, FusedActivation::tanh}};
  Node* reader = only_reader(graph, e.result);
  if (reader == nullptr) return false;
  const auto at =
      std::ranges::find_if(kActivations, [&](const auto& a) { return reader->is(*a.first); });
  if (at == std::end(kActivations)) return false;
  e.activation = at->second;
  e.result = reader->output();
  return true;
}

bool take_clamp(const Graph& graph, FusedEpilogue& e) {
  Node* reader = only_reader(graph, e.result);
  if (reader == nullptr || !reader->is(clamp_def) || reader->input(0) != e.result) return false;
  const auto low = scalar_of(reader->input(1));
  const auto high = scalar_of(reader->input(2));
  if (!low || !high || reader->type() != e.result.type()) return false;
  // A limit of NaN makes all results NaN, which the kernels' limits do not.
  if (!(*low <= *high)) return false;
  e.clamp_low = *low;
  e.clamp_high = *high;
  e.result = reader->output();
  return true;
}

// The sum has a single reader, so the residual cannot depend on it.
bool take_residual(const Graph& graph, FusedEpilogue& e) {
  Node* reader = only_reader(graph, e.result);
  if (reader == nullptr) return false;
  const Value other = other_addend(*reader, e.result);
  if (!other || other.type() != e.result.type()) return false;
  e.residual = other;
  e.result = reader->output();
  return true;
}

}  // namespace

Node* only_reader(const Graph& graph, Value value) {
  if (graph.use_count(value) != 1 || graph.is_output(value)) return nullptr;
  return value.node()->uses()[0].user;
}

Value other_addend(const Node& node, Value known) {
  if (!node.is(add_def) || node.type() != known.type()) return {};
  const Value other = node.input(node.input(0) == known ? 1 : 0);
  return other == known ? Value() : other;
}

FusedEpilogue find_epilogue(const Graph& graph, Value sum) {
  FusedEpilogue e;
  e.result = sum;
  e.activation_last = take_residual(graph, e);
  bool activated = take_activation(graph, e);
  activated = take_clamp(graph, e) || activated;
  // The order says nothing without an activation.
  if (!activated) e.activation_last = false;
  if (!e.residual) take_residual(graph, e);
  return e;
}

}  // namespace rlx
