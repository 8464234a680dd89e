#pragma once

#include <string>
#include <string_view>

#include "compiler/target.h"
#include "rlx/runtime.h"

namespace rlx {

/// What passes know besides the graph.
struct PassContext {
  const Target& target;
  const CompileOptions& options;
  CompileReport& report;

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
