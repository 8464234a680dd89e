#pragma once

#include "compiler/pass.h"

namespace rlx {

/// Turns convolutions into `fused_conv`, together with the bias, activation, clamp and residual
/// that follow.
bool fuse_conv(Graph& graph, const PassContext& context);

}  // namespace rlx
