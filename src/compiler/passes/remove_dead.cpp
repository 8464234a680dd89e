#include "compiler/passes/remove_dead.h"

namespace rlx {

bool remove_dead(Graph& graph, const PassContext&) { return graph.prune() > 0; }

}  // namespace rlx
