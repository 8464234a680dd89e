#include "backends/cpu/kernels/convert_half.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <vector>

#include "base/cpu_features.h"
#include "ops/number_formats.h"

namespace rlx::cpu {
namespace {

// Every code of the format, cut into runs of `run` elements so that tails of each length appear.
void check_all_codes(DType dtype, std::size_t run) {
  std::vector<std::uint16_t> codes(1 << 16);
  for (std::size_t i = 0; i < codes.size(); ++i) codes[i] = static_cast<std::uint16_t>(i);
  std::vector<float> found(codes.size());
  for (std::size_t i = 0; i < codes.size(); i += run) {
    const std::size_t count = std::min(run, codes.size() - i);
    convert_to_float(&codes[i], dtype, count, &found[i]);
  }
  for (std::size_t i = 0; i < codes.size(); ++i) {
    const auto expected = static_cast<float>(decode_float(dtype, codes[i]));
    if (std::isnan(expected)) {
      ASSERT_TRUE(std::isnan(found[i])) << fmt::format("code {:#06x} is {}", i, found[i]);
    } else {
      ASSERT_EQ(found[i], expected) << fmt::format("code {:#06x}", i);
      ASSERT_EQ(std::signbit(found[i]), std::signbit(expected)) << fmt::format("code {:#06x}", i);
    }
  }
}

TEST(ConvertHalf, EveryCodeAtEveryInstructionSet) {
  for (const CpuLevel level : kCpuLevels) {
    if (level > detected_cpu_level()) continue;
    force_cpu_level(level);
    for (const DType dtype : {DType::f16, DType::bf16}) {
      SCOPED_TRACE(fmt::format("{} at {}", name(dtype), name(level)));
      check_all_codes(dtype, 1 << 16);
      check_all_codes(dtype, 37);
    }
    force_cpu_level(std::nullopt);
  }
}

}  // namespace
}  // namespace rlx::cpu
