// 8-bit GEMM micro-kernels for AVX2: values widened to 16 bits, exact pairs (vpmaddubsw would
// saturate).
#include "backends/cpu/kernels/gemm_int8_tile.h"

#if defined(__x86_64__)
#include <immintrin.h>

#include <utility>

#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("avx2"))), apply_to = function)
#else
#pragma GCC push_options
#pragma GCC target("avx2")
#endif

namespace rlx::cpu::avx2_int8 {
namespace {

struct Simd {
  using V = __m256i;
  static constexpr int kLanes = 8, kMaxRows = 5, kVectors = 2, kGroup = 2;
  static V zero() { return _mm256_setzero_si256(); }
  static V set(std::int32_t x) { return _mm256_set1_epi32(x); }
  static V load(const void* p) { return _mm256_loadu_si256(static_cast<const V*>(p)); }
  static void store(std::int32_t* p, V v) { _mm256_storeu_si256(reinterpret_cast<V*>(p), v); }
  static void store_n(std::int32_t* p, V v, std::size_t n) {
    const V lane = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
    const V mask = _mm256_cmpgt_epi32(_mm256_set1_epi32(static_cast<int>(n)), lane);
    _mm256_maskstore_epi32(p, mask, v);
  }
  static V add(V a, V b) { return _mm256_add_epi32(a, b); }
  static V sub(V a, V b) { return _mm256_sub_epi32(a, b); }
  static V mul(V a, V b) { return _mm256_mullo_epi32(a, b); }
  static void settle(V& v) { asm volatile("" : "+x"(v)); }
  static V dot(V sum, V a, V b) { return _mm256_add_epi32(sum, _mm256_madd_epi16(a, b)); }
};

#include "backends/cpu/kernels/gemm_int8_tile-inl.h"

}  // namespace
}  // namespace rlx::cpu::avx2_int8

#if defined(__clang__)
#pragma clang attribute pop
#else
#pragma GCC pop_options
#endif

namespace rlx::cpu {

constinit const Int8Kernels kInt8Avx2 = {avx2_int8::Simd::kMaxRows, avx2_int8::Simd::kLanes,
                                         avx2_int8::Simd::kVectors, avx2_int8::Simd::kGroup,
                                         avx2_int8::kTable.tiles};

}  // namespace rlx::cpu
#endif
