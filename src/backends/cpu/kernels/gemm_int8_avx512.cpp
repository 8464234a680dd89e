// 8-bit GEMM micro-kernels for AVX-512 without VNNI: values widened to 16 bits, exact pairs.
#include "backends/cpu/kernels/gemm_int8_tile.h"

#if defined(__x86_64__)
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic ignored \
    "-Wmaybe-uninitialized"  // false: GCC 12's own intrinsics (PR 105593)
#endif
#include <immintrin.h>

#include <utility>

#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("avx512f,avx512bw,avx512dq,avx512vl"))), \
                             apply_to = function)
#else
#pragma GCC push_options
#pragma GCC target("avx512f,avx512bw,avx512dq,avx512vl")
#endif

namespace rlx::cpu::avx512_int8 {
namespace {

struct Simd {
  using V = __m512i;
  static constexpr int kLanes = 16, kMaxRows = 12, kVectors = 2, kGroup = 2;
  static V zero() { return _mm512_setzero_si512(); }
  static V set(std::int32_t x) { return _mm512_set1_epi32(x); }
  static V load(const void* p) { return _mm512_loadu_si512(p); }
  static void store(std::int32_t* p, V v) { _mm512_storeu_si512(p, v); }
  static void store_n(std::int32_t* p, V v, std::size_t n) {
    _mm512_mask_storeu_epi32(p, static_cast<__mmask16>((1U << n) - 1), v);
  }
  static V add(V a, V b) { return _mm512_add_epi32(a, b); }
  static V sub(V a, V b) { return _mm512_sub_epi32(a, b); }
  static V mul(V a, V b) { return _mm512_mullo_epi32(a, b); }
  static void settle(V& v) { asm volatile("" : "+v"(v)); }
  static V dot(V sum, V a, V b) { return _mm512_add_epi32(sum, _mm512_madd_epi16(a, b)); }
};

#include "backends/cpu/kernels/gemm_int8_tile-inl.h"

}  // namespace
}  // namespace rlx::cpu::avx512_int8

#if defined(__clang__)
#pragma clang attribute pop
#else
#pragma GCC pop_options
#endif

namespace rlx::cpu {

constinit const Int8Kernels kInt8Avx512 = {avx512_int8::Simd::kMaxRows, avx512_int8::Simd::kLanes,
                                           avx512_int8::Simd::kVectors, avx512_int8::Simd::kGroup,
                                           avx512_int8::kTable.tiles};

}  // namespace rlx::cpu
#endif
