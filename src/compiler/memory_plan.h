#pragma once

#include <cstddef>
#include <vector>

namespace rlx {

/// A buffer that is alive from step `first` to step `last`, both included.
struct Lifetime {
  std::size_t bytes = 0;
  std::size_t first = 0;
  std::size_t last = 0;
};

struct MemoryPlan {
  std::vector<std::size_t> offsets;  ///< one for each lifetime, multiples of 64
  std::size_t bytes = 0;             ///< of the arena
};

/// Offsets at which no two buffers that are alive at once overlap. The largest buffers are placed
/// first, each in the lowest gap that holds it (Pisarchyk and Lee 2020, arXiv:2001.03288, greedy by
/// size).
MemoryPlan plan_memory(const std::vector<Lifetime>& lifetimes);

/// The most bytes alive at any step: no plan can be smaller.
std::size_t peak_live_bytes(const std::vector<Lifetime>& lifetimes);

}  // namespace rlx
