#pragma once

#include "compiler/pass.h"

namespace rlx {

/// Decomposes operators that the target has no kernel for, until every node has one. Throws
/// `Unsupported` with a list of all nodes for which neither a kernel nor a decomposition is left.
bool legalise(Graph& graph, const PassContext& context);

}  // namespace rlx
