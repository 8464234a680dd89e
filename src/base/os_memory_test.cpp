#include "base/os_memory.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <new>
#include <span>

namespace rlx {
namespace {

TEST(Memory, IsZeroedAlignedAndWritable) {
  for (const std::size_t bytes : {0U, 1U, 63U, 4096U, 300'000U, 2U << 20U, (5U << 20U) + 3U}) {
    const auto memory = allocate_zeroed(bytes);
    const std::span<std::byte> span(memory.get(), bytes);
    EXPECT_TRUE(std::ranges::all_of(span, [](std::byte b) { return b == std::byte{0}; })) << bytes;
    const std::uintptr_t alignment = bytes >= 2U << 20U ? 2U << 20U : 64;
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(memory.get()) % alignment, 0U) << bytes;
    std::ranges::fill(span, std::byte{1});
  }
}

TEST(Memory, RefusesWhatNoMachineHas) {
  EXPECT_THROW((void)allocate_zeroed(SIZE_MAX), std::bad_alloc);
  EXPECT_THROW((void)allocate_zeroed(SIZE_MAX / 2), std::bad_alloc);
}

}  // namespace
}  // namespace rlx
