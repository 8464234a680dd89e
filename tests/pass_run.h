#pragma once

#include <gtest/gtest.h>

#include <string>
#include <string_view>

#include "compiler/pass.h"
#include "ops/evaluate.h"

namespace rlx {

/// A target with kernels for everything but the operators named in `lacks`.
class AnyTarget : public Target {
 public:
  explicit AnyTarget(std::vector<std::string_view> lacks = {}) : lacks_(std::move(lacks)) {}
  std::string_view device() const override { return "any"; }
  bool claims(const Node& node, std::string* why_not) const override;
  bool has_kernels(const OpDef& op) const override;

 private:
  std::vector<std::string_view> lacks_;
};

/// A graph before and after one pass, pruned.
struct PassRun {
  Graph before, after;
  bool changed = false;
  CompileReport report;
  /// What the pass counted under this name.
  int count(const std::string& what) const;
};

using PassFunction = bool (*)(Graph& graph, const PassContext& context);

/// Runs the pass on the text of a graph, in which definitions may leave out their types.
PassRun run_pass(PassFunction pass, std::string_view text, const Target& target = AnyTarget());

/// Whether `graph` is what `text` describes. Names of nodes are left out of the comparison.
testing::AssertionResult is_graph(const Graph& graph, std::string_view text);

/// Whether the graph after the pass gives the answers of the graph before, on seeded inputs, within
/// `tolerance` of the largest magnitude of each output. Every symbol has a size of its own.
testing::AssertionResult keeps_answers(const PassRun& run, double tolerance = 1e-6);

/// Whether the pass left the graph as it was.
testing::AssertionResult leaves_alone(PassFunction pass, std::string_view text);

/// Whether the graph has a node of this operator.
bool has_op(const Graph& graph, std::string_view op);

}  // namespace rlx
