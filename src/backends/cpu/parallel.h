#pragma once

#include <algorithm>
#include <cstddef>

#include "backends/cpu/kernel.h"

namespace rlx::cpu {

/// Elements of plain arithmetic that are worth a thread of their own: some microseconds, where
/// handing them over costs about half of one.
inline constexpr std::size_t kElementsPerThread = 8192;

/// Into how many parts to split `items` of `cost` elements each on up to `threads` threads.
inline std::size_t part_count(std::size_t items, std::size_t cost, std::size_t threads) noexcept {
  const std::size_t useful = items * std::max<std::size_t>(cost, 1) / kElementsPerThread;
  return std::max<std::size_t>(1, std::min({items, useful, threads}));
}

/// Calls f(part, begin, end) for ranges that cover `items` once, on up to `threads` threads (those
/// the step was planned for: `part` < `threads` may index scratch). Large work only is spread;
/// results must not depend on how. `cost` is an item's work in elements.
template <class F>
void parallel_ranges(const Run& run, std::size_t items, std::size_t cost, std::size_t threads,
                     F&& f) noexcept {
  const std::size_t limit =
      std::min(threads, static_cast<std::size_t>(std::max(1, run.pool.threads())));
  const std::size_t parts = part_count(items, cost, limit);
  if (parts == 1) return f(std::size_t{0}, std::size_t{0}, items);
  parallel_for(run.pool, parts, [&](std::size_t part) noexcept {
    f(part, items * part / parts, items * (part + 1) / parts);
  });
}

}  // namespace rlx::cpu
