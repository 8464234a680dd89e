#pragma once

#include "compiler/pass.h"

namespace rlx {

/// Removes what does nothing: additions of 0 (a deviation: -0 + 0 gives 0), multiplications by 1,
/// casts, reshapes, transposes, slices and broadcasts to the same type; and composes neighbouring
/// transposes and reshapes.
bool simplify(Graph& graph, const PassContext& context);

}  // namespace rlx
