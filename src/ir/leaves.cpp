#include "ir/leaves.h"

#include "ir/node.h"

namespace rlx {
namespace {

TensorType infer(const Input& op, InferArgs&) { return op.type; }
TensorType infer(const Param& op, InferArgs&) { return op.type; }
TensorType infer(const State& op, InferArgs&) { return op.type; }
TensorType infer(const Constant& op, InferArgs&) {
  return {op.value.dtype(), Shape::of(op.value.dims())};
}
TensorType infer(const Size&, InferArgs&) { return {DType::i64, {}}; }

// `define` looks rules up by argument-dependent lookup, which does not see into anonymous
// namespaces of other scopes; these are in the same one as their callers.
template <class T>
consteval OpDef leaf(std::string_view name, std::string_view summary) {
  OpDef def{.name = name, .summary = summary, .inputs = {}, .outputs = {"y"}};
  def.attributes = &attribute_type<T>;
  def.infer = [](const Op& op, InferArgs& args) -> Types { return {infer(*op.as<T>(), args)}; };
  return def;
}

}  // namespace

constinit const OpDef input_def = leaf<Input>("input", "What a run is given.");
constinit const OpDef param_def = leaf<Param>("param", "A weight, set once before the first run.");
constinit const OpDef state_def = leaf<State>("state", "A tensor that stays between runs.");
constinit const OpDef constant_def =
    leaf<Constant>("constant", "A tensor that is part of the graph.");
constinit const OpDef size_def = leaf<Size>("size", "An extent as an i64 scalar.");

const Tensor* constant_of(Value value) {
  if (!value) return nullptr;
  const auto* constant = value.node()->as<Constant>();
  return constant ? &constant->value : nullptr;
}

}  // namespace rlx
