// float32 GEMM micro-kernels in plain C++ with the compilers' vector extension: tiles of 6 rows ×
// 2 vectors of 4 floats. Also the choice among instruction sets.
#include <algorithm>
#include <cstring>
#include <utility>

#include "backends/cpu/kernels/gemm_tile.h"

namespace rlx::cpu {
namespace baseline {
namespace {

struct Simd {
  using V = float __attribute__((vector_size(16)));
  static constexpr int kLanes = 4, kMaxRows = 6, kVectors = 2;
  static V zero() { return V{}; }
  static V set(float x) { return V{x, x, x, x}; }
  static V load(const float* p) { return load_n(p, 4); }
  static V load_n(const float* p, std::size_t n) {
    V v{};
    std::memcpy(&v, p, n * sizeof(float));
    return v;
  }
  static void store(float* p, V v) { store_n(p, v, 4); }
  static void store_n(float* p, V v, std::size_t n) { std::memcpy(p, &v, n * sizeof(float)); }
  static V fma(V a, V b, V c) { return a * b + c; }
};

#include "backends/cpu/kernels/gemm_tile-inl.h"

}  // namespace
}  // namespace baseline

constinit const GemmKernels kGemmBaseline = {baseline::Simd::kMaxRows, baseline::Simd::kLanes,
                                             baseline::Simd::kVectors, baseline::kTable.tiles,
                                             baseline::kTable.wide_tiles};

const GemmKernels& gemm_kernels([[maybe_unused]] CpuLevel level) noexcept {
#if defined(__x86_64__)
  if (level >= CpuLevel::kAvx512) return kGemmAvx512;
  if (level >= CpuLevel::kAvx2) return kGemmAvx2;
#endif
  return kGemmBaseline;
}

}  // namespace rlx::cpu
