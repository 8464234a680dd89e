#pragma once

#include <cstddef>

#include "backends/cpu/gemm.h"

namespace rlx::cpu {

/// Packs the panels [begin, end) of B; `packed` is the start of the whole packed matrix.
void pack_panels(const PackedB& layout, const MatrixView& b, float* packed, std::size_t begin,
                 std::size_t end) noexcept;

/// Converts [rows, cols] of bf16 or f16, rows `ld` elements apart, to contiguous float32.
void convert_rows(const void* from, DType dtype, std::size_t ld, std::size_t rows, std::size_t cols,
                  float* to) noexcept;

}  // namespace rlx::cpu
