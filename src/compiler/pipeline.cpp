#include "compiler/pipeline.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>

#include "compiler/passes/fold_batch_norm.h"
#include "compiler/passes/fold_constants.h"
#include "compiler/passes/fuse_conv.h"
#include "compiler/passes/fuse_linear.h"
#include "compiler/passes/fuse_regions.h"
#include "compiler/passes/hoist_params.h"
#include "compiler/passes/join_linear.h"
#include "compiler/passes/legalise.h"
#include "compiler/passes/merge_duplicates.h"
#include "compiler/passes/raise.h"
#include "compiler/passes/remove_dead.h"
#include "compiler/passes/simplify.h"
#include "ir/verify.h"

namespace rlx {

std::span<const Pass> pipeline() {
  static constexpr Pass kPasses[] = {
      {"remove_dead", remove_dead, 0},
      {"fold_constants", fold_constants, 1},
      {"simplify", simplify, 1, kSignOfZero},
      {"merge_duplicates", merge_duplicates, 1},
      {"raise_compositions", raise_compositions, 1, kSignOfZero | kOverflow},
      {"raise_attention", raise_attention, 1, kOverflow | kNanOfMaskedKeys},
      {"simplify_raised", simplify, 1, kSignOfZero},
      {"fold_batch_norm", fold_batch_norm, 2, kSignOfZero | kOverflow},
      {"legalise", legalise, 0, kSignOfZero | kOverflow},
      {"fuse_linear", fuse_linear, 2},
      {"join_linear", join_linear, 2},
      {"fuse_conv", fuse_conv, 2},
      {"hoist_params", hoist_params, 1},
      {"fuse_regions", fuse_regions, 2},
  };
  return kPasses;
}

namespace {

bool is_skipped(const Pass& pass, const CompileOptions& options) {
  return std::ranges::find(options.skip_passes, pass.name) != options.skip_passes.end();
}

void verify_after(const Pass& pass, const Graph& graph) {
  const auto findings = verify(graph);
  if (!findings.empty())
    throw InternalError(fmt::format("pass {} broke the graph: {}", pass.name, findings[0]));
}

}  // namespace

void run_passes(Graph& graph, const PassContext& context,
                const std::function<void(const Pass&, const Graph&)>& after,
                std::span<const Pass> passes) {
  using Clock = std::chrono::steady_clock;
  for (const Pass& pass : passes) {
    if (pass.level > context.options.optimization || is_skipped(pass, context.options)) continue;
    const auto start = Clock::now();
    const bool changed = pass.run(graph, context);
    if (changed) graph.prune();
    const std::chrono::duration<double, std::milli> elapsed = Clock::now() - start;
    context.report.passes.push_back({std::string(pass.name), elapsed.count(), changed});
    if (changed) verify_after(pass, graph);
    if (after) after(pass, graph);
  }
}

}  // namespace rlx
