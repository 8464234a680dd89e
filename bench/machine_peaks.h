#pragma once

#include <cstddef>

#include "base/thread_pool.h"

namespace rlx::bench {

/// float32 fused multiply-adds in registers, flop/s of all the pool's threads together: the best of
/// a few short runs with the widest instruction set of this machine.
double fma_peak(ThreadPool& pool);

/// Bytes/s at which all threads together read `bytes`, each its own share over and over, so that
/// the share stays in whatever cache holds it.
double read_bandwidth(ThreadPool& pool, const void* from, std::size_t bytes);

}  // namespace rlx::bench
