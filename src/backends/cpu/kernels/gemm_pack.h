#pragma once

#include <cstddef>

#include "backends/cpu/gemm.h"

namespace rlx::cpu {

/// Packs the panels [begin, end) of B; `packed` is the start of the whole packed matrix.
void pack_panels(const PackedB& layout, const MatrixView& b, float* packed, std::size_t begin,
                 std::size_t end) noexcept;

/// Copies [rows, cols] of `from`, whose rows are contiguous, to float32 rows `ld` floats apart.
void copy_rows(const MatrixView& from, std::size_t rows, std::size_t cols, float* to,
               std::size_t ld) noexcept;

}  // namespace rlx::cpu
