#include "compiler/memory_plan.h"

#include <algorithm>
#include <numeric>

namespace rlx {
namespace {

constexpr std::size_t kAlignment = 64;

std::size_t aligned(std::size_t bytes) {
  return (bytes + kAlignment - 1) / kAlignment * kAlignment;
}

bool overlap(const Lifetime& a, const Lifetime& b) {
  return a.first <= b.last && b.first <= a.last;
}

struct Placed {
  std::size_t offset;
  std::size_t index;
};

}  // namespace

MemoryPlan plan_memory(const std::vector<Lifetime>& lifetimes) {
  std::vector<std::size_t> order(lifetimes.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, std::ranges::greater{},
                           [&](std::size_t i) { return lifetimes[i].bytes; });

  MemoryPlan plan{std::vector<std::size_t>(lifetimes.size(), 0), 0};
  std::vector<Placed> placed;  // by offset
  for (const std::size_t i : order) {
    const std::size_t bytes = aligned(lifetimes[i].bytes);
    if (bytes == 0) continue;
    std::size_t offset = 0;
    for (const Placed& other : placed) {
      if (!overlap(lifetimes[i], lifetimes[other.index])) continue;
      if (other.offset >= offset + bytes) break;
      offset = std::max(offset, other.offset + aligned(lifetimes[other.index].bytes));
    }
    plan.offsets[i] = offset;
    plan.bytes = std::max(plan.bytes, offset + bytes);
    placed.insert(std::ranges::upper_bound(placed, offset, {}, &Placed::offset), {offset, i});
  }
  return plan;
}

std::size_t peak_live_bytes(const std::vector<Lifetime>& lifetimes) {
  std::size_t end = 0;
  for (const Lifetime& l : lifetimes) end = std::max(end, l.last + 1);
  std::vector<std::size_t> born(end + 1, 0);
  std::vector<std::size_t> died(end + 1, 0);
  for (const Lifetime& l : lifetimes) {
    born[l.first] += aligned(l.bytes);
    died[l.last + 1] += aligned(l.bytes);
  }
  std::size_t live = 0;
  std::size_t peak = 0;
  for (std::size_t step = 0; step < end; ++step) {
    live += born[step] - died[step];
    peak = std::max(peak, live);
  }
  return peak;
}

}  // namespace rlx
