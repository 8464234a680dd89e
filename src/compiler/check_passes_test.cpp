#include "compiler/check_passes.h"

#include "compiler/passes/simplify.h"
#include "ops/elementwise.h"
#include "pass_run.h"
#include "rlx/ops.h"

namespace rlx {
namespace {

Graph small_graph() {
  Graph g;
  const Value x = g.input("x", {f32, {"n", 8}});
  g.set_origin("first");
  const Value a = exp(x + 0.0);
  g.set_origin("second");
  g.output("y", relu(a - 1.0));
  return g;
}

// Replaces each node of `from` by f of its input.
template <class F>
bool replace_all(Graph& graph, const OpDef& from, F&& f) {
  bool changed = false;
  for (Node* node : graph.topological_order()) {
    if (!node->is(from)) continue;
    graph.set_origin(node->name());
    graph.replace_uses(node->output(), f(node->input(0)));
    changed = true;
  }
  graph.set_origin({});
  return changed;
}

bool break_exp(Graph& graph, const PassContext&) {
  return replace_all(graph, exp_def, [](Value x) { return x + 1.0; });
}

// Right for all numbers: max(x, 0) of NaN is 0 here.
bool break_nan(Graph& graph, const PassContext&) {
  return replace_all(graph, relu_def,
                     [](Value x) { return select(greater(x, scalar(x, 0)), x, scalar(x, 0)); });
}

// Right for all but zeros of a sign.
bool break_negative_zero(Graph& graph, const PassContext&) {
  return replace_all(graph, neg_def, [](Value x) { return scalar(x, 0) - x; });
}

std::optional<PassCheck> check(Graph graph, std::vector<Pass> passes) {
  PassCheckOptions options;
  options.sizes.set("n", 3);
  const CompileOptions compile;
  CompileReport report;
  const AnyTarget target;
  std::vector<PreparedParam> prepared;
  return check_passes(std::move(graph), {target, compile, report, prepared}, options, nullptr,
                      passes);
}

constexpr Pass kSimplify{"simplify", simplify, 1, kSignOfZero};

TEST(CheckPasses, GoodPassesAreGood) { EXPECT_FALSE(check(small_graph(), {kSimplify})); }

TEST(CheckPasses, NamesTheBrokenPassAndTheNode) {
  const auto bad = check(small_graph(), {kSimplify, {"break_exp", break_exp, 0}});
  ASSERT_TRUE(bad);
  EXPECT_EQ(bad->pass, "break_exp");
  EXPECT_EQ(bad->output, "y");
  EXPECT_EQ(bad->node.substr(0, 5), "first");
  EXPECT_GT(bad->difference, 1e-4);
}

TEST(CheckPasses, NanMustStayNan) {
  const auto bad = check(small_graph(), {{"break_nan", break_nan, 0}});
  ASSERT_TRUE(bad);
  EXPECT_EQ(bad->pass, "break_nan");
  EXPECT_EQ(bad->inputs, InputSet::nan);
}

TEST(CheckPasses, SignsOfZeroStayUnlessThePassDeclaresThem) {
  const auto negated = [] {
    Graph g;
    g.output("y", -g.input("x", {f32, {"n"}}));
    return g;
  };
  const auto bad = check(negated(), {{"break_zero", break_negative_zero, 0}});
  ASSERT_TRUE(bad);
  EXPECT_EQ(bad->inputs, InputSet::zeros);
  EXPECT_FALSE(check(negated(), {{"declared", break_negative_zero, 0, kSignOfZero}}));
}

}  // namespace
}  // namespace rlx
