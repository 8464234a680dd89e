// float32 GEMM micro-kernels for AVX2 with FMA: tiles of 6 rows × 2 vectors, 12 accumulators.
#include "backends/cpu/kernels/gemm_tile.h"

#if defined(__x86_64__)
#include <immintrin.h>

#include <algorithm>
#include <utility>

#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("avx2,fma"))), apply_to = function)
#else
#pragma GCC push_options
#pragma GCC target("avx2,fma")
#endif

namespace rlx::cpu::avx2 {
namespace {

struct Simd {
  using V = __m256;
  static constexpr int kLanes = 8, kMaxRows = 6, kVectors = 2;
  static V zero() { return _mm256_setzero_ps(); }
  static V set(float x) { return _mm256_set1_ps(x); }
  static V load(const float* p) { return _mm256_loadu_ps(p); }
  static V load_n(const float* p, std::size_t n) { return _mm256_maskload_ps(p, mask(n)); }
  static void store(float* p, V v) { _mm256_storeu_ps(p, v); }
  static void store_n(float* p, V v, std::size_t n) { _mm256_maskstore_ps(p, mask(n), v); }
  static V fma(V a, V b, V c) { return _mm256_fmadd_ps(a, b, c); }

 private:
  static __m256i mask(std::size_t n) {
    const __m256i lane = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
    return _mm256_cmpgt_epi32(_mm256_set1_epi32(static_cast<int>(n)), lane);
  }
};

#include "backends/cpu/kernels/gemm_tile-inl.h"

}  // namespace
}  // namespace rlx::cpu::avx2

#if defined(__clang__)
#pragma clang attribute pop
#else
#pragma GCC pop_options
#endif

namespace rlx::cpu {

constinit const GemmKernels kGemmAvx2 = {avx2::Simd::kMaxRows, avx2::Simd::kLanes,
                                         avx2::Simd::kVectors, avx2::kTable.tiles,
                                         avx2::kTable.wide_tiles};

}  // namespace rlx::cpu
#endif
