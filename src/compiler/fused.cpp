#include "compiler/fused.h"

#include <fmt/format.h>

#include <cmath>

#include "ir/leaves.h"
#include "ir/node.h"
#include "ops/all_ops.h"
#include "ops/elementwise.h"
#include "ops/host_array.h"
#include "ops/infer.h"
#include "rlx/ops.h"

namespace rlx {
namespace {

Value activated(FusedActivation activation, Value x) {
  using Function = Value (*)(Value);
  constexpr Function kFunctions[] = {nullptr, relu, gelu, gelu_tanh, silu, sigmoid, tanh};
  const Function f = kFunctions[static_cast<std::size_t>(activation)];
  return f == nullptr ? x : f(x);
}

// What follows the contraction; `op` is a FusedLinear or a FusedConv.
template <class Fused>
Value epilogue(const Fused& op, Value y, Value residual) {
  if (residual && op.activation_last) y = y + residual;
  y = activated(op.activation, y);
  const bool clamps = op.clamp_low != -INFINITY || op.clamp_high != INFINITY;
  if (clamps) y = clamp(y, scalar(y, op.clamp_low), scalar(y, op.clamp_high));
  if (residual && !op.activation_last) y = y + residual;
  return y;
}

Value input(std::span<const Value> inputs, std::size_t i) {
  return i < inputs.size() ? inputs[i] : Value();
}

}  // namespace

// ---------------------------------------------------------------- linear

TensorType infer(const FusedLinear& op, InferArgs& in) {
  require_floating(in, 0);
  require_same_dtype(in, 0, 1);
  require_rank_at_least(in, 0, 1);
  require_rank(in, 1, 2);
  const Shape& w = in[1].shape;
  in.same(in[0].shape.back(), w[op.transposed ? 1 : 0], "inner dimensions");
  Shape y = in[0].shape;
  y[y.rank() - 1] = w[op.transposed ? 0 : 1];
  if (in.has(2)) require_shape(in, 2, {y.back()});
  if (in.has(3)) require_shape(in, 3, y);
  return {in[0].dtype, y};
}

Value decompose(const FusedLinear& op, std::span<const Value> in) {
  const Value w = op.transposed ? transpose(in[1], {1, 0}) : in[1];
  Value y = matmul(in[0], w);
  if (input(in, 2)) y = y + in[2];
  return epilogue(op, y, input(in, 3));
}

constinit const OpDef fused_linear_def = define<FusedLinear>({
    .name = "fused_linear",
    .summary = "A matmul with a weight matrix, and bias, activation, clamp and residual in the "
               "same kernel.",
    .inputs = {"x", "w", "bias?", "residual?"},
    .outputs = {"y"},
});

// ---------------------------------------------------------------- convolution

TensorType infer(const FusedConv& op, InferArgs& in) {
  const Op plain =
      make_op(conv_def, Conv{op.strides, op.padding_low, op.padding_high, op.dilations, op.groups});
  TensorType y = conv_def.infer(plain, in)[0];
  if (in.has(3)) require_shape(in, 3, y.shape);
  return y;
}

Value decompose(const FusedConv& op, std::span<const Value> in) {
  const ConvOptions options{op.strides, op.padding_low, op.padding_high, op.dilations, op.groups};
  return epilogue(op, conv(in[0], in[1], input(in, 2), options), input(in, 3));
}

constinit const OpDef fused_conv_def = define<FusedConv>({
    .name = "fused_conv",
    .summary = "A convolution with bias, activation, clamp and residual in the same kernel.",
    .inputs = {"x", "w", "bias?", "residual?"},
    .outputs = {"y"},
});

// ---------------------------------------------------------------- residual and norm

Types infer(const FusedAddNorm&, InferArgs& in) {
  require_floating(in, 0);
  require_same_dtype(in, 0, 1);
  require_rank_at_least(in, 0, 1);
  require_shape(in, 1, in[0].shape);
  for (const std::size_t i : {std::size_t{2}, std::size_t{3}}) {
    if (in.has(i)) require_shape(in, i, {in[0].shape.back()});
  }
  return {in[0], in[0]};
}

std::vector<Value> decompose(const FusedAddNorm& op, std::span<const Value> in) {
  const Value total = in[0] + in[1];
  const Value y = op.rms ? rms_norm(total, input(in, 2), op.epsilon)
                         : layer_norm(total, input(in, 2), input(in, 3), op.epsilon);
  return {y, total};
}

constinit const OpDef fused_add_norm_def = define<FusedAddNorm>({
    .name = "fused_add_norm",
    .summary = "x + residual, and a layer or RMS norm of it over the last axis.",
    .inputs = {"x", "residual", "scale?", "bias?"},
    .outputs = {"y", "sum"},
});

// ---------------------------------------------------------------- regions

Types infer(const Region& op, InferArgs& in) {
  if (!op.body || op.body->inputs().size() != in.size())
    throw InvalidArgument("the body has one input for each input");
  for (std::size_t i = 0; i < in.size(); ++i) {
    const TensorType& declared = op.body->inputs()[i].value.type();
    if (declared != in[i]) {
      throw InvalidArgument(fmt::format("input {} is {}, the body takes {}", i, to_string(in[i]),
                                        to_string(declared)));
    }
  }
  Types types;
  for (const auto& output : op.body->outputs()) types.push_back(output.value.type());
  return types;
}

void evaluate(const Region& op, Evaluation& run) {
  std::vector<HostArray> inputs;
  for (const HostArray* x : run.inputs) inputs.push_back(*x);
  std::vector<HostArray> outputs = run.run_graph(*op.body, std::move(inputs));
  for (std::size_t i = 0; i < outputs.size(); ++i) run.outputs[i] = std::move(outputs[i]);
}

constinit const OpDef region_def = define<Region>({
    .name = "region",
    .summary = "Elementwise operators computed in one pass over memory.",
    .inputs = {"x..."},
    .outputs = {"y..."},
});

const OpDef* find_compiler_op(std::string_view name) {
  for (const OpDef* def : {&fused_linear_def, &fused_conv_def, &fused_add_norm_def, &region_def}) {
    if (def->name == name) return def;
  }
  return find_op(name);
}

}  // namespace rlx
