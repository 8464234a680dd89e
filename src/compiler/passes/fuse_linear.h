#pragma once

#include "compiler/pass.h"

namespace rlx {

/// Turns products with a weight matrix into `fused_linear`, together with the bias, activation and
/// residual that follow.
bool fuse_linear(Graph& graph, const PassContext& context);

}  // namespace rlx
