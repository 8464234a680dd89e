#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "formats/onnx/handlers.h"
#include "formats/onnx/onnx.h"
#include "onnx_writer.h"
#include "ops/evaluate.h"
#include "rlx/error.h"

namespace rlx::onnx {
namespace {

using namespace test;  // NOLINT(google-build-using-namespace): the writer's vocabulary
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

Graph import(const std::string& file, const LoadOptions& options = {}) {
  return read_onnx(as_bytes(file), options);
}
Graph import(const GraphParts& parts, std::int64_t version = 17, const LoadOptions& options = {}) {
  return import(model(parts, version), options);
}

template <class E>
std::string failure(const std::string& file, const LoadOptions& options = {}) {
  try {
    (void)import(file, options);
  } catch (const E& error) {
    return error.what();
  } catch (const Error& error) {
    ADD_FAILURE() << "another error: " << error.what();
  }
  return "no error";
}

std::vector<float> run(const Graph& graph, const Tensor& x) {
  const auto outputs = evaluate_graph(graph, {{graph.inputs().at(0).name, x}});
  const auto values = outputs.at(graph.outputs().at(0).name).values<float>();
  return {values.begin(), values.end()};
}

/// One node from x (f32) to y.
GraphParts one_node(const std::string& node, const Strings& dims, const Strings& weights = {}) {
  return {{node}, weights, {value("x", kFloat, dims)}, {value("y", kFloat, {})}};
}
std::string shape_of_y(const GraphParts& parts, std::int64_t version = 17) {
  const Graph g = import(parts, version);
  return to_string(g.outputs().at(0).value.shape());
}

TEST(OnnxImport, NamesDimensionsAndWeights) {
  const Graph g = import(
      {.nodes = {node("Mul", {"x", "scale"}, {"t"}, {}, "", "mul"), node("Add", {"t", "w"}, {"y"})},
       .initializers = {floats("w", {2}, {1, 2}), floats("scale", {}, {3}),
                        floats("unused", {2}, {0, 0})},
       .inputs = {value("x", kFloat, {"batch", "", "2"}), value("w", kFloat, {"2"})},
       .outputs = {value("y", kFloat, {"batch", "", "2"})}});
  ASSERT_EQ(g.inputs().size(), 1U);  // a weight may be listed as an input
  EXPECT_EQ(to_string(g.inputs()[0].value.type()), "f32[batch, x.1, 2]");
  ASSERT_EQ(g.params().size(), 1U);  // the scalar is a constant, the third is never read
  EXPECT_EQ(g.params()[0].name, "w");
  EXPECT_EQ(g.metadata.at("producer"), "test");
  EXPECT_THAT(run(g, Tensor({1, 1, 2}, {10.F, 20.F})), ElementsAre(31.F, 62.F));
}

TEST(OnnxImport, ShapeArithmeticFoldsToExtents) {
  // reshape(x, [shape(x)[0], -1, 4]): what exporters write to split heads.
  const GraphParts parts{
      .nodes = {node("Shape", {"x"}, {"s"}), node("Gather", {"s", "zero"}, {"b"}),
                node("Unsqueeze", {"b", "axes"}, {"b1"}),
                node("Concat", {"b1", "rest"}, {"to"}, {attribute("axis", 0)}),
                node("Reshape", {"x", "to"}, {"y"})},
      .initializers = {ints("zero", {}, {0}), ints("axes", {0}), ints("rest", {-1, 4})},
      .inputs = {value("x", kFloat, {"batch", "seq", "8"})},
      .outputs = {value("y", kFloat, {})}};
  EXPECT_EQ(shape_of_y(parts), "[batch, 2*seq, 4]");
  const Graph g = import(parts);
  EXPECT_EQ(g.node_count(), 2U) << to_string(g);  // x and the reshape
}

TEST(OnnxImport, Slices) {
  const auto slice = [](const Ints& starts, const Ints& ends, const Ints& steps) {
    return one_node(node("Slice", {"x", "starts", "ends", "", "steps"}, {"y"}), {"n"},
                    {ints("starts", starts), ints("ends", ends), ints("steps", steps)});
  };
  constexpr std::int64_t kMax = std::numeric_limits<std::int64_t>::max();
  const Tensor x({5}, {0.F, 1.F, 2.F, 3.F, 4.F});
  EXPECT_THAT(run(import(slice({1}, {kMax}, {2})), x), ElementsAre(1.F, 3.F));
  EXPECT_THAT(run(import(slice({-2}, {100}, {1})), x), ElementsAre(3.F, 4.F));
  EXPECT_THAT(run(import(slice({-1}, {-kMax}, {-1})), x), ElementsAre(4.F, 3.F, 2.F, 1.F, 0.F));
  EXPECT_THAT(run(import(slice({3}, {0}, {-2})), x), ElementsAre(3.F, 1.F));
  EXPECT_THAT(run(import(slice({0}, {-1}, {1})), x), ElementsAre(0.F, 1.F, 2.F, 3.F));
  EXPECT_THAT(run(import(slice({4}, {2}, {1})), x), ElementsAre());
  EXPECT_EQ(shape_of_y(slice({0}, {1'000'000'000}, {1})), "[n]");
  EXPECT_EQ(shape_of_y(slice({0}, {kMax}, {2})), "[floordiv(n + 1, 2)]");
  EXPECT_THROW((void)import(slice({0}, {1}, {0})), InvalidArgument);
}

TEST(OnnxImport, OpsetsChangeMeaning) {
  // Softmax was over all axes from 1 on.
  const GraphParts softmax = one_node(node("Softmax", {"x"}, {"y"}), {"1", "2", "2"});
  const Tensor zeros(f32, {1, 2, 2});
  EXPECT_THAT(run(import(softmax, 11), zeros), ElementsAre(0.25F, 0.25F, 0.25F, 0.25F));
  EXPECT_THAT(run(import(softmax, 13), zeros), ElementsAre(0.5F, 0.5F, 0.5F, 0.5F));
  EXPECT_EQ(
      shape_of_y(
          one_node(node("ReduceSum", {"x"}, {"y"}, {attribute("axes", Ints{1})}), {"a", "b"}), 12),
      "[a, 1]");
  EXPECT_EQ(shape_of_y(one_node(node("ReduceSum", {"x", "axes"}, {"y"}, {attribute("keepdims", 0)}),
                                {"a", "b"}, {ints("axes", {-1})}),
                       13),
            "[a]");
  EXPECT_THAT(failure<Unsupported>(model(softmax, 6)), HasSubstr("operator set 6"));
}

TEST(OnnxImport, EveryUnsupportedNodeIsListedOnce) {
  const std::string message = failure<Unsupported>(
      model({.nodes = {node("Frobnicate", {"x"}, {"a"}, {}, "com.example", "first"),
                       node("Relu", {"a"}, {"b"}), node("NonMaxSuppression", {"b"}, {"c"}),
                       node("MaxPool", {"x"}, {"y", "indices"})},
             .inputs = {value("x", kFloat, {"1", "1", "4"})},
             .outputs = {value("y", kFloat, {})}}));
  EXPECT_THAT(message, HasSubstr("3 unsupported nodes"));
  EXPECT_THAT(message, HasSubstr("Frobnicate 'first' of domain 'com.example'"));
  EXPECT_THAT(message, HasSubstr("NonMaxSuppression 'c': no such operator"));
  EXPECT_THAT(message, HasSubstr("MaxPool 'y': its indices are used"));
  EXPECT_THAT(message, Not(HasSubstr("Relu")));
}

TEST(OnnxImport, ErrorsNameTheNode) {
  const std::string file = model(one_node(node("Add", {"x", "w"}, {"y"}, {}, "", "decoder/add"),
                                          {"2", "3"}, {floats("w", {2}, {1, 2})}));
  EXPECT_THAT(failure<ShapeError>(file), HasSubstr("decoder/add"));
  EXPECT_THAT(failure<FormatError>(model(one_node(node("Add", {"x", "z"}, {"y"}), {}))),
              HasSubstr("'z' is read, but nothing before gives it"));
  EXPECT_THAT(failure<FormatError>(model({.nodes = {node("Relu", {"x"}, {"x"})},
                                          .inputs = {value("x", kFloat, {})},
                                          .outputs = {}})),
              HasSubstr("'x' is given twice"));
  EXPECT_THAT(failure<FormatError>(model(
                  one_node(node("Softmax", {"x"}, {"y"}, {attribute("axis", 1.5F)}), {"2", "2"}))),
              HasSubstr("attribute 'axis'"));
}

std::string branch(const Strings& nodes, const std::string& result) {
  return graph({.nodes = nodes, .outputs = {value(result, kFloat, {})}});
}
GraphParts squeeze_if_one() {
  // if shape(x)[1] == 1: squeeze, else as it is
  const std::string yes = branch({node("Squeeze", {"x", "one"}, {"a"})}, "a");
  const std::string no = branch({node("Identity", {"x"}, {"b"})}, "b");
  return {.nodes = {node("Shape", {"x"}, {"s"}), node("Gather", {"s", "one"}, {"n"}),
                    node("Equal", {"n", "one"}, {"p"}),
                    node("If", {"p"}, {"y"},
                         {graph_attribute("then_branch", yes), graph_attribute("else_branch", no)},
                         "", "if")},
          .initializers = {ints("one", {1})},
          .inputs = {value("x", kFloat, {"batch", "n"})},
          .outputs = {value("y", kFloat, {})}};
}

TEST(OnnxImport, ABranchThatShapesDecideIsTheOnlyOneImported) {
  GraphParts parts = squeeze_if_one();
  parts.inputs = {value("x", kFloat, {"batch", "1"})};
  EXPECT_EQ(shape_of_y(parts), "[batch]");
  parts.inputs = {value("x", kFloat, {"batch", "3"})};
  EXPECT_EQ(shape_of_y(parts), "[batch, 3]");
}

TEST(OnnxImport, AGuardIsDecidedByTheSizesGiven) {
  const std::string file = model(squeeze_if_one());
  const std::string message = failure<InvalidArgument>(file);
  EXPECT_THAT(message, HasSubstr("if"));
  EXPECT_THAT(message, HasSubstr("--dim NAME=VALUE for n"));
  LoadOptions options;
  options.dims.set("n", 1);
  const Graph one = import(file, options);
  EXPECT_EQ(to_string(one.outputs()[0].value.shape()), "[batch]");
  EXPECT_THAT(run(one, Tensor({2, 1}, {1.F, 2.F})), ElementsAre(1.F, 2.F));
  EXPECT_THROW((void)run(one, Tensor({1, 2}, {1.F, 2.F})), ShapeError);
  options.dims.set("n", 2);
  const Graph two = import(file, options);
  EXPECT_EQ(to_string(two.outputs()[0].value.shape()), "[batch, n]");
  EXPECT_THAT(run(two, Tensor({1, 3}, {1.F, 2.F, 3.F})), ElementsAre(1.F, 2.F, 3.F));
  EXPECT_THROW((void)run(two, Tensor({2, 1}, {1.F, 2.F})), ShapeError);
}

TEST(OnnxImport, FunctionsAreInlined) {
  std::string function;
  protozero::pbf_writer w(function);
  w.add_string(1, "ScaledRelu");
  w.add_string(4, "in");
  w.add_string(5, "out");
  w.add_string(6, "slope");
  w.add_message(7, node("LeakyRelu", {"in"}, {"t"}, {attribute_of_call("alpha", "slope", 1)}));
  w.add_message(7, node("Add", {"t", "t"}, {"out"}));
  w.add_message(9, opset("", 17));
  w.add_string(10, "local");
  std::string file = model_of(
      graph({.nodes = {node("ScaledRelu", {"x"}, {"y"}, {attribute("slope", 0.5F)}, "local")},
             .inputs = {value("x", kFloat, {"n"})},
             .outputs = {value("y", kFloat, {"n"})}}),
      17, {function});
  protozero::pbf_writer(file).add_message(8, opset("local", 1));
  EXPECT_THAT(run(import(file), Tensor({2}, {-1.F, 3.F})), ElementsAre(-1.F, 6.F));
}

TEST(OnnxImport, FunctionsThatUnfoldWithoutEndAreRefused) {
  Strings functions;
  for (int i = 0; i < 40; ++i) {
    std::string f;
    protozero::pbf_writer w(f);
    w.add_string(1, fmt::format("f{}", i));
    w.add_string(4, "a");
    w.add_string(5, "c");
    const std::string callee = i == 39 ? "Identity" : fmt::format("f{}", i + 1);
    w.add_message(7, node(callee, {"a"}, {"b"}, {}, i == 39 ? "" : "local"));
    w.add_message(7, node(callee, {"b"}, {"c"}, {}, i == 39 ? "" : "local"));
    w.add_message(9, opset("", 17));
    w.add_string(10, "local");
    functions.push_back(f);
  }
  const std::string file = model_of(graph({.nodes = {node("f0", {"x"}, {"y"}, {}, "local")},
                                           .inputs = {value("x", kFloat, {})},
                                           .outputs = {value("y", kFloat, {})}}),
                                    17, functions);
  EXPECT_THAT(failure<Unsupported>(file), HasSubstr("unfolds to more than"));
}

TEST(OnnxImport, ExtentsCannotExplode) {
  // n = a + b squared again and again.
  Strings nodes = {node("Concat", {"x", "z"}, {"v0"}, {attribute("axis", 0)})};
  for (int i = 0; i < 40; ++i) {
    const std::string v = fmt::format("v{}", i);
    nodes.push_back(node("Unsqueeze", {v, "one"}, {v + "column"}));
    nodes.push_back(node("Mul", {v, v + "column"}, {v + "square"}));
    nodes.push_back(node("Reshape", {v + "square", "flat"}, {fmt::format("v{}", i + 1)}));
  }
  const std::string file = model({.nodes = nodes,
                                  .initializers = {ints("one", {1}), ints("flat", {-1})},
                                  .inputs = {value("x", kFloat, {"a"}), value("z", kFloat, {"b"})},
                                  .outputs = {value("v40", kFloat, {})}});
  EXPECT_THAT(failure<Unsupported>(file), HasSubstr("too complicated"));
}

TEST(OnnxImport, DataDecidesBetweenBranchesOfTheSameTypes) {
  // sum(x) > 0 ? 2 x : x + w
  const std::string yes = branch({node("Add", {"x", "x"}, {"a"})}, "a");
  const std::string no = branch({node("Add", {"x", "w"}, {"b"})}, "b");
  const Graph g = import(
      {.nodes = {node("ReduceSum", {"x"}, {"total"}, {attribute("keepdims", 0)}),
                 node("Greater", {"total", "zero"}, {"p"}),
                 node("If", {"p"}, {"y"},
                      {graph_attribute("then_branch", yes), graph_attribute("else_branch", no)})},
       .initializers = {floats("zero", {}, {0}), floats("w", {2}, {10, 20})},
       .inputs = {value("x", kFloat, {"2"})},
       .outputs = {value("y", kFloat, {"2"})}});
  ASSERT_EQ(g.params().size(), 1U);  // weights of branches are the graph's own
  EXPECT_THAT(run(g, Tensor({2}, {1.F, 2.F})), ElementsAre(2.F, 4.F));
  EXPECT_THAT(run(g, Tensor({2}, {-1.F, -2.F})), ElementsAre(9.F, 18.F));
}

TEST(OnnxImport, LoopsOfAKnownLength) {
  // v += i, and each v as a result
  const std::string body =
      graph({.nodes = {node("Cast", {"i"}, {"fi"}, {attribute("to", 1)}),
                       node("Add", {"v", "fi"}, {"next"}), node("Identity", {"next"}, {"seen"}),
                       node("Identity", {"go"}, {"go_on"})},
             .inputs = {value("i", kInt64, {}), value("go", kBool, {}), value("v", kFloat, {})},
             .outputs = {value("go_on", kBool, {}), value("next", kFloat, {}),
                         value("seen", kFloat, {})}});
  const auto loop = [&](const std::string& result) {
    return model({.nodes = {node("Loop", {"count", "", "x"}, {"last", "all"},
                                 {graph_attribute("body", body)})},
                  .initializers = {ints("count", {}, {4})},
                  .inputs = {value("x", kFloat, {})},
                  .outputs = {value(result, kFloat, {})}});
  };
  EXPECT_THAT(run(import(loop("last")), Tensor(Tensor::Dims{}, {1.F})), ElementsAre(7.F));
  EXPECT_THAT(run(import(loop("all")), Tensor(Tensor::Dims{}, {1.F})),
              ElementsAre(1.F, 2.F, 4.F, 7.F));
}

TEST(OnnxImport, ScansAlongAnyAxisAndBackwards) {
  const std::string body =
      graph({.nodes = {node("Add", {"total", "row"}, {"next"}), node("Mul", {"next", "w"}, {"y"})},
             .inputs = {value("total", kFloat, {"2"}), value("row", kFloat, {"2"})},
             .outputs = {value("next", kFloat, {"2"}), value("y", kFloat, {"2"})}});
  const Graph g = import(
      {.nodes = {node("Scan", {"zeros", "x"}, {"last", "out"},
                      {attribute("num_scan_inputs", 1), attribute("scan_input_axes", Ints{1}),
                       attribute("scan_input_directions", Ints{1}),
                       attribute("scan_output_axes", Ints{-1}), graph_attribute("body", body)})},
       .initializers = {floats("zeros", {2}, {0, 0}), floats("w", {2}, {1, 10})},
       .inputs = {value("x", kFloat, {"2", "n"})},
       .outputs = {value("out", kFloat, {"2", "n"})}});
  EXPECT_THAT(run(g, Tensor({2, 3}, {1.F, 2.F, 3.F, 4.F, 5.F, 6.F})),
              ElementsAre(3.F, 5.F, 6.F, 60.F, 110.F, 150.F));
}

TEST(OnnxImport, DeclaredOutputExtentsAreConstraints) {
  GraphParts parts = one_node(node("Relu", {"x"}, {"y"}), {"n", "m"});
  parts.outputs = {value("y", kFloat, {"n", "n"})};
  const Graph g = import(parts);
  ASSERT_EQ(g.constraints().size(), 1U);
  EXPECT_THROW((void)run(g, Tensor(f32, {1, 2})), ShapeError);
  parts.outputs = {value("y", kFloat, {"n", "some_other_name"})};
  EXPECT_TRUE(import(parts).constraints().empty());
  parts = one_node(node("Relu", {"x"}, {"y"}), {"2"});
  parts.outputs = {value("y", kFloat, {"3"})};
  EXPECT_THROW((void)import(parts), ShapeError);
}

TEST(OnnxImport, EveryTruncationAndBitFlipIsATypedError) {
  const std::string file = model(squeeze_if_one());
  LoadOptions options;
  options.dims.set("n", 1);
  const auto survives = [&](const std::string& bytes) {
    const std::vector<char> exact(bytes.begin(), bytes.end());
    try {
      (void)read_onnx(std::as_bytes(std::span(exact)), options);
    } catch (const Error&) {
    }
  };
  for (std::size_t size = 0; size < file.size(); ++size) survives(file.substr(0, size));
  for (std::size_t bit = 0; bit < 8 * file.size(); ++bit) {
    std::string flipped = file;
    flipped[bit / 8] = static_cast<char>(flipped[bit / 8] ^ (1 << (bit % 8)));
    survives(flipped);
  }
}

TEST(OnnxImport, HandlersAreFoundByOpset) {
  EXPECT_EQ(find_handler("TopK", 9), find_handler("TopK", 7));
  EXPECT_NE(find_handler("TopK", 9), find_handler("TopK", 11));
  EXPECT_NE(find_handler("Relu", 7), nullptr);  // by the operator's own record
  EXPECT_EQ(find_handler("NonMaxSuppression", 17), nullptr);
  EXPECT_GT(supported_operators().size(), 120U);
}

}  // namespace
}  // namespace rlx::onnx
