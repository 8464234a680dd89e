#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "compiler/prepare.h"
#include "compiler/target.h"
#include "rlx/runtime.h"

namespace rlx {

/// What passes know besides the graph.
struct PassContext {
  const Target& target;
  const CompileOptions& options;
  CompileReport& report;
  std::vector<PreparedParam>& prepared;  ///< filled by `hoist_params`

  /// Counts for the report, such as "raised attention".
  void count(const std::string& what) const { ++report.counts[what]; }
};

/// One rewrite of a graph. `run` returns whether anything changed and leaves dead nodes to
/// `remove_dead`.
struct Pass {
  std::string_view name;
  bool (*run)(Graph& graph, const PassContext& context);
  int level;  ///< lowest optimisation level at which it runs
};

}  // namespace rlx
