#pragma once

#include <cstddef>
#include <cstdint>

#include "base/cpu_features.h"

namespace rlx::cpu {

/// One call of an 8-bit micro-kernel: C[rows, cols] = sum over groups of A·B, plus corrections that
/// are linear in the sums of rows and columns. A is unsigned and B signed.
struct Int8Tile {
  std::size_t groups;
  const char* a;  ///< [rows][groups][4 bytes], rows `lda` bytes apart
  std::size_t lda;
  const char* b;  ///< [groups][vectors·lanes][4 bytes]
  std::int32_t* c;
  std::size_t ldc;
  std::size_t cols;
  const std::int32_t* column_terms;  ///< added to each row; whole vectors readable
  const std::int32_t* column_zeros;  ///< times row_sums, subtracted; null if all are 0
  const std::int32_t* row_sums;      ///< [rows]
  const char* prefetch;
  std::size_t prefetch_bytes;  ///< for every four groups
};

using Int8TileFunction = void (*)(const Int8Tile&);

/// The 8-bit micro-kernels of one instruction set.
struct Int8Kernels {
  std::size_t max_rows, lanes, vectors;
  std::size_t group;              ///< values of K in 4 bytes
  const Int8TileFunction* tiles;  ///< [(vectors - 1)·max_rows + rows - 1]

  std::size_t panel() const noexcept { return lanes * vectors; }
};

extern const Int8Kernels kInt8Vnni, kInt8Avx512, kInt8Avx2, kInt8Baseline;

const Int8Kernels& int8_kernels(CpuLevel level) noexcept;

}  // namespace rlx::cpu
