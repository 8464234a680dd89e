#include "ir/verify.h"

#include <fmt/format.h>

#include <unordered_map>

#include "ir/leaves.h"
#include "ir/node.h"

namespace rlx {
namespace {

class Verifier {
 public:
  explicit Verifier(const Graph& graph) : graph_(graph) {}

  std::vector<std::string> run() {
    const std::vector<Node*> order = graph_.topological_order();
    for (std::size_t i = 0; i < order.size(); ++i) position_[order[i]] = i;
    for (Node* node : order) check(*node);
    return std::move(findings_);
  }

 private:
  template <class... Args>
  void report(const Node& node, fmt::format_string<Args...> text, Args&&... args) {
    findings_.push_back(fmt::format("{} ({}): {}", node.name(), node.op().name(),
                                    fmt::format(text, std::forward<Args>(args)...)));
  }

  void check(Node& node) {
    for (std::size_t i = 0; i < node.inputs().size(); ++i) check_input(node, i);
    if (findings_.empty()) check_types(node);
  }

  void check_input(Node& node, std::size_t i) {
    const Value v = node.inputs()[i];
    if (!v) return;
    if (v.index() >= v.node()->output_count())
      return report(node, "input {} is output {} of {}, which has fewer", i, v.index(),
                    v.node()->name());
    const auto at = position_.find(v.node());
    if (at == position_.end()) return report(node, "input {} is of another graph", i);
    if (at->second >= position_.at(&node))
      return report(node, "input {} comes after its reader: a cycle", i);
    const auto& uses = v.node()->uses();
    const auto count = std::count(uses.begin(), uses.end(), Node::Use{&node, i});
    if (count != 1)
      report(node, "input {} is listed {} times among the uses of {}", i, count, v.node()->name());
  }

  // Inference may record constraints, so it works on a graph of its own with the same input types.
  void check_types(Node& node) {
    Graph scratch;
    std::vector<Value> inputs;
    for (std::size_t i = 0; i < node.inputs().size(); ++i) {
      const Value v = node.inputs()[i];
      inputs.push_back(v ? scratch.input(fmt::format("{}", i), v.type()) : Value());
    }
    InferArgs args(scratch, node.op(), inputs, node.name());
    try {
      const Types types = node.op().def().infer(node.op(), args);
      if (types.size() != node.output_count())
        return report(node, "has {} outputs, inference gives {}", node.output_count(),
                      types.size());
      for (std::size_t i = 0; i < types.size(); ++i) check_type(node, i, types[i]);
    } catch (const Error& error) {
      report(node, "{}", error.what());
    }
  }

  // Extents may differ in form only where a constraint or a simplification proved them equal.
  void check_type(Node& node, std::size_t i, const TensorType& inferred) {
    const TensorType& found = node.type(i);
    if (found.dtype != inferred.dtype || found.rank() != inferred.rank()) {
      return report(node, "output {} is {}, inference gives {}", i, to_string(found),
                    to_string(inferred));
    }
    for (std::size_t axis = 0; axis < found.rank(); ++axis) {
      const Dim difference = found.shape[axis] - inferred.shape[axis];
      if (difference.lower_bound() > 0 || difference.upper_bound() < 0) {
        return report(node, "output {} is {}, inference gives {}", i, to_string(found),
                      to_string(inferred));
      }
    }
  }

  const Graph& graph_;
  std::unordered_map<const Node*, std::size_t> position_;
  std::vector<std::string> findings_;
};

}  // namespace

std::vector<std::string> verify(const Graph& graph) { return Verifier(graph).run(); }

}  // namespace rlx
