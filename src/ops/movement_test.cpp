#include "ops/movement.h"

#include "conformance/op_case.h"
#include "ir/binding.h"

namespace rlx {
namespace {

using Dims = Tensor::Dims;

const DType kMoved[] = {f64, f32,       f16,     bf16,       DType::f8e4m3, DType::f4e2m1, i64,
                        i32, i16,       i8,      DType::i4,  u64,           u32,           u16,
                        u8,  DType::u2, boolean, DType::c64, DType::c128,   DType::string};

// 0, 1, 2, …, or their decimal texts.
Tensor counting(DType dtype, Dims dims) {
  Tensor t(dtype == DType::string ? f32 : dtype, dims);
  std::vector<double> values(t.size());
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<double>(i);
  if (dtype != DType::string) return tensor_of(dtype, std::move(dims), values);
  std::vector<std::string> texts;
  for (const double v : values) texts.push_back(fmt::format("{}", v));
  return Tensor::of_strings(std::move(dims), std::move(texts));
}

struct Movement {
  std::string name;
  std::vector<Dims> inputs;
  OpBuilder build;
};

std::vector<Movement> movements() {
  using V = const std::vector<Value>&;
  const auto constant = [](PadMode mode) {
    return [mode](V v) { return pad(v[0], {1, 0}, {2, 3}, mode); };
  };
  return {
      {"reshape",
       {{2, 3, 5}},
       [](V v) {
         return reshape(v[0], {5, 6});
       }},
      {"reshape_to_scalar", {{1, 1}}, [](V v) { return reshape(v[0], {}); }},
      {"reshape_empty",
       {{0, 3}},
       [](V v) {
         return reshape(v[0], {7, 0, 2});
       }},
      {"transpose",
       {{3, 5}},
       [](V v) {
         return transpose(v[0], {1, 0});
       }},
      {"transpose_rank_4",
       {{2, 3, 1, 5}},
       [](V v) {
         return transpose(v[0], {3, 1, 0, 2});
       }},
      {"transpose_scalar", {{}}, [](V v) { return transpose(v[0], {}); }},
      {"transpose_empty",
       {{3, 0}},
       [](V v) {
         return transpose(v[0], {1, 0});
       }},
      {"transpose_large",
       {{33, 65}},
       [](V v) {
         return transpose(v[0], {1, 0});
       }},
      {"broadcast_row",
       {{3}},
       [](V v) {
         return broadcast(v[0], {2, 3});
       }},
      {"broadcast_column",
       {{3, 1}},
       [](V v) {
         return broadcast(v[0], {2, 3, 7});
       }},
      {"broadcast_scalar",
       {{}},
       [](V v) {
         return broadcast(v[0], {3, 3});
       }},
      {"broadcast_to_nothing",
       {{1, 3}},
       [](V v) {
         return broadcast(v[0], {0, 3});
       }},
      {"slice",
       {{5, 7}},
       [](V v) {
         return slice(v[0], {1, 2}, {3, 4});
       }},
      {"slice_steps",
       {{5, 17}},
       [](V v) {
         return slice(v[0], {0, 1}, {3, 6}, {2, 3});
       }},
      {"slice_down",
       {{5, 17}},
       [](V v) {
         return slice(v[0], {4, 16}, {5, 6}, {-1, -3});
       }},
      {"slice_nothing",
       {{5, 7}},
       [](V v) {
         return slice(v[0], {5, 2}, {0, 4});
       }},
      {"slice_axis", {{2, 9, 3}}, [](V v) { return slice_axis(v[0], -2, 4, 5); }},
      {"reverse",
       {{2, 3, 5}},
       [](V v) {
         return reverse(v[0], {0, -1});
       }},
      {"reverse_empty", {{0, 3}}, [](V v) { return reverse(v[0], {0}); }},
      {"pad_constant", {{3, 4}}, constant(PadMode::constant)},
      {"pad_reflect", {{3, 4}}, constant(PadMode::reflect)},
      {"pad_edge", {{3, 4}}, constant(PadMode::edge)},
      {"pad_wrap", {{3, 4}}, constant(PadMode::wrap)},
      {"pad_value",
       {{3, 4}, {}},
       [](V v) {
         return pad(v[0], {1, 0}, {2, 3}, PadMode::constant, v[1]);
       }},
      {"pad_empty", {{0, 2}}, constant(PadMode::constant)},
      {"pad_scalar", {{}}, [](V v) { return pad(v[0], {}, {}); }},
      {"concat", {{2, 3}, {2, 0}, {2, 4}}, [](V v) { return concat(v, 1); }},
      {"concat_first", {{2, 3}, {1, 3}}, [](V v) { return concat(v, 0); }},
      {"concat_middle", {{2, 1, 5}, {2, 3, 5}}, [](V v) { return concat(v, -2); }},
      {"concat_one", {{4}}, [](V v) { return concat(v, 0); }},
      {"tile",
       {{2, 3}},
       [](V v) {
         return tile(v[0], {2, 1});
       }},
      {"tile_both",
       {{2, 3}},
       [](V v) {
         return tile(v[0], {3, 2});
       }},
      {"squeeze",
       {{1, 3, 1}},
       [](V v) {
         return squeeze(v[0], {0, -1});
       }},
      {"unsqueeze",
       {{3, 5}},
       [](V v) {
         return unsqueeze(v[0], {0, -1});
       }},
      {"flatten", {{2, 3, 5}}, [](V v) { return flatten(v[0], 1); }},
  };
}

std::vector<OpCase> movement_cases() {
  std::vector<OpCase> cases;
  for (const Movement& m : movements()) {
    for (const DType dtype : kMoved) {
      std::vector<Tensor> inputs;
      for (const Dims& dims : m.inputs) inputs.push_back(counting(dtype, dims));
      cases.push_back(op_case(fmt::format("{}_{}", m.name, name(dtype)), inputs, m.build));
    }
  }
  for (const DType dtype : {f32, f16, i64, i32, u8, boolean, DType::c64}) {
    for (const bool upper : {true, false}) {
      cases.push_back(op_case(fmt::format("triangle_{}_{}", upper ? "upper" : "lower", name(dtype)),
                              {counting(dtype, {2, 3, 5})}, [=](const std::vector<Value>& v) {
                                return triangle(v[0], upper, 1);
                              }));
    }
  }
  for (const DType dtype : {f64, f32, f16, bf16, i64, i32, i8, u8, DType::c64}) {
    cases.push_back(op_case(fmt::format("iota_{}", name(dtype)), {Tensor(dtype, {1})},
                            [=](const std::vector<Value>& v) {
                              return iota(v[0].graph(), dtype, {3, 67}, 1);
                            }));
  }
  return cases;
}
INSTANTIATE_TEST_SUITE_P(Movement, OpConformance, testing::ValuesIn(movement_cases()), case_name);

// ---------------------------------------------------------------- known values

std::vector<double> moved(Dims dims, const OpBuilder& build) {
  return doubles(evaluated({counting(i32, std::move(dims))}, build));
}
using Values = const std::vector<Value>&;
using testing::ElementsAre;

// Every wide type moves through the same walk, so each dtype's answer is i32's, read in the dtype.
TEST(Movement, EveryDtypeMovesLikeTheNumbersItHolds) {
  for (const Movement& m : movements()) {
    std::vector<Tensor> numbers;
    for (const Dims& dims : m.inputs) numbers.push_back(counting(i32, dims));
    const Tensor expected = evaluated(numbers, m.build);
    std::vector<Tensor> texts;
    for (const Dims& dims : m.inputs) texts.push_back(counting(DType::string, dims));
    const Tensor found = evaluated(texts, m.build);
    ASSERT_EQ(found.dims(), expected.dims()) << m.name;
    for (std::size_t i = 0; i < found.size(); ++i) {
      const std::string text = fmt::format("{}", expected.values<std::int32_t>()[i]);
      const std::string filler =
          m.name.starts_with("pad_") && found.strings()[i].empty() ? "0" : "";
      EXPECT_EQ(found.strings()[i] + filler, text) << m.name << " element " << i;
    }
  }
}

TEST(Movement, TransposeOfRankThree) {
  EXPECT_THAT(moved({2, 3},
                    [](Values v) {
                      return transpose(v[0], {1, 0});
                    }),
              ElementsAre(0, 3, 1, 4, 2, 5));
  EXPECT_THAT(moved({2, 2, 2},
                    [](Values v) {
                      return transpose(v[0], {2, 0, -2});
                    }),
              ElementsAre(0, 2, 4, 6, 1, 3, 5, 7));
}

TEST(Movement, SliceWalksBothWays) {
  EXPECT_THAT(moved({7}, [](Values v) { return slice(v[0], {1}, {3}, {2}); }),
              ElementsAre(1, 3, 5));
  EXPECT_THAT(moved({7}, [](Values v) { return slice(v[0], {6}, {4}, {-2}); }),
              ElementsAre(6, 4, 2, 0));
  EXPECT_THAT(moved({2, 3}, [](Values v) { return reverse(v[0], {1}); }),
              ElementsAre(2, 1, 0, 5, 4, 3));
}

// numpy.pad of [0 1 2 3] by (3, 2), and by (4, 4) for wrap.
TEST(Movement, PadModes) {
  const auto padded = [](PadMode mode, Dim low, Dim high) {
    return moved({4}, [=](Values v) { return pad(v[0], {low}, {high}, mode); });
  };
  EXPECT_THAT(padded(PadMode::constant, 3, 2), ElementsAre(0, 0, 0, 0, 1, 2, 3, 0, 0));
  EXPECT_THAT(padded(PadMode::reflect, 3, 2), ElementsAre(3, 2, 1, 0, 1, 2, 3, 2, 1));
  EXPECT_THAT(padded(PadMode::edge, 3, 2), ElementsAre(0, 0, 0, 0, 1, 2, 3, 3, 3));
  EXPECT_THAT(padded(PadMode::wrap, 4, 4), ElementsAre(0, 1, 2, 3, 0, 1, 2, 3, 0, 1, 2, 3));
  EXPECT_THAT(
      moved({4}, [](Values v) { return pad(v[0], {1}, {1}, PadMode::constant, scalar(v[0], -9)); }),
      ElementsAre(-9, 0, 1, 2, 3, -9));
}

TEST(Movement, ConcatAndSplitAreInverse) {
  EXPECT_THAT(moved({2, 3},
                    [](Values v) {
                      return concat({v[0], v[0]}, 1);
                    }),
              ElementsAre(0, 1, 2, 0, 1, 2, 3, 4, 5, 3, 4, 5));
  const auto there_and_back = [](Values v) { return concat(split(v[0], {1, 0, 4}, 1), 1); };
  EXPECT_EQ(moved({3, 5}, there_and_back), doubles(counting(i32, {3, 5})));
}

TEST(Movement, TileRepeatsWholeAxes) {
  EXPECT_THAT(moved({2, 2},
                    [](Values v) {
                      return tile(v[0], {2, 2});
                    }),
              ElementsAre(0, 1, 0, 1, 2, 3, 2, 3, 0, 1, 0, 1, 2, 3, 2, 3));
}

// numpy.triu / tril of arange(9).reshape(3, 3) with k = 1, 0 and -1.
TEST(Movement, Triangles) {
  const auto of = [](bool upper, std::int64_t diagonal) {
    return moved({3, 3}, [=](Values v) { return triangle(v[0], upper, diagonal); });
  };
  EXPECT_THAT(of(true, 0), ElementsAre(0, 1, 2, 0, 4, 5, 0, 0, 8));
  EXPECT_THAT(of(true, 1), ElementsAre(0, 1, 2, 0, 0, 5, 0, 0, 0));
  EXPECT_THAT(of(false, -1), ElementsAre(0, 0, 0, 3, 0, 0, 6, 7, 0));
  EXPECT_THAT(of(false, 0), ElementsAre(0, 0, 0, 3, 4, 0, 6, 7, 8));
  EXPECT_THAT(of(true, std::numeric_limits<std::int64_t>::max()), testing::Each(0));
  EXPECT_EQ(of(false, std::numeric_limits<std::int64_t>::max()), doubles(counting(i32, {3, 3})));
}

// A product with 0 would keep the NaN and turn the infinity into one.
TEST(Movement, TriangleLeavesNothingOfWhatItDrops) {
  const Tensor x({2, 2}, {1.0F, INFINITY, NAN, 2.0F});
  const Tensor y = evaluated({x}, [](Values v) { return triangle(v[0], true, 1); });
  EXPECT_THAT(doubles(y), ElementsAre(0, INFINITY, 0, 0));
}

TEST(Movement, IotaWrapsIntegersAndRoundsFloats) {
  const auto last = [](DType dtype, std::int64_t count) {
    Graph g;
    g.output("y", iota(g, dtype, {count}, 0));
    return doubles(evaluate_graph(g, {}).at("y")).back();
  };
  EXPECT_EQ(last(i8, 130), -127);
  EXPECT_EQ(last(u8, 258), 1);
  EXPECT_EQ(last(f16, 2050), 2048);  // 2049 lies half way, and 2048 is the even one
  EXPECT_EQ(last(f32, 10), 9);
}

// ---------------------------------------------------------------- errors

class MovementErrors : public testing::Test {
 protected:
  Graph g;
  const Value x = g.input("x", {f32, {2, 3}});
  const Value s = g.input("s", {f32, {"n", 3}});
  const Value q = g.input("q", {DType::q4_0, {4, 64}});
};

TEST_F(MovementErrors, NameWhatWasFound) {
  EXPECT_EQ(error_of([&] { (void)reshape(x, {4}); }),
            "reshape (reshape): number of elements of [2, 3] and [4]: 6 and 4 differ");
  EXPECT_EQ(error_of([&] {
              (void)reshape(x, {-2, -3});
            }),
            "reshape.1 (reshape): extent 0 of [-2, -3]: 0 is more than -2");
  EXPECT_EQ(error_of([&] { (void)transpose(x, {0}); }),
            "transpose (transpose): permutation has 1 entries, expected one for each of 2 axes");
  EXPECT_EQ(error_of([&] {
              (void)transpose(x, {0, 0});
            }),
            "transpose.1 (transpose): axis 0 is listed twice");
  EXPECT_EQ(error_of([&] {
              (void)broadcast(x, {4, 3});
            }),
            "broadcast (broadcast): broadcast of [2, 3] to [4, 3]: 2 and 4 differ");
  EXPECT_EQ(error_of([&] { (void)broadcast(x, {3}); }),
            "broadcast.1 (broadcast): x is [2, 3], which does not broadcast to [3]");
  EXPECT_EQ(error_of([&] {
              (void)concat({x, g.input("i", {i32, {2, 3}})}, 0);
            }),
            "concat (concat): x[0] is f32 and x[1] is i32");
  EXPECT_EQ(error_of([&] {
              (void)concat({x, g.input("y", {f32, {3, 3}})}, 1);
            }),
            "concat.1 (concat): extent 0 of x[0] and x[1]: 2 and 3 differ");
  EXPECT_EQ(error_of([&] { (void)concat({}, 1); }), "concat takes one input or more, found 0");
  EXPECT_EQ(error_of([&] {
              (void)split(x, {1, 1}, 1);
            }),
            "sum of the sizes along axis 1: 2 and 3 differ");
  EXPECT_EQ(error_of([&] { (void)squeeze(x, {0}); }), "squeeze of axis 0: 2 and 1 differ");
  EXPECT_EQ(error_of([&] { (void)iota(g, boolean, {3}, 0); }),
            "iota (iota): iota of bool, expected a number");
  EXPECT_EQ(error_of([&] {
              (void)triangle(g.input("v", {f32, {3}}), true);
            }),
            "triangle: x is [3], expected rank 2 or more");
}

TEST_F(MovementErrors, SliceOutOfRange) {
  EXPECT_EQ(error_of([&] { (void)slice_axis(x, 1, 1, 3); }),
            "slice (slice): axis 1 from 1, size 3, step 1 in extent 3: 4 is more than 3");
  EXPECT_EQ(error_of([&] { (void)slice_axis(x, 1, -1, 2); }),
            "slice.1 (slice): axis 1 from -1, size 2, step 1 in extent 3: 0 is more than -1");
  EXPECT_EQ(error_of([&] {
              (void)slice(x, {0, 2}, {2, 4}, {1, -1});
            }),
            "slice.2 (slice): axis 1 from 2, size 4, step -1 in extent 3: 0 is more than -1");
  EXPECT_EQ(error_of([&] {
              (void)slice(x, {0, 3}, {2, 1}, {1, -1});
            }),
            "slice.3 (slice): axis 1 from 3, size 1, step -1 in extent 3: 4 is more than 3");
  EXPECT_EQ(error_of([&] {
              (void)slice(x, {0, 0}, {2, 3}, {1, 0});
            }),
            "slice.4 (slice): axis 1 from 0, size 3, step 0 in extent 3: a step is not 0");
  EXPECT_THROW((void)slice(x, {0, 0}, {2, 3}, {1, std::numeric_limits<std::int64_t>::max()}),
               ShapeError);
}

TEST_F(MovementErrors, PaddingThatReachesTooFar) {
  const auto pad_by = [&](Dim low, PadMode mode) {
    return error_of([&] { (void)pad(x, {0, low}, {0, 0}, mode); });
  };
  EXPECT_EQ(pad_by(2, PadMode::reflect), "");
  EXPECT_EQ(pad_by(3, PadMode::wrap), "");
  EXPECT_EQ(pad_by(3, PadMode::reflect),
            "pad.2 (pad): reflect padding of axis 1 by 3 with extent 3: 4 is more than 3");
  EXPECT_EQ(pad_by(4, PadMode::wrap),
            "pad.3 (pad): wrap padding of axis 1 by 4 with extent 3: 4 is more than 3");
  EXPECT_EQ(pad_by(-1, PadMode::constant),
            "pad.4 (pad): constant padding of axis 1 by -1 with extent 3: 0 is more than -1");
  const Value empty = g.input("empty", {f32, {0}});
  EXPECT_NO_THROW((void)pad(empty, {0}, {0}, PadMode::edge));
  EXPECT_THROW((void)pad(empty, {1}, {0}, PadMode::edge), ShapeError);
  EXPECT_THROW((void)pad(x, {0, 1}, {0, 0}, PadMode::edge, scalar(x, 1)), InvalidArgument);
}

TEST_F(MovementErrors, BlockTypesMoveOffTheLastAxisOnly) {
  EXPECT_EQ(slice_axis(q, 0, 1, 2).type(), (TensorType{DType::q4_0, {2, 64}}));
  EXPECT_EQ(concat({q, q}, 0).type(), (TensorType{DType::q4_0, {8, 64}}));
  EXPECT_EQ(reshape(q, {2, 2, 64}).type(), (TensorType{DType::q4_0, {2, 2, 64}}));
  EXPECT_EQ(error_of([&] { (void)slice_axis(q, 1, 0, 32); }),
            "slice.1 (slice): x is q4_0, which slice does not take along the last axis");
  EXPECT_EQ(error_of([&] {
              (void)concat({q, q}, 1);
            }),
            "concat.1 (concat): x[0] is q4_0, which concat does not take along the last axis");
  EXPECT_EQ(error_of([&] {
              (void)reshape(q, {8, 32});
            }),
            "reshape.1 (reshape): x is q4_0, which reshape does not take unless the last extent "
            "stays");
  EXPECT_THROW((void)transpose(q, {1, 0}), InvalidArgument);
  EXPECT_THROW((void)broadcast(q, {2, 4, 64}), InvalidArgument);
  EXPECT_THROW((void)pad(q, {0, 0}, {1, 0}), InvalidArgument);
}

// ---------------------------------------------------------------- symbols

TEST_F(MovementErrors, EqualPolynomialsReshapeWithoutAConstraint) {
  EXPECT_EQ(reshape(s, {Dim("n") * 3}).shape(), (Shape{Dim("n") * 3}));
  EXPECT_EQ(flatten(s, 0).shape(), (Shape{1, Dim("n") * 3}));
  EXPECT_EQ(reverse(s, {0}).shape(), s.shape());
  EXPECT_TRUE(g.constraints().empty());
}

TEST_F(MovementErrors, SymbolicBoundsAreCheckedAtBinding) {
  g.output("a", slice_axis(s, 0, 2, Dim("n") - 3));
  g.output("b", reshape(s, {2, "m"}));
  const std::map<std::string, Dims> dims{{"x", {2, 3}}, {"s", {4, 3}}, {"q", {4, 64}}};
  const auto bound = [&](std::int64_t n, std::int64_t m) {
    auto given = dims;
    given["s"] = {n, 3};
    DimBinding sizes;
    sizes.set("m", m);
    return error_of([&] { (void)bind_sizes(g, given, sizes); });
  };
  EXPECT_EQ(bound(4, 6), "");
  EXPECT_EQ(bound(2, 3),
            "slice: axis 0 from 2, size n - 3, step 1 in extent n: 0 is more than n - 3 = -1");
  EXPECT_EQ(bound(4, 7),
            "reshape: number of elements of [n, 3] and [2, m]: 3*n = 12 and 2*m = 14 differ");
}

TEST_F(MovementErrors, InequalitiesSurviveTheTextForm) {
  g.output("y", slice_axis(s, 0, "from", 2));
  ASSERT_EQ(g.constraints().size(), 1U);
  const DimConstraint& c = g.constraints()[0];
  EXPECT_EQ(c.relation, DimConstraint::Relation::less_equal);
  EXPECT_EQ(c.left, Dim("from") + 2);
  EXPECT_EQ(c.right, Dim("n"));
  const std::string text = to_string(g);
  EXPECT_NE(text.find("require from + 2 <= n \"slice\""), std::string::npos) << text;
}

TEST(Movement, SymbolicExtentsRun) {
  Graph g;
  const Value x = g.input("x", {f32, {"n", 2}});
  g.output("tail", slice_axis(x, 0, Dim("n") - 1, 1));
  g.output("tiled", tile(x, {2, 1}));
  g.output("padded", pad(x, {0, 0}, {Dim("n"), 0}, PadMode::wrap));
  const NamedTensors out = evaluate_graph(g, {{"x", Tensor({2, 2}, {1.0F, 2.0F, 3.0F, 4.0F})}});
  EXPECT_THAT(doubles(out.at("tail")), ElementsAre(3, 4));
  EXPECT_THAT(doubles(out.at("tiled")), ElementsAre(1, 2, 3, 4, 1, 2, 3, 4));
  EXPECT_THAT(doubles(out.at("padded")), ElementsAre(1, 2, 3, 4, 1, 2, 3, 4));
}

}  // namespace
}  // namespace rlx
