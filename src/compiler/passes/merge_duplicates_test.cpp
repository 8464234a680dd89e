#include "compiler/passes/merge_duplicates.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "ir/node.h"
#include "ir/text.h"
#include "ir/verify.h"
#include "ops/all_ops.h"
#include "runtime/backend.h"

namespace rlx {
namespace {

struct Merged {
  bool changed;
  std::ptrdiff_t exps;
};

// What the pass leaves of two exponentials, the second of `operand`.
Merged merged(const std::string& operand) {
  Graph g = parse_graph(R"(graph {
  %0 = input{name="x", type=f32[n]}() : f32[n]
  %1 = input{name="y", type=f32[n]}() : f32[n]
  %2 = exp(%0) : f32[n]
  %3 = exp()" + operand + R"() : f32[n]
  %4 = add(%2, %3) : f32[n]
  output "z" = %4
})",
                        find_op);
  const CompileOptions options;
  CompileReport report;
  const bool changed = merge_duplicates(g, {backend_for("cpu"), options, report});
  g.prune();
  EXPECT_TRUE(verify(g).empty());
  const auto nodes = g.topological_order();
  return {changed,
          std::ranges::count_if(nodes, [](const Node* n) { return n->op().name() == "exp"; })};
}

TEST(MergeDuplicates, OneNodeComputesTheSameExpression) {
  const Merged m = merged("%0");
  EXPECT_TRUE(m.changed);
  EXPECT_EQ(m.exps, 1);
}

TEST(MergeDuplicates, OtherOperandsStay) {
  const Merged m = merged("%1");
  EXPECT_FALSE(m.changed);
  EXPECT_EQ(m.exps, 2);
}

}  // namespace
}  // namespace rlx
