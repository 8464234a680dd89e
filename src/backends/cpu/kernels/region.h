#pragma once

#include "backends/cpu/kernel.h"

namespace rlx::cpu {

/// Elementwise operators, casts and regions of them, run by one interpreter: the node's operators
/// become instructions over tiles that stay in the first-level cache. Inputs broadcast to the
/// outputs' shape and may have any strides. Output 0 may lie in a dense input of its width.
Match accepts_elementwise(const Node& node);
void plan_elementwise(StepBuilder& step);

}  // namespace rlx::cpu
