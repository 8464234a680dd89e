#pragma once

#include <string>
#include <vector>

#include "rlx/graph.h"

namespace rlx {

/// A weight that is computed from others once they are set: `graph` has params, no inputs, and one
/// output.
struct PreparedParam {
  std::string name;  ///< the param of the main graph that takes the result
  Graph graph;

  /// Names of the params that it is computed from.
  std::vector<std::string> sources() const {
    std::vector<std::string> names;
    for (const auto& param : graph.params()) names.push_back(param.name);
    return names;
  }
};

}  // namespace rlx
