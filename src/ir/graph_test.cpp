#include "rlx/graph.h"

#include <gtest/gtest.h>

#include "ir/binding.h"
#include "ir/leaves.h"
#include "ir/node.h"
#include "ir/text.h"
#include "ops/all_ops.h"
#include "ops/evaluate.h"
#include "ops/softmax.h"
#include "rlx/ops.h"

namespace rlx {
namespace {

Graph mlp() {
  Graph g;
  const Value x = g.input("x", {f32, {"batch", 3}});
  const Value w = g.param("w", Tensor({3}, {1.0F, 2.0F, 3.0F}));
  g.output("y", softmax(x * w + 1.0, -1));
  return g;
}

TEST(Graph, TextRoundTrips) {
  const Graph g = mlp();
  const std::string text = to_string(g);
  const Graph back = parse_graph(text, find_op);
  EXPECT_EQ(to_string(back), text);
  EXPECT_NE(text.find("= softmax{axis=1}(%"), std::string::npos) << text;
}

TEST(Graph, LargeConstantsBecomeBlobs) {
  Graph g;
  g.output("y", g.constant(Tensor(f32, {65})));
  std::vector<Tensor> blobs;
  const std::string text = to_string(g, &blobs);
  ASSERT_EQ(blobs.size(), 1U);
  EXPECT_EQ(to_string(parse_graph(text, find_op, &blobs), nullptr), to_string(g));
  EXPECT_THROW(parse_graph(text, find_op), FormatError);
}

TEST(Graph, ReaderRefusesWhatItDoesNotKnow) {
  for (const char* bad :
       {"", "graph {", "graph { %0 = nothing() : f32[] }", "graph { %0 = exp(%1) : f32[] }",
        "graph { %0 = constant{value=f32[99999999999]()}() : f32[] }",
        "graph { %0 = input{name=\"x\", type=f32[a]}() : f32[b] }",
        "graph { %0 = constant{value=i8[1](300)}() : i8[1] }"}) {
    EXPECT_THROW((void)parse_graph(bad, find_op), Error) << bad;
  }
}

TEST(Graph, ErrorsNameTheNodeAndTheOperator) {
  Graph g;
  const Value a = g.input("a", {f32, {2}});
  const Value b = g.input("b", {f32, {3}});
  g.set_origin("layer.0/Add");
  try {
    (void)(a + b);
    FAIL();
  } catch (const ShapeError& e) {
    EXPECT_STREQ(e.what(), "layer.0/Add (add): broadcast of [2] and [3]: 2 and 3 differ");
    EXPECT_EQ(e.node(), "layer.0/Add");
  }
  EXPECT_THROW((void)(a + g.input("c", {f64, {2}})), InvalidArgument);
  EXPECT_THROW((void)softmax(a, 1), InvalidArgument);
}

TEST(Graph, DistinctExtentsThatBroadcastAreCheckedAtBinding) {
  Graph g;
  const Value a = g.input("a", {f32, {"n"}});
  const Value b = g.input("b", {f32, {"m"}});
  g.output("y", a + b);
  ASSERT_EQ(g.constraints().size(), 1U);
  EXPECT_NO_THROW((void)bind_sizes(g, {{"a", {4}}, {"b", {4}}}));
  try {
    (void)bind_sizes(g, {{"a", {4}}, {"b", {5}}});
    FAIL();
  } catch (const ShapeError& e) {
    EXPECT_STREQ(e.what(), "add: broadcast of [n] and [m]: n = 4 and m = 5 differ");
  }
}

TEST(Graph, BindingNamesBothSizesOfASymbol) {
  Graph g;
  const Value a = g.input("a", {f32, {"n", 2}});
  g.output("y", a + g.input("b", {f32, {"n", 2}}));
  const auto message = [&](const std::map<std::string, Tensor::Dims>& dims) -> std::string {
    try {
      (void)bind_sizes(g, dims);
    } catch (const Error& e) {
      return e.what();
    }
    return "";
  };
  EXPECT_EQ(message({{"a", {3, 2}}, {"b", {4, 2}}}),
            "dimension n is 3 (axis 0 of input a) and 4 (axis 0 of input b)");
  EXPECT_EQ(message({{"a", {3, 2}}, {"b", {3, 5}}}), "axis 1 of input b is 5, expected 2");
  EXPECT_EQ(message({{"a", {3, 2}}, {"b", {3}}}),
            "input b is [3] of rank 1, expected rank 2 as in [n, 2]");
  EXPECT_EQ(message({{"a", {3, 2}}}), "input b f32[n, 2] is missing");
  EXPECT_EQ(message({{"a", {3, 2}}, {"b", {3, 2}}, {"c", {}}}),
            "there is no input c; the inputs are a, b");
}

TEST(Graph, ReplacesAndPrunes) {
  Graph g = mlp();
  Node* softmax_node = g.outputs()[0].value.node();
  ASSERT_TRUE(softmax_node->is(softmax_def));
  g.replace_uses(softmax_node->output(), softmax_node->input(0));
  EXPECT_EQ(g.prune(), 1U);
  EXPECT_EQ(g.use_count(g.outputs()[0].value), 1U);
  const Graph copy = g.clone();
  EXPECT_EQ(to_string(copy), to_string(g));
}

TEST(Evaluate, ComputesTheWholeGraph) {
  const Graph g = mlp();
  const auto out = evaluate_graph(g, {{"x", Tensor({1, 3}, {0.0F, 0.0F, 0.0F})}});
  for (const float v : out.at("y").values<float>()) EXPECT_FLOAT_EQ(v, 1.0F / 3);
}

TEST(Evaluate, StatesKeepTheirOldValueWithinARun) {
  Graph g;
  const Value h = g.state("h", {f32, {2}}, Tensor({2}, {1.0F, 2.0F}));
  g.update(h, h * 2.0);
  g.output("y", h + 0.5);
  EXPECT_FLOAT_EQ(evaluate_graph(g, {}).at("y").values<float>()[1], 2.5F);
  EXPECT_THROW(g.update(h, h), InvalidArgument);
}

}  // namespace
}  // namespace rlx
