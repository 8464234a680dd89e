// 8-bit GEMM micro-kernels in plain C++ with the compilers' vector extension, values widened to 16
// bits. Also the choice among instruction sets.
#include <cstring>
#include <utility>

#include "backends/cpu/kernels/gemm_int8_tile.h"

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace rlx::cpu {
namespace baseline_int8 {
namespace {

struct Simd {
  using V = std::uint32_t __attribute__((vector_size(16)));  // unsigned: sums may wrap around
  using Pairs = std::int16_t __attribute__((vector_size(16)));
  static constexpr int kLanes = 4, kMaxRows = 4, kVectors = 2, kGroup = 2;
  static V zero() { return V{}; }
  static V set(std::int32_t x) {
    const auto bits = static_cast<std::uint32_t>(x);
    return V{bits, bits, bits, bits};
  }
  static V load(const void* p) {
    V v;
    std::memcpy(&v, p, sizeof v);
    return v;
  }
  static void store(std::int32_t* p, V v) { std::memcpy(p, &v, sizeof v); }
  static void store_n(std::int32_t* p, V v, std::size_t n) { std::memcpy(p, &v, n * 4); }
  static V add(V a, V b) { return a + b; }
  static V sub(V a, V b) { return a - b; }
  static V mul(V a, V b) { return a * b; }
  static void settle([[maybe_unused]] V& v) {
#if defined(__x86_64__)
    asm volatile("" : "+x"(v));
#endif
  }
  static V dot(V sum, V a, V b) {
#if defined(__SSE2__)
    return sum + reinterpret_cast<V>(
                     _mm_madd_epi16(reinterpret_cast<__m128i>(a), reinterpret_cast<__m128i>(b)));
#else
    const Pairs x = reinterpret_cast<Pairs>(a), y = reinterpret_cast<Pairs>(b);
    for (int i = 0; i < kLanes; ++i) {
      sum[i] += static_cast<std::uint32_t>(x[2 * i] * y[2 * i] + x[2 * i + 1] * y[2 * i + 1]);
    }
    return sum;
#endif
  }
};

#include "backends/cpu/kernels/gemm_int8_tile-inl.h"

}  // namespace
}  // namespace baseline_int8

constinit const Int8Kernels kInt8Baseline = {
    baseline_int8::Simd::kMaxRows, baseline_int8::Simd::kLanes, baseline_int8::Simd::kVectors,
    baseline_int8::Simd::kGroup, baseline_int8::kTable.tiles};

const Int8Kernels& int8_kernels([[maybe_unused]] CpuLevel level) noexcept {
#if defined(__x86_64__)
  if (level >= CpuLevel::kAvx512Vnni) return kInt8Vnni;
  if (level >= CpuLevel::kAvx512) return kInt8Avx512;
  if (level >= CpuLevel::kAvx2) return kInt8Avx2;
#endif
  return kInt8Baseline;
}

}  // namespace rlx::cpu
