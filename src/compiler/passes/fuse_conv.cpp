#include "compiler/passes/fuse_conv.h"

#include "compiler/fused.h"
#include "compiler/passes/fuse_epilogue.h"
#include "ir/node.h"
#include "ops/elementwise.h"
#include "ops/movement.h"
#include "rlx/ops.h"

namespace rlx {
namespace {

// [channels] of a value that adds one number to each channel of `y`: [channels, 1…] or [1,
// channels, 1…], reshaped; else no value.
Value channel_vector(Value value, Value y) {
  if (value.rank() + 1 < y.rank() || value.rank() > y.rank()) return {};
  const std::size_t channel_axis = value.rank() + 1 - y.rank();
  for (std::size_t axis = 0; axis < value.rank(); ++axis) {
    const Dim expected = axis == channel_axis ? y.shape()[1] : Dim(1);
    if (value.shape()[axis] != expected) return {};
  }
  const Value source = value.node()->is(reshape_def) ? value.node()->input(0) : value;
  if (source.rank() == 1) return source;
  return reshape(value, {y.shape()[1]});
}

// Takes an addition of one number a channel as the bias of a convolution that has none.
Value take_bias(const Graph& graph, Value y, Value* bias) {
  Node* reader = only_reader(graph, y);
  if (reader == nullptr) return y;
  const Value other = other_addend(*reader, y);
  if (!other) return y;
  *bias = channel_vector(other, y);
  return *bias ? reader->output() : y;
}

}  // namespace

bool fuse_conv(Graph& graph, const PassContext& context) {
  if (!context.target.has_kernels(fused_conv_def)) return false;
  bool changed = false;
  for (Node* node : graph.topological_order()) {
    const Conv* conv = node->as<Conv>();
    if (conv == nullptr || node->type().dtype != DType::f32) continue;
    graph.set_origin(node->name());
    Value bias = node->inputs().size() > 2 ? node->input(2) : Value();
    const Value sum = bias ? node->output() : take_bias(graph, node->output(), &bias);
    const FusedEpilogue epilogue = find_epilogue(graph, sum);
    if (epilogue.result == node->output()) continue;
    FusedConv op{conv->strides, conv->padding_low, conv->padding_high, conv->dilations,
                 conv->groups};
    epilogue.set(op);
    const Value y = graph.add1(make_op(fused_conv_def, std::move(op)),
                               {node->input(0), node->input(1), bias, epilogue.residual});
    graph.replace_uses(epilogue.result, y);
    context.count("fused conv");
    changed = true;
  }
  graph.set_origin({});
  return changed;
}

}  // namespace rlx
