#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "ir/node.h"
#include "ops/host_array.h"
#include "rlx/graph.h"

namespace rlx {

inline namespace v0 {
using NamedTensors = std::map<std::string, Tensor>;
}

struct EvaluateOptions {
  DimBinding sizes;  ///< of symbols that no input determines
  std::function<void(const Node&, std::span<const HostArray>)>
      on_node;  ///< sees each node's results
};

/// One operator on tensors, through its reference. Extents come from the tensors.
std::vector<HostArray> evaluate_op(const Op& op, const std::vector<const HostArray*>& inputs);

/// The whole graph through the references of its operators: slow and plain, the oracle of every
/// test. Params and states take the graph's data; `inputs` may also give values for params. Throws
/// what binding and data faults throw.
NamedTensors evaluate_graph(const Graph& graph, const NamedTensors& inputs,
                            const EvaluateOptions& options = {});

}  // namespace rlx
