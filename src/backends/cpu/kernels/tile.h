#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "backends/cpu/kernel.h"
#include "ops/elementwise.h"

namespace rlx::cpu {

/// The dtype in which tiles of `dtype` are computed: itself, but f32 for narrower floats and 8 bits
/// for narrower integers. After each operator such a tile is rounded to its own dtype
/// (`tile_round`), so that fusing operators changes no result.
DType tile_dtype(DType dtype) noexcept;
/// Bytes of an element in a tile; bools take one, 0 or 1.
std::size_t tile_bytes(DType tile) noexcept;

/// One operation of the interpreter: `count` elements of up to three operands. A tile in scratch
/// memory is aligned to 64 bytes; operands and results in tensors have the alignment of their
/// dtype, and nothing beyond `count` is touched there.
struct TileArgs {
  std::byte* to;
  std::array<const std::byte*, 3> in;
  /// Of the element index: all ones, or 0 where the operand is one element, repeated over 64 bytes.
  std::array<std::size_t, 3> mask;
  std::size_t count;
  const Run* run;
  std::uint64_t first;  ///< where the tile begins in the output, to name a fault's element
};
/// `to` may be an operand of the same element size; it overlaps none otherwise.
using TileFunction = void (*)(const TileArgs&);

/// The kernel of a row of the elementwise table for operands of a tile dtype, for the instruction
/// set in force; null if there is none. `select` goes by the dtype of its last two operands.
TileFunction tile_function(const OpDef& op, DType tile) noexcept;

/// a·b + c rounded twice, as `mul` and `add` do one after the other; f32 and f64, else null.
TileFunction tile_mul_add(DType tile) noexcept;

/// How `cast` from a tile dtype to a dtype but strings and blocks runs: one function, or two with a
/// tile of `between` in the middle. The result is in tile_dtype(to), rounded to `to`.
struct TileCast {
  TileFunction first = nullptr;
  DType between = DType::f32;
  TileFunction second = nullptr;
};
TileCast tile_cast(DType from, DType to) noexcept;

/// Rounds a tile to a dtype narrower than its tile dtype, floats to nearest even and integers
/// modulo 2^bits; null where there is nothing to round.
TileFunction tile_round(DType dtype) noexcept;

/// Between the stored form of a dtype narrower than its tile dtype and tiles, which are already
/// rounded. Sub-byte dtypes begin at a whole byte. Null where the forms are the same.
TileFunction tile_unpack(DType dtype) noexcept;
TileFunction tile_pack(DType dtype) noexcept;

/// Copies elements of `bytes` (1, 2, 4, 8, 16); with `streamed`, past the caches where `to` is
/// aligned to vectors (for results far larger than the caches, then `tile_stream_fence`).
TileFunction tile_copy(std::size_t bytes, bool streamed) noexcept;
void tile_stream_fence() noexcept;

// The tables of the files that implement `tile_function`; null where they have no row.
TileFunction float_tile(const OpDef& op, DType tile) noexcept;
TileFunction math_tile(const OpDef& op, DType tile) noexcept;
TileFunction integer_tile(const OpDef& op, DType tile) noexcept;
TileFunction complex_tile(const OpDef& op, DType tile) noexcept;

}  // namespace rlx::cpu
