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

 private:
  static __mmask16 mask(std::size_t n) { return static_cast<__mmask16>((1U << n) - 1); }
};

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
                                           avx512::Simd::kVectors, avx512::kTable.tiles,
                                           avx512::kTable.wide_tiles};

}  // namespace rlx::cpu
#endif
