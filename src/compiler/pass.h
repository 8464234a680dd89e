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

/// How answers may differ after a pass, apart from rounding.
enum Deviation : unsigned {
  kSignOfZero = 1,       ///< 0 for -0 or the other way round
  kOverflow = 2,         ///< infinities and NaN where an intermediate overflows
  kNanOfMaskedKeys = 4,  ///< NaN of a key that a mask leaves out reaches its row, or does not
};

/// One rewrite of a graph. `run` returns whether anything changed and leaves dead nodes to
/// `remove_dead`.
struct Pass {
  std::string_view name;
  bool (*run)(Graph& graph, const PassContext& context);
  int level;                ///< lowest optimisation level at which it runs
  unsigned deviations = 0;  ///< `Deviation` bits
};

}  // namespace rlx
