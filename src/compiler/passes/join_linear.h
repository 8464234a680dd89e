#pragma once

#include "compiler/pass.h"

namespace rlx {

/// Makes one product of several with the same left operand, as the projections to queries, keys and
/// values are: their weights are joined by columns, and the results are slices.
bool join_linear(Graph& graph, const PassContext& context);

}  // namespace rlx
