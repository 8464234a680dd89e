#include <gtest/gtest.h>

#include <numeric>

#include "kernel_run.h"
#include "rlx/ops.h"

namespace rlx {
namespace {

TEST(GatherKernel, ReportsTheFirstFaultAndWritesZeros) {
  for (const int threads : {1, 4}) {
    std::vector<std::int64_t> indices(20000, 1);
    indices[19000] = 7;
    indices[12345] = -4;
    Graph g;
    const Value x = g.input("x", {f32, {3, 2}});
    g.output("y", gather(x, g.input("i", {i64, {20000}}), 0));
    Fault fault;
    const Tensor table({3, 2}, {1.0F, 2.0F, 3.0F, 4.0F, 5.0F, 6.0F});
    const Tensor y =
        run_kernel(g,
                   {{"x", table}, {"i", Tensor({20000}, std::span<const std::int64_t>(indices))}},
                   {.threads = threads}, &fault)
            .at("y");
    EXPECT_EQ(fault.kind, static_cast<std::uint32_t>(FaultKind::index_out_of_range));
    EXPECT_EQ(fault.element, 12345U);
    EXPECT_EQ(fault.value, -4);
    EXPECT_EQ(fault.limit, 3);
    EXPECT_EQ(y.values<float>()[2 * 12345], 0.0F);
    EXPECT_EQ(y.values<float>()[2 * 19000 + 1], 0.0F);
    EXPECT_EQ(y.values<float>()[2 * 12346], 3.0F);
  }
}

TEST(GatherKernel, LargeEnoughForThreads) {
  const Tensor indices = random_tensor(i32, {700}, 3, -50, 49);
  for (const DType dtype : {f64, f32, bf16, i8}) {
    check_kernel({.name = fmt::format("gather of {}", name(dtype)),
                  .build =
                      [=](Graph& g) {
                        const Value x = g.input("x", {dtype, {50, 33}});
                        g.output("y", gather(x, g.input("i", {i32, {700}}), 0));
                      },
                  .inputs = {{"x", random_tensor(dtype, {50, 33}, 4)}, {"i", indices}}});
  }
}

}  // namespace
}  // namespace rlx
