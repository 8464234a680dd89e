#pragma once

#include <string>
#include <vector>

#include "rlx/graph.h"

namespace rlx {

/// What is wrong with a graph, a line each, empty if nothing is: use lists, cycles, and types that
/// inference does not give. Linear in the number of nodes; runs in every build.
std::vector<std::string> verify(const Graph& graph);

}  // namespace rlx
