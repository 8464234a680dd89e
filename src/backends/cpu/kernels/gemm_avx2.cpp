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
  static void transpose(V (&v)[8]);

 private:
  static __m256i mask(std::size_t n) {
    const __m256i lane = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
    return _mm256_cmpgt_epi32(_mm256_set1_epi32(static_cast<int>(n)), lane);
  }
};

void Simd::transpose(V (&v)[8]) {
  V t[8];
  for (int i = 0; i < 8; i += 2) {
    t[i] = _mm256_unpacklo_ps(v[i], v[i + 1]);
    t[i + 1] = _mm256_unpackhi_ps(v[i], v[i + 1]);
  }
  for (int i = 0; i < 8; i += 4) {
    for (int j = 0; j < 2; ++j) {
      const __m256d a = _mm256_castps_pd(t[i + j]), b = _mm256_castps_pd(t[i + j + 2]);
      v[i + 2 * j] = _mm256_castpd_ps(_mm256_unpacklo_pd(a, b));
      v[i + 2 * j + 1] = _mm256_castpd_ps(_mm256_unpackhi_pd(a, b));
    }
  }
  for (int c = 0; c < 4; ++c) {
    const V low = v[c], high = v[4 + c];
    v[c] = _mm256_permute2f128_ps(low, high, 0x20);
    v[4 + c] = _mm256_permute2f128_ps(low, high, 0x31);
  }
}

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
                                         avx2::Simd::kVectors, avx2::kTileTable.tiles,
                                         avx2::pack_a};

}  // namespace rlx::cpu
#endif
