#include "base/cpu_features.h"

#include <hwy/targets.h>
#if defined(__x86_64__)
#include <cpuid.h>
#endif

#include <algorithm>
#include <atomic>

namespace rlx {
namespace {

std::atomic<CpuLevel> forced{CpuLevel::kAvx512Vnni};

#if defined(__x86_64__)
/// `__builtin_cpu_supports` of clang 14 does not know this one.
bool supports_f16c() noexcept {
  unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
  return __get_cpuid(1, &eax, &ebx, &ecx, &edx) != 0 && (ecx & bit_F16C) != 0;
}
#endif

CpuLevel detect() noexcept {
#if defined(__x86_64__)
  __builtin_cpu_init();
  const bool avx2 =
      __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && supports_f16c();
  if (!avx2) return CpuLevel::kBaseline;
  const bool avx512 = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                      __builtin_cpu_supports("avx512cd") && __builtin_cpu_supports("avx512dq") &&
                      __builtin_cpu_supports("avx512vl");
  if (!avx512) return CpuLevel::kAvx2;
  return __builtin_cpu_supports("avx512vnni") ? CpuLevel::kAvx512Vnni : CpuLevel::kAvx512;
#else
  return CpuLevel::kBaseline;
#endif
}

/// Highway's targets up to `level`; 0 is its word for no restriction.
[[maybe_unused]] std::int64_t highway_targets(CpuLevel level) noexcept {
#if defined(__x86_64__)
  if (level == CpuLevel::kBaseline) return HWY_SSE4 | HWY_SSSE3 | HWY_SCALAR | HWY_EMU128;
  if (level == CpuLevel::kAvx2) return HWY_AVX2 | highway_targets(CpuLevel::kBaseline);
#endif
  return 0;
}

}  // namespace

std::string_view name(CpuLevel level) noexcept {
  switch (level) {
    case CpuLevel::kBaseline:
      return "baseline";
    case CpuLevel::kAvx2:
      return "avx2";
    case CpuLevel::kAvx512:
      return "avx512";
    case CpuLevel::kAvx512Vnni:
      return "avx512_vnni";
  }
  return "unknown";
}

CpuLevel detected_cpu_level() noexcept {
  static const CpuLevel level = detect();
  return level;
}

CpuLevel cpu_level() noexcept {
  return std::min(detected_cpu_level(), forced.load(std::memory_order_relaxed));
}

void force_cpu_level(std::optional<CpuLevel> level) noexcept {
  forced.store(level.value_or(CpuLevel::kAvx512Vnni), std::memory_order_relaxed);
  hwy::SetSupportedTargetsForTest(highway_targets(cpu_level()));
}

}  // namespace rlx
