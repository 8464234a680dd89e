#pragma once

#include "compiler/pass.h"

namespace rlx {

/// Gathers elementwise operators and casts into `region` nodes, which read and write memory once.
/// A region ends in one value, its root, and takes in producers of as many elements that only it
/// reads; a producer that is also an output of the graph becomes a further output of the region.
/// Scalar constants stand in the body. A region of one operator stays a plain node.
bool fuse_regions(Graph& graph, const PassContext& context);

}  // namespace rlx
