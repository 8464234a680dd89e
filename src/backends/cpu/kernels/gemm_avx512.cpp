// float32 GEMM micro-kernels for AVX-512: tiles of 14 rows × 2 vectors, 28 accumulators.
#include "backends/cpu/kernels/gemm_tile.h"

#if defined(__x86_64__)
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic ignored \
    "-Wmaybe-uninitialized"  // false: GCC 12's own intrinsics (PR 105593)
#endif
#include <immintrin.h>

#include <algorithm>
#include <utility>

#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("avx512f,avx512bw,avx512dq,avx512vl"))), \
                             apply_to = function)
#else
#pragma GCC push_options
#pragma GCC target("avx512f,avx512bw,avx512dq,avx512vl")
#endif

namespace rlx::cpu::avx512 {
namespace {

struct Simd {
  using V = __m512;
  static constexpr int kLanes = 16, kMaxRows = 14, kVectors = 2;
  static V zero() { return _mm512_setzero_ps(); }
  static V set(float x) { return _mm512_set1_ps(x); }
  static V load(const float* p) { return _mm512_loadu_ps(p); }
  static V load_n(const float* p, std::size_t n) { return _mm512_maskz_loadu_ps(mask(n), p); }
  static void store(float* p, V v) { _mm512_storeu_ps(p, v); }
  static void store_n(float* p, V v, std::size_t n) { _mm512_mask_storeu_ps(p, mask(n), v); }
  static V fma(V a, V b, V c) { return _mm512_fmadd_ps(a, b, c); }
  static void transpose(V (&v)[16]);

 private:
  static __mmask16 mask(std::size_t n) { return static_cast<__mmask16>((1U << n) - 1); }
};

/// Four rounds, each interleaving units twice as large: floats, pairs, then 128-bit parts.
void Simd::transpose(V (&v)[16]) {
  V t[16];
  for (int i = 0; i < 16; i += 2) {
    t[i] = _mm512_unpacklo_ps(v[i], v[i + 1]);
    t[i + 1] = _mm512_unpackhi_ps(v[i], v[i + 1]);
  }
  for (int i = 0; i < 16; i += 4) {
    for (int j = 0; j < 2; ++j) {
      const __m512d a = _mm512_castps_pd(t[i + j]), b = _mm512_castps_pd(t[i + j + 2]);
      v[i + 2 * j] = _mm512_castpd_ps(_mm512_unpacklo_pd(a, b));
      v[i + 2 * j + 1] = _mm512_castpd_ps(_mm512_unpackhi_pd(a, b));
    }
  }
  // v[4g + c], part p holds column 4p + c of rows 4g to 4g + 3.
  for (int c = 0; c < 4; ++c) {
    t[c] = _mm512_shuffle_f32x4(v[c], v[4 + c], 0x88);
    t[4 + c] = _mm512_shuffle_f32x4(v[c], v[4 + c], 0xDD);
    t[8 + c] = _mm512_shuffle_f32x4(v[8 + c], v[12 + c], 0x88);
    t[12 + c] = _mm512_shuffle_f32x4(v[8 + c], v[12 + c], 0xDD);
  }
  for (int c = 0; c < 4; ++c) {
    v[c] = _mm512_shuffle_f32x4(t[c], t[8 + c], 0x88);
    v[4 + c] = _mm512_shuffle_f32x4(t[4 + c], t[12 + c], 0x88);
    v[8 + c] = _mm512_shuffle_f32x4(t[c], t[8 + c], 0xDD);
    v[12 + c] = _mm512_shuffle_f32x4(t[4 + c], t[12 + c], 0xDD);
  }
}

#include "backends/cpu/kernels/gemm_tile-inl.h"

}  // namespace
}  // namespace rlx::cpu::avx512

#if defined(__clang__)
#pragma clang attribute pop
#else
#pragma GCC pop_options
#endif

namespace rlx::cpu {

constinit const GemmKernels kGemmAvx512 = {avx512::Simd::kMaxRows, avx512::Simd::kLanes,
                                           avx512::Simd::kVectors, avx512::kTileTable.tiles,
                                           avx512::pack_a};

}  // namespace rlx::cpu
#endif
