#pragma once

#include "compiler/pass.h"

namespace rlx {

/// Evaluates nodes whose inputs are all constants where the result takes at most 1 KiB, and turns
/// integer values that depend on extents alone into `size` leaves.
bool fold_constants(Graph& graph, const PassContext& context);

}  // namespace rlx
