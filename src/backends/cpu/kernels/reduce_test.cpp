#include "ops/reduce.h"

#include <gtest/gtest.h>

#include <numeric>

#include "kernel_run.h"
#include "rlx/ops.h"

namespace rlx {
namespace {

constexpr Reduction kKinds[] = {Reduction::sum, Reduction::mean, Reduction::max, Reduction::min,
                                Reduction::prod};

OpCase reduce_case(DType dtype, const Tensor::Dims& dims, Reduction kind,
                   std::vector<std::int64_t> axes, bool special = false) {
  double terms = 1;
  for (const std::int64_t axis : axes) terms *= static_cast<double>(dims[axis]);
  const bool product = kind == Reduction::prod;
  const double low = product ? 0.9 : is_unsigned_integer(dtype) ? 0 : -50;
  const Tensor x = special ? special_tensor(dtype, dims, 5)
                           : random_tensor(dtype, dims, 5, low, product ? 1.1 : 100);
  const bool sums = kind == Reduction::sum || kind == Reduction::mean;
  return {.name = fmt::format("{} of {}{} over {} axes from {}",
                              enum_names(kind)[static_cast<std::size_t>(kind)], name(dtype),
                              to_string(dims), axes.size(), axes.empty() ? 0 : axes[0]),
          .build =
              [=](Graph& g) {
                g.output("y", reduce(g.input("x", {dtype, Shape::of(dims)}), kind, axes));
              },
          .inputs = {{"x", x}},
          .ulps = product ? terms + 4 : 4,
          .terms = sums ? terms : 0};
}

void check_all(const Tensor::Dims& dims, const std::vector<std::int64_t>& axes) {
  for (const Reduction kind : kKinds) {
    for (const DType dtype : {f32, f64, f16, bf16})
      check_kernel(reduce_case(dtype, dims, kind, axes));
    if (kind == Reduction::mean) continue;
    for (const DType dtype : {i8, i16, i32, i64, u8, u16, u32, u64})
      check_kernel(reduce_case(dtype, dims, kind, axes));
  }
}

TEST(ReduceKernel, EveryDtypeAndKind) {
  check_all({3, 150}, {1});
  check_all({150, 7}, {0});
  check_all({5, 4, 6, 3}, {0, 2});
  check_all({5, 4, 6, 3}, {1, 3});
  check_all({2, 3}, {});
  check_all({0, 3}, {0});
  check_all({3, 0}, {1});
}

TEST(ReduceKernel, LinesOfEveryWidth) {
  for (std::int64_t cols = 1; cols <= 67; ++cols) {
    check_kernel(reduce_case(f32, {3, cols}, Reduction::sum, {1}));
    check_kernel(reduce_case(f32, {5, cols}, Reduction::max, {0}));
  }
}

TEST(ReduceKernel, LargeEnoughForChunksAndThreads) {
  for (const Reduction kind : {Reduction::sum, Reduction::mean, Reduction::max}) {
    check_kernel(reduce_case(f32, {2, 50000}, kind, {1}));
    check_kernel(reduce_case(f32, {1000, 131}, kind, {0}));
    check_kernel(reduce_case(f32, {40, 9, 300}, kind, {0, 2}));
    check_kernel(reduce_case(bf16, {3, 300, 129}, kind, {1}));
    check_kernel(reduce_case(f32, {70000}, kind, {0}));
  }
}

TEST(ReduceKernel, NanWins) {
  for (const Reduction kind : kKinds) {
    for (std::int64_t at = 0; at < 70; at += 3) {
      std::vector<float> values(70);
      std::iota(values.begin(), values.end(), -30.0F);
      values[static_cast<std::size_t>(at)] = NAN;
      Graph g;
      g.output("y", reduce(g.input("x", {f32, {70}}), kind, {0}));
      const Tensor x({70}, std::span<const float>(values));
      EXPECT_TRUE(std::isnan(run_kernel(g, {{"x", x}}).at("y").values<float>()[0])) << at;
    }
  }
}

TEST(ReduceKernel, LongSumsStayAccurate) {
  const std::int64_t size = 1 << 20;
  const std::vector<float> values(static_cast<std::size_t>(size), 0.1F);
  Graph g;
  g.output("y", sum(g.input("x", {f32, {size}}), {0}));
  const Tensor x({size}, std::span<const float>(values));
  const double exact = static_cast<double>(0.1F) * static_cast<double>(size);
  EXPECT_NEAR(run_kernel(g, {{"x", x}}).at("y").values<float>()[0], exact, exact * 0x1p-18);
}

TEST(ReduceKernel, ComplexNumbers) {
  for (const DType dtype : {DType::c64, DType::c128}) {
    for (const Reduction kind : {Reduction::sum, Reduction::mean, Reduction::prod}) {
      Graph g;
      g.output("y", reduce(g.input("x", {dtype, {3, 5}}), kind, {1}));
      const NamedTensors inputs = {{"x", random_tensor(dtype, {3, 5}, 1)}};
      const auto found = HostArray(run_kernel(g, inputs).at("y")).as<std::complex<double>>();
      const auto expected = HostArray(evaluate_graph(g, inputs).at("y")).as<std::complex<double>>();
      for (std::size_t i = 0; i < found.size(); ++i)
        EXPECT_LT(std::abs(found[i] - expected[i]), 1e-5) << i;
    }
  }
}

TEST(ReduceKernel, RowAloneHasTheBitsOfTheBatch) {
  const OpCase batch = reduce_case(f32, {30, 9001}, Reduction::sum, {1});
  Graph g, one;
  batch.build(g);
  one.output("y", sum(one.input("x", {f32, {1, 9001}}), {1}));
  const Tensor y = run_kernel(g, batch.inputs, {.threads = 4}).at("y");
  for (const std::int64_t row : {0, 13, 29}) {
    const Tensor x = rows_of(batch.inputs.at("x"), row, row + 1);
    EXPECT_EQ(run_kernel(one, {{"x", x}}).at("y").values<float>()[0],
              y.values<float>()[static_cast<std::size_t>(row)]);
  }
}

}  // namespace
}  // namespace rlx
