#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "backends/cpu/kernel.h"

namespace rlx::cpu {

/// Axes that walks of tensors may have once neighbours are joined.
inline constexpr std::size_t kMaxAxes = 16;

/// Extents and, for each operand, strides of a common index space.
struct IndexSpace {
  std::vector<std::int64_t> dims;
  std::vector<std::vector<std::int64_t>> strides;  ///< [operand][axis], in elements

  std::int64_t size() const;
};

/// The operands broadcast to `dims`: stretched axes have stride 0. Axes of extent 1 are dropped and
/// neighbours that every operand walks as one are joined; at least one axis is left. Precondition:
/// they broadcast.
IndexSpace joined_space(std::span<const std::int64_t> dims,
                        std::span<const Operand* const> operands);

/// Bytes that `count` elements take: packed codes fill whole blocks, as in `byte_size`.
std::size_t stored_bytes(unsigned element_bits, std::size_t count) noexcept;

/// Copies elements [first, first + count) in row-major order of a strided array to `to`, densely.
/// `element_bits` is 8 to 128, or less for packed codes; then `to` begins at a whole block, and
/// what is left of the last one is 0.
void gather_strided(const std::byte* from, unsigned element_bits,
                    std::span<const std::int64_t> dims, std::span<const std::int64_t> strides,
                    std::size_t first, std::size_t count, std::byte* to) noexcept;

}  // namespace rlx::cpu
