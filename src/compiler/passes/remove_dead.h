#pragma once

#include "compiler/pass.h"

namespace rlx {

/// Deletes nodes that nothing depends on, and params without readers.
bool remove_dead(Graph& graph, const PassContext& context);

}  // namespace rlx
