#pragma once

#include <cstddef>
#include <cstdint>

namespace rlx::cpu {

/// Copies `count` bytes, each with its top bit flipped if `flip` (which turns signed values into
/// unsigned ones 128 larger and back). Returns the sum of what was written, as unsigned bytes.
std::int32_t copy_bytes(const void* from, std::size_t count, bool flip, std::uint8_t* to) noexcept;

/// The same, but widened to 16 bits.
std::int32_t widen_bytes(const void* from, std::size_t count, bool flip, std::int16_t* to) noexcept;

}  // namespace rlx::cpu
