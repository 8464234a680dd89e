#pragma once

#include "backends/cpu/activation.h"
#include "compiler/fused.h"

namespace rlx::cpu {

inline Activation activation_of(FusedActivation activation) {
  constexpr Activation kActivations[] = {
      Activation::kNone, Activation::kRelu,    Activation::kGeluErf, Activation::kGeluTanh,
      Activation::kSilu, Activation::kSigmoid, Activation::kTanh};
  return kActivations[static_cast<std::size_t>(activation)];
}

/// What a FusedLinear or FusedConv does after its sums; addresses are left null.
template <class Fused>
Epilogue epilogue_of(const Fused& op) {
  Epilogue e;
  e.activation = activation_of(op.activation);
  e.activation_after_residual = op.activation_last;
  e.clamp_low = static_cast<float>(op.clamp_low);
  e.clamp_high = static_cast<float>(op.clamp_high);
  return e;
}

}  // namespace rlx::cpu
