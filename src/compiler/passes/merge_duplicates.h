#pragma once

#include "compiler/pass.h"

namespace rlx {

/// Common subexpressions: of nodes with the same operator, attributes and inputs the first one
/// stays. Stateful operators are left alone.
bool merge_duplicates(Graph& graph, const PassContext& context);

}  // namespace rlx
