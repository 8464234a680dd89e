#include "ops/indexing.h"

#include "conformance/op_case.h"
#include "ir/binding.h"

namespace rlx {
namespace {

using Dims = Tensor::Dims;
using Values = const std::vector<Value>&;
using testing::ElementsAre;

Tensor counting(DType dtype, Dims dims) {
  std::vector<double> values(Tensor(i8, dims).size());
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<double>(i);
  return tensor_of(dtype, std::move(dims), values);
}

struct Indexed {
  std::string name;
  Dims x;
  Dims indices;
  double extent;  // of the axis that the indices point into
  OpBuilder build;
};

std::vector<Indexed> indexed() {
  return {
      {"gather_rows", {7, 5}, {3}, 7, [](Values v) { return gather(v[0], v[1], 0); }},
      {"gather_long_rows", {7, 67}, {2, 3}, 7, [](Values v) { return gather(v[0], v[1], 0); }},
      {"gather_middle", {2, 7, 3}, {2, 2}, 7, [](Values v) { return gather(v[0], v[1], -2); }},
      {"gather_last", {3, 17}, {9}, 17, [](Values v) { return gather(v[0], v[1], 1); }},
      {"gather_scalar_index", {7, 5}, {}, 7, [](Values v) { return gather(v[0], v[1], 0); }},
      {"gather_vector", {7}, {4, 1}, 7, [](Values v) { return gather(v[0], v[1], 0); }},
      {"gather_no_indices", {7, 5}, {0}, 7, [](Values v) { return gather(v[0], v[1], 0); }},
      {"gather_no_columns", {7, 0}, {3}, 7, [](Values v) { return gather(v[0], v[1], 0); }},
      {"embedding", {11, 8}, {2, 5}, 11, [](Values v) { return embedding(v[0], v[1]); }},
      {"gather_elements_first",
       {7, 5},
       {3, 5},
       7,
       [](Values v) { return gather_elements(v[0], v[1], 0); }},
      {"gather_elements_last",
       {3, 7},
       {2, 9},
       7,
       [](Values v) { return gather_elements(v[0], v[1], -1); }},
      {"gather_elements_none",
       {3, 7},
       {0, 9},
       7,
       [](Values v) { return gather_elements(v[0], v[1], 1); }},
      {"gather_nd_elements", {4, 4, 3}, {5, 2}, 4, [](Values v) { return gather_nd(v[0], v[1]); }},
      {"gather_nd_full", {4, 4}, {5, 2}, 4, [](Values v) { return gather_nd(v[0], v[1]); }},
      {"gather_nd_batch",
       {2, 5, 3},
       {2, 4, 1},
       5,
       [](Values v) { return gather_nd(v[0], v[1], 1); }},
      {"gather_nd_none", {4, 4}, {0, 2}, 4, [](Values v) { return gather_nd(v[0], v[1]); }},
  };
}

std::vector<OpCase> indexing_cases() {
  std::vector<OpCase> cases;
  for (const Indexed& c : indexed()) {
    for (const DType index : {i32, i64}) {
      for (const DType dtype : {f64, f32, f16, bf16, i64, i32, i16, i8, u8, boolean, DType::c64}) {
        if (index == i32 && dtype != f32) continue;
        cases.push_back(op_case(
            fmt::format("{}_{}_{}", c.name, name(dtype), name(index)),
            {counting(dtype, c.x), random_tensor(index, c.indices, 3, -c.extent, c.extent - 1)},
            c.build));
      }
    }
  }
  for (const std::int64_t axis : {0, 1, 2}) {
    cases.push_back(op_case(fmt::format("one_hot_{}", axis), {random_tensor(i64, {3, 5}, 1, -9, 9)},
                            [=](Values v) {
                              Graph& g = v[0].graph();
                              return one_hot(v[0], 7, scalar(g, f32, 0), scalar(g, f32, 1), axis);
                            }));
  }
  return cases;
}
INSTANTIATE_TEST_SUITE_P(Indexing, OpConformance, testing::ValuesIn(indexing_cases()), case_name);

std::vector<double> picked(Dims x, const Tensor& indices, const OpBuilder& build) {
  return doubles(evaluated({counting(i32, std::move(x)), indices}, build));
}

// numpy.take of arange(24).reshape(2, 3, 4)[1:] along axis 1.
TEST(Indexing, GatherKeepsTheAxesAroundItsOwn) {
  const Tensor indices({2, 2}, {2, 0, -1, 1});
  const auto y = picked({2, 3, 4}, indices, [](Values v) { return gather(v[0], v[1], 1); });
  ASSERT_EQ(y.size(), 32U);
  EXPECT_THAT(std::vector<double>(y.begin() + 16, y.end()),
              ElementsAre(20, 21, 22, 23, 12, 13, 14, 15, 20, 21, 22, 23, 16, 17, 18, 19));
}

// numpy.take_along_axis of arange(24).reshape(2, 3, 4) along axis 1.
TEST(Indexing, GatherElements) {
  const Tensor indices({2, 1, 4}, {0, -1, 2, 1, 2, 2, 0, 0});
  EXPECT_THAT(picked({2, 3, 4}, indices, [](Values v) { return gather_elements(v[0], v[1], 1); }),
              ElementsAre(0, 9, 10, 7, 20, 21, 14, 15));
}

// The examples of ONNX's GatherND, with its data counted instead.
TEST(Indexing, GatherNd) {
  const auto of = [](Dims x, const Tensor& indices, std::int64_t batch) {
    return picked(std::move(x), indices, [=](Values v) { return gather_nd(v[0], v[1], batch); });
  };
  EXPECT_THAT(of({2, 2}, Tensor({2, 2}, {0, 0, 1, 1}), 0), ElementsAre(0, 3));
  EXPECT_THAT(of({2, 2}, Tensor({2, 1}, {1, 0}), 0), ElementsAre(2, 3, 0, 1));
  EXPECT_THAT(of({2, 2, 2}, Tensor({2, 2}, {0, 1, 1, 0}), 0), ElementsAre(2, 3, 4, 5));
  EXPECT_THAT(of({2, 2, 2}, Tensor({2, 1}, {1, 0}), 1), ElementsAre(2, 3, 4, 5));
  EXPECT_THAT(of({2, 2}, Tensor({2, 1}, {-1, -2}), 0), ElementsAre(2, 3, 0, 1));
}

TEST(Indexing, OneHotLeavesIndicesOutOfRangeOff) {
  const Tensor indices({4}, {std::int64_t{0}, std::int64_t{-1}, std::int64_t{3}, std::int64_t{-4}});
  const auto row = [](Values v) {
    Graph& g = v[0].graph();
    return one_hot(v[0], 3, scalar(g, f32, 2), scalar(g, f32, 5));
  };
  EXPECT_THAT(doubles(evaluated({indices}, row)), ElementsAre(5, 2, 2, 2, 2, 5, 2, 2, 2, 2, 2, 2));
  const auto column = [](Values v) {
    Graph& g = v[0].graph();
    return one_hot(v[0], 2, scalar(g, i32, 0), scalar(g, i32, 1), 0);
  };
  EXPECT_THAT(doubles(evaluated({indices}, column)), ElementsAre(1, 0, 0, 0, 0, 1, 0, 0));
}

TEST(Indexing, OneHotOfASymbolicDepth) {
  Graph g;
  const Value x = g.input("x", {f32, {"n"}});
  const Value i = g.input("i", {i32, {2}});
  g.output("y", one_hot(i, "n", scalar(x, 0), scalar(x, 1)));
  const auto y = evaluate_graph(g, {{"x", Tensor(f32, {3})}, {"i", Tensor({2}, {2, -3})}});
  EXPECT_THAT(doubles(y.at("y")), ElementsAre(0, 0, 1, 1, 0, 0));
}

TEST(Indexing, OutOfRangeIsAFaultThatNamesIndexAndExtent) {
  const auto fault = [](std::int64_t index, const OpBuilder& build) {
    try {
      (void)evaluated({counting(f32, {3, 4}), Tensor({1, 1}, {index})}, build);
    } catch (const IndexError& e) {
      return std::string(e.what());
    }
    return std::string();
  };
  EXPECT_EQ(fault(-3, [](Values v) { return gather(v[0], v[1], 0); }), "");
  EXPECT_EQ(fault(3, [](Values v) { return gather(v[0], v[1], 0); }),
            "gather (gather): index 3 is out of range for extent 3");
  EXPECT_EQ(fault(-5, [](Values v) { return gather_elements(v[0], v[1], 1); }),
            "gather_elements (gather_elements): index -5 is out of range for extent 4");
  EXPECT_EQ(fault(std::numeric_limits<std::int64_t>::min(),
                  [](Values v) { return gather_nd(v[0], v[1]); }),
            "gather_nd (gather_nd): index -9223372036854775808 is out of range for extent 3");
}

TEST(Indexing, RefusesWhatDoesNotFit) {
  Graph g;
  const Value x = g.input("x", {f32, {2, 3}});
  const Value i = g.input("i", {i64, {2, 4}});
  EXPECT_EQ(error_of([&] { (void)gather(x, x, 0); }),
            "gather (gather): indices is f32, expected i32 or i64");
  EXPECT_EQ(error_of([&] { (void)gather(x, i, 2); }), "axis 2 is out of range for rank 2");
  EXPECT_EQ(error_of([&] { (void)gather_elements(x, i, 0); }),
            "gather_elements (gather_elements): extent 1 of indices and x: 4 is more than 3");
  EXPECT_EQ(error_of([&] {
              (void)gather_elements(x, g.input("v", {i64, {2}}), 0);
            }),
            "gather_elements.1 (gather_elements): indices is [2], expected rank 2");
  EXPECT_EQ(error_of([&] { (void)gather_nd(x, i); }),
            "gather_nd (gather_nd): indices are [2, 4] and address 4 axes, x is [2, 3] with 0 "
            "batch axes");
  EXPECT_EQ(
      error_of([&] { (void)gather_nd(x, i, 2); }),
      "gather_nd.1 (gather_nd): batch_dims 2 is out of range for x [2, 3] and indices [2, 4]");
  EXPECT_EQ(error_of([&] {
              (void)gather_nd(x, g.input("w", {i64, {2, "k"}}));
            }),
            "gather_nd.2 (gather_nd): indices are [2, k], expected a last extent that is a "
            "constant");
  EXPECT_EQ(error_of([&] {
              (void)embedding(g.input("t", {f32, {3}}), i);
            }),
            "embedding: table is [3], expected rank 2");
  EXPECT_EQ(error_of([&] { (void)one_hot(x, 3, scalar(x, 0), scalar(x, 1)); }),
            "one_hot: indices is f32, expected i32 or i64");
}

TEST(Indexing, BlockTypesTakeWholeRows) {
  Graph g;
  const Value table = g.input("table", {DType::q4_k, {100, 256}});
  const Value i = g.input("i", {i64, {"n", 2}});
  EXPECT_EQ(embedding(table, i).type(), (TensorType{DType::q4_k, {"n", 2, 256}}));
  EXPECT_THROW((void)gather(table, i, 1), InvalidArgument);
  EXPECT_THROW((void)gather_elements(table, i, 0), InvalidArgument);
  EXPECT_THROW((void)gather_nd(table, i), InvalidArgument);
}

TEST(Indexing, SymbolicExtents) {
  Graph g;
  const Value x = g.input("x", {f32, {"b", "n", 4}});
  const Value i = g.input("i", {i64, {"m", 3}});
  EXPECT_EQ(gather(x, i, 1).shape(), (Shape{"b", "m", 3, 4}));
  EXPECT_TRUE(g.constraints().empty());
  const Value j = g.input("j", {i64, {"c", "k", 1}});
  EXPECT_EQ(gather_nd(x, j, 1).shape(), (Shape{"b", "k", 4}));
  ASSERT_EQ(g.constraints().size(), 1U);
  EXPECT_EQ(g.constraints()[0].what, "batch extent 0");
}

}  // namespace
}  // namespace rlx
