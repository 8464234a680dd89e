#pragma once

#include "compiler/fused.h"
#include "ir/node.h"
#include "rlx/graph.h"

namespace rlx {

/// What follows a matmul or convolution and goes into its kernel.
struct FusedEpilogue {
  FusedActivation activation = FusedActivation::none;
  double clamp_low = -std::numeric_limits<double>::infinity();
  double clamp_high = std::numeric_limits<double>::infinity();
  bool activation_last = false;
  Value residual;
  Value result;  ///< what the fused node stands for

  /// Sets the fields of a FusedLinear or FusedConv.
  template <class Fused>
  void set(Fused& op) const {
    op.activation = activation;
    op.clamp_low = clamp_low;
    op.clamp_high = clamp_high;
    op.activation_last = activation_last;
  }
};

/// The only reader of a value; null where there are several or the value leaves the graph.
Node* only_reader(const Graph& graph, Value value);

/// The other operand of an addition whose result has the type of `known`; else no value.
Value other_addend(const Node& node, Value known);

/// The longest chain of activation, clamp and residual, or residual, activation and clamp, through
/// which alone `sum` is read. Its activations are in the chain's order; `result` is `sum` itself
/// where there is none.
FusedEpilogue find_epilogue(const Graph& graph, Value sum);

}  // namespace rlx
