#include <gtest/gtest.h>

#include <algorithm>

#include "kernel_run.h"
#include "rlx/ops.h"

namespace rlx {
namespace {

OpCase softmax_case(DType dtype, Tensor::Dims dims, std::int64_t axis, bool log, bool special) {
  const Tensor x =
      special ? special_tensor(dtype, dims, 3) : random_tensor(dtype, dims, 3, -30, 30);
  return {.name = fmt::format("{}softmax of {}{} along {}{}", log ? "log_" : "", name(dtype),
                              to_string(dims), axis, special ? ", special values" : ""),
          .build =
              [=](Graph& g) {
                const Value v = g.input("x", {dtype, Shape::of(dims)});
                g.output("y", log ? log_softmax(v, axis) : softmax(v, axis));
              },
          .inputs = {{"x", x}},
          .ulps = 16,
          .scale_ulps = 8};
}

void check_all_kinds(const Tensor::Dims& dims, std::int64_t axis) {
  for (const DType dtype : {f32, f64, f16, bf16}) {
    for (const bool log : {false, true}) {
      check_kernel(softmax_case(dtype, dims, axis, log, false));
      check_kernel(softmax_case(dtype, dims, axis, log, true));
    }
  }
}

// From below one vector to past four AVX-512 vectors, so that every remainder path runs.
TEST(SoftmaxKernel, RowsOfEveryWidth) {
  for (std::int64_t cols = 1; cols <= 67; ++cols) {
    check_kernel(softmax_case(f32, {3, cols}, 1, false, false));
    check_kernel(softmax_case(f16, {3, cols}, 1, true, true));
  }
}

TEST(SoftmaxKernel, LargeEnoughForThreads) {
  check_all_kinds({64, 384}, 1);
  check_all_kinds({5, 5000}, 1);
}

TEST(SoftmaxKernel, OtherAxes) {
  check_all_kinds({40, 3, 37}, 0);
  check_all_kinds({2, 300, 75}, 1);
  check_all_kinds({3, 7, 5}, 1);
}

TEST(SoftmaxKernel, ExtremeRows) {
  const auto run = [](const std::vector<float>& row, bool log) {
    Graph g;
    const Value v = g.input("x", {f32, {static_cast<std::int64_t>(row.size())}});
    g.output("y", log ? log_softmax(v, 0) : softmax(v, 0));
    const Tensor x({static_cast<std::int64_t>(row.size())}, std::span<const float>(row));
    const Tensor y = run_kernel(g, {{"x", x}}).at("y");
    return std::vector<float>(y.values<float>().begin(), y.values<float>().end());
  };
  EXPECT_THAT(run({3e38F, 3e38F, -3e38F}, false), testing::ElementsAre(0.5F, 0.5F, 0.0F));
  EXPECT_THAT(run({-INFINITY, 1, -INFINITY}, false), testing::ElementsAre(0.0F, 1.0F, 0.0F));
  EXPECT_THAT(run({-INFINITY, 1, -INFINITY}, true),
              testing::ElementsAre(-INFINITY, 0.0F, -INFINITY));
  for (const float v : run({-INFINITY, -INFINITY}, false)) EXPECT_TRUE(std::isnan(v));
  for (const float v : run({1, NAN, 2}, false)) EXPECT_TRUE(std::isnan(v));
  for (const float v : run({1, INFINITY, 2}, true)) EXPECT_TRUE(std::isnan(v));
}

TEST(SoftmaxKernel, RowAloneHasTheBitsOfTheBatch) {
  const Tensor::Dims dims = {40, 777};
  const OpCase batch = softmax_case(f32, dims, 1, false, false);
  Graph g;
  batch.build(g);
  const Tensor y = run_kernel(g, batch.inputs, {.threads = 4}).at("y");
  for (const std::int64_t row : {0, 17, 39}) {
    Graph one;
    one.output("y", softmax(one.input("x", {f32, {1, 777}}), 1));
    const Tensor x = rows_of(batch.inputs.at("x"), row, row + 1);
    EXPECT_TRUE(std::ranges::equal(run_kernel(one, {{"x", x}}).at("y").bytes(),
                                   rows_of(y, row, row + 1).bytes()));
  }
}

}  // namespace
}  // namespace rlx
