#pragma once

#include <functional>
#include <span>

#include "compiler/pass.h"

namespace rlx {

/// The passes in order.
std::span<const Pass> pipeline();

/// Runs those of `passes` that the options ask for, verifying the graph after each that changed it;
/// `after` sees each result. Throws `InternalError` naming the pass that broke the graph.
void run_passes(Graph& graph, const PassContext& context,
                const std::function<void(const Pass&, const Graph&)>& after = nullptr,
                std::span<const Pass> passes = pipeline());

}  // namespace rlx
