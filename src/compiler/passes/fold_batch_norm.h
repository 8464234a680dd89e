#pragma once

#include "compiler/pass.h"

namespace rlx {

/// Moves a batch norm that follows a convolution into its weights and bias, where all of these
/// depend on params alone: the prepare program then computes them once.
bool fold_batch_norm(Graph& graph, const PassContext& context);

}  // namespace rlx
