#include "compiler/memory_plan.h"

#include <gtest/gtest.h>

#include <random>

namespace rlx {
namespace {

std::vector<Lifetime> random_lifetimes(std::uint64_t seed) {
  std::mt19937_64 engine(seed);
  const auto pick = [&](std::size_t n) { return static_cast<std::size_t>(engine() % n); };
  std::vector<Lifetime> lifetimes(pick(60));
  for (Lifetime& l : lifetimes) {
    l.bytes = pick(8) == 0 ? 0 : pick(5000);
    l.first = pick(40);
    l.last = l.first + pick(10);
  }
  return lifetimes;
}

bool share_a_step(const Lifetime& a, const Lifetime& b) {
  return std::max(a.first, b.first) <= std::min(a.last, b.last);
}

bool share_bytes(std::size_t at, std::size_t bytes, std::size_t other, std::size_t other_bytes) {
  return at < other + other_bytes && other < at + bytes;
}

TEST(MemoryPlan, LiveBuffersNeverOverlap) {
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    const std::vector<Lifetime> l = random_lifetimes(seed);
    const MemoryPlan plan = plan_memory(l);
    ASSERT_EQ(plan.offsets.size(), l.size());
    EXPECT_GE(plan.bytes, peak_live_bytes(l)) << "seed " << seed;
    for (std::size_t i = 0; i < l.size(); ++i) {
      EXPECT_EQ(plan.offsets[i] % 64, 0U);
      EXPECT_LE(plan.offsets[i] + l[i].bytes, plan.bytes);
      for (std::size_t j = 0; j < i; ++j) {
        const bool clash = l[i].bytes > 0 && l[j].bytes > 0 && share_a_step(l[i], l[j]) &&
                           share_bytes(plan.offsets[i], l[i].bytes, plan.offsets[j], l[j].bytes);
        EXPECT_FALSE(clash) << "seed " << seed << ", buffers " << i << " and " << j;
      }
    }
  }
}

// A buffer that dies at step 1 makes room for one that is born at step 2, not for one born at 1.
TEST(MemoryPlan, DeadBuffersAreReused) {
  EXPECT_EQ(plan_memory({{640, 0, 1}, {640, 2, 3}}).bytes, 640U);
  EXPECT_EQ(plan_memory({{640, 0, 1}, {640, 1, 3}}).bytes, 1280U);
}

TEST(MemoryPlan, ReachesThePeakOfAChain) {
  std::vector<Lifetime> chain;
  for (std::size_t step = 0; step < 20; ++step) chain.push_back({1000, step, step + 1});
  EXPECT_EQ(peak_live_bytes(chain), 2 * 1024U);
  EXPECT_EQ(plan_memory(chain).bytes, 2 * 1024U);
}

TEST(MemoryPlan, NothingTakesNothing) {
  EXPECT_EQ(plan_memory({}).bytes, 0U);
  EXPECT_EQ(peak_live_bytes({}), 0U);
  EXPECT_EQ(plan_memory({{0, 0, 5}}).bytes, 0U);
}

}  // namespace
}  // namespace rlx
