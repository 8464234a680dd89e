#pragma once

#include "compiler/pass.h"

namespace rlx {

/// Moves what depends on params and constants alone into the prepare program: each such value that
/// the rest of the graph reads becomes a param of its own, computed once when the weights are set.
bool hoist_params(Graph& graph, const PassContext& context);

}  // namespace rlx
