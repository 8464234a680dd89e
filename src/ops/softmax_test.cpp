#include "ops/softmax.h"

#include <cmath>

#include "conformance/op_case.h"

namespace rlx {
namespace {

std::vector<OpCase> softmax_cases() {
  std::vector<OpCase> cases;
  const auto add = [&](std::string name, DType dtype, Tensor::Dims dims, std::int64_t axis,
                       bool log, bool special) {
    const Tensor x =
        special ? special_tensor(dtype, dims, 7) : random_tensor(dtype, dims, 7, -20, 20);
    cases.push_back({.name = (log ? "log_" : "") + name,
                     .build =
                         [=](Graph& g) {
                           const Value v = g.input("x", {dtype, Shape::of(dims)});
                           g.output("y", log ? log_softmax(v, axis) : softmax(v, axis));
                         },
                     .inputs = {{"x", x}},
                     .ulps = 16,
                     .scale_ulps = 8});
  };
  for (const bool log : {false, true}) {
    for (const std::int64_t cols : {1, 2, 7, 16, 33, 67, 1000})
      add("f32_rows_" + std::to_string(cols), f32, {3, cols}, -1, log, false);
    add("f32_middle_axis", f32, {2, 9, 5}, 1, log, false);
    add("f32_first_axis", f32, {6, 35}, 0, log, false);
    add("f32_special", f32, {40, 3}, -1, log, true);
    add("f64_rows", f64, {3, 19}, -1, log, false);
    add("f16_rows", f16, {3, 19}, -1, log, false);
    add("bf16_rows", bf16, {3, 19}, -1, log, false);
    add("no_rows", f32, {0, 4}, -1, log, false);
    add("no_columns", f32, {3, 0}, -1, log, false);
  }
  return cases;
}
INSTANTIATE_TEST_SUITE_P(Softmax, OpConformance, testing::ValuesIn(softmax_cases()), case_name);

std::vector<float> softmax_of(std::vector<float> x) {
  Graph g;
  g.output("y", softmax(g.input("x", {f32, {static_cast<std::int64_t>(x.size())}}), -1));
  const Tensor t({static_cast<std::int64_t>(x.size())}, std::span<const float>(x));
  const Tensor y = evaluate_graph(g, {{"x", t}}).at("y");
  return {y.values<float>().begin(), y.values<float>().end()};
}

// exp(1), exp(2), exp(3) over their sum, computed by hand to nine digits.
TEST(Softmax, KnownValues) {
  EXPECT_THAT(
      softmax_of({1, 2, 3}),
      testing::Pointwise(testing::FloatNear(1e-8F), {0.090030573F, 0.244728471F, 0.665240956F}));
}

TEST(Softmax, RowOfMinusInfinityIsNan) {
  for (const float v : softmax_of({-INFINITY, -INFINITY})) EXPECT_TRUE(std::isnan(v));
}

TEST(Softmax, LargeInputsDoNotOverflow) {
  EXPECT_THAT(softmax_of({1000, 1000}), testing::ElementsAre(0.5F, 0.5F));
}

TEST(Softmax, RefusesIntegersAndWrongAxes) {
  Graph g;
  EXPECT_THROW((void)softmax(g.input("i", {i32, {3}}), 0), InvalidArgument);
  EXPECT_THROW((void)softmax(g.input("x", {f32, {3}}), 1), InvalidArgument);
  EXPECT_THROW((void)softmax(g.input("s", {f32, {}}), 0), InvalidArgument);
}

}  // namespace
}  // namespace rlx
