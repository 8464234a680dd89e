#include "machine_peaks.h"

#include <atomic>

#include "base/cpu_features.h"
#include "measure.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace rlx::bench {
namespace {

constexpr std::size_t kFmaRounds = 20'000;  // of 24 independent instructions

// In assembly: compilers spill some of so many accumulators.
#define RLX_FMA4(r, a, b, c, d)                                                         \
  "vfmadd231ps %%" r "31,%%" r "30,%%" r a "\n\tvfmadd231ps %%" r "31,%%" r "30,%%" r b \
  "\n\tvfmadd231ps %%" r "31,%%" r "30,%%" r c "\n\tvfmadd231ps %%" r "31,%%" r "30,%%" r d "\n\t"
#define RLX_FMA4_YMM(a, b, c, d)                                                  \
  "vfmadd231ps %%ymm15,%%ymm14,%%ymm" a "\n\tvfmadd231ps %%ymm15,%%ymm14,%%ymm" b \
  "\n\tvfmadd231ps %%ymm15,%%ymm14,%%ymm" c "\n\tvfmadd231ps %%ymm15,%%ymm14,%%ymm" d "\n\t"

/// Flop of one call.
double run_fma() {
#if defined(__x86_64__)
  std::size_t n = kFmaRounds;
  if (cpu_level() >= CpuLevel::kAvx512) {
    asm volatile("1:\n\t" RLX_FMA4("zmm", "0", "1", "2", "3") RLX_FMA4("zmm", "4", "5", "6", "7")
                     RLX_FMA4("zmm", "8", "9", "10", "11") RLX_FMA4("zmm", "12", "13", "14", "15")
                         RLX_FMA4("zmm", "16", "17", "18", "19")
                             RLX_FMA4("zmm", "20", "21", "22", "23") "dec %0\n\tjnz 1b\n\t"
                                                                     "vzeroupper"
                 : "+r"(n)
                 :
                 : "cc", "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8",
                   "xmm9", "xmm10", "xmm11", "xmm12", "xmm13", "xmm14", "xmm15");
    return 24.0 * 16 * 2 * kFmaRounds;
  }
  if (cpu_level() >= CpuLevel::kAvx2) {
    asm volatile("1:\n\t" RLX_FMA4_YMM("0", "1", "2", "3") RLX_FMA4_YMM("4", "5", "6", "7")
                     RLX_FMA4_YMM("8", "9", "10", "11") "dec %0\n\tjnz 1b\n\tvzeroupper"
                 : "+r"(n)
                 :
                 : "cc", "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8",
                   "xmm9", "xmm10", "xmm11", "xmm14", "xmm15");
    return 12.0 * 8 * 2 * kFmaRounds;
  }
#endif
  return 0;
}

#if defined(__x86_64__)
__attribute__((target("avx512f"))) void read512(const char* p, std::size_t bytes) {
  for (const char* end = p + bytes / 512 * 512; p < end; p += 512) {
    asm volatile(
        "vmovups (%0),%%xmm0\n\tvmovups (%0),%%zmm0\n\tvmovups 64(%0),%%zmm1\n\t"
        "vmovups 128(%0),%%zmm2\n\tvmovups 192(%0),%%zmm3\n\tvmovups 256(%0),%%zmm4\n\t"
        "vmovups 320(%0),%%zmm5\n\tvmovups 384(%0),%%zmm6\n\tvmovups 448(%0),%%zmm7"
        :
        : "r"(p)
        : "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7");
  }
}
#endif

void read_all(const char* p, std::size_t bytes) {
#if defined(__x86_64__)
  if (cpu_level() >= CpuLevel::kAvx512) return read512(p, bytes);
#endif
  unsigned long sum = 0;
  for (std::size_t i = 0; i + 8 <= bytes; i += 8) {
    sum += *reinterpret_cast<const volatile unsigned long*>(p + i);
  }
  asm volatile("" : : "r"(sum));
}

}  // namespace

double fma_peak(ThreadPool& pool) {
  const auto threads = static_cast<std::size_t>(pool.threads());
  double best = 0;
  for (int run = 0; run < 12; ++run) {
    std::atomic<double> flop = 0;
    const auto start = Clock::now();
    parallel_for(pool, threads, [&](std::size_t) noexcept { flop = run_fma(); });
    best = std::max(best, flop * static_cast<double>(threads) / seconds_since(start));
  }
  return best;
}

double read_bandwidth(ThreadPool& pool, const void* from, std::size_t bytes) {
  const auto threads = static_cast<std::size_t>(pool.threads());
  const std::size_t share = bytes / threads / 512 * 512;
  if (share == 0) return 0;
  const std::size_t repeats = std::max<std::size_t>(1, (8 << 20) / share);
  double best = 0;
  for (int run = 0; run < 12; ++run) {
    const auto start = Clock::now();
    parallel_for(pool, threads, [&](std::size_t t) noexcept {
      for (std::size_t r = 0; r < repeats; ++r) {
        read_all(static_cast<const char*>(from) + t * share, share);
      }
    });
    best = std::max(best, double(share * threads * repeats) / seconds_since(start));
  }
  return best;
}

}  // namespace rlx::bench
