#pragma once

#include "ir/op.h"

namespace rlx {

/// predicate (bool scalar), captures...: both branches take the captures and give the same ranks
/// and dtypes.
struct If {
  Subgraph then_branch, else_branch;
  static constexpr auto fields() {
    return std::tuple{Field{"then_branch", &If::then_branch},
                      Field{"else_branch", &If::else_branch}};
  }
};
/// Inputs: `carries` initial values, `xs` sequences [length, …], captures. See `scan` in rlx/ops.h.
struct Scan {
  Subgraph body;
  std::int64_t carries = 0;
  std::int64_t xs = 0;
  Dim length;
  bool reverse = false;
  static constexpr auto fields() {
    return std::tuple{Field{"body", &Scan::body}, Field{"carries", &Scan::carries},
                      Field{"xs", &Scan::xs}, Field{"length", &Scan::length},
                      Field{"reverse", &Scan::reverse}};
  }
};
extern const OpDef if_def, scan_def;

}  // namespace rlx
