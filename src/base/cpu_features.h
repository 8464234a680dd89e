#pragma once

#include <optional>
#include <string_view>

namespace rlx {

/// Instruction sets that kernels are written for; each level includes those before it.
enum class CpuLevel : int {
  kBaseline,    ///< x86-64-v2 (SSE4.2), or any other processor
  kAvx2,        ///< AVX2, FMA, F16C
  kAvx512,      ///< AVX-512 F, BW, CD, DQ, VL
  kAvx512Vnni,  ///< and AVX-512 VNNI
};
inline constexpr CpuLevel kCpuLevels[] = {CpuLevel::kBaseline, CpuLevel::kAvx2, CpuLevel::kAvx512,
                                          CpuLevel::kAvx512Vnni};

/// "baseline", "avx2", "avx512", "avx512_vnni".
std::string_view name(CpuLevel level) noexcept;

/// The best level of this machine.
CpuLevel detected_cpu_level() noexcept;

/// The level that kernels are chosen for: the detected one unless a test forces a lower one.
CpuLevel cpu_level() noexcept;

/// For tests: makes `cpu_level()` and Highway's dispatch use at most `level`; nullopt lifts that.
/// A level above the detected one counts as the detected one. Not for use while kernels run.
void force_cpu_level(std::optional<CpuLevel> level) noexcept;

}  // namespace rlx
