#pragma once

#include <cstddef>

#include "base/cpu_features.h"

namespace rlx::cpu {

/// One call of a micro-kernel: C[rows, cols] (+)= A·B over `k` steps, one fused multiply-add per
/// output and step, in ascending order (a multiply and an add on the baseline level). `rows` and
/// the vectors and panels across are template parameters of the kernel.
struct GemmTile {
  std::size_t k;
  const float* a;  ///< rows `lda` apart; best where no 12 of them share a set of the L1
  std::size_t lda;
  const float* b;            ///< [k][vectors·lanes], the first panel
  std::size_t panel_stride;  ///< floats from one panel to the next, where the kernel has several
  const float* partial;      ///< sums so far, rows `partial_ld` apart; null to start from zero
  std::size_t partial_ld;
  float* out;
  std::size_t out_ld;
  std::size_t cols;  ///< columns to write: all, or some of the last vector's missing
  bool last;         ///< finish with alpha·sum + bias
  float alpha;
  const float* bias;  ///< [cols], or null
  /// Lines of B to fetch ahead: so many bytes for every four steps, in each of the panels.
  const char* prefetch;
  std::size_t prefetch_bytes;
};

using GemmTileFunction = void (*)(const GemmTile&);

/// Several panels at once keep enough sums in flight where a tile has few rows.
constexpr std::size_t panels_at_once(std::size_t rows) noexcept {
  if (rows <= 2) return 4;
  return rows <= 6 ? 2 : 1;
}

/// The micro-kernels of one instruction set.
struct GemmKernels {
  std::size_t max_rows;  ///< rows of a full tile
  std::size_t lanes;     ///< floats in a vector
  std::size_t vectors;   ///< vectors across a panel
  /// For one panel or the last: tiles[(vectors - 1)·max_rows + rows - 1].
  const GemmTileFunction* tiles;
  /// For panels_at_once(rows) whole panels: wide_tiles[rows - 1].
  const GemmTileFunction* wide_tiles;

  std::size_t panel() const noexcept { return lanes * vectors; }
};

extern const GemmKernels kGemmAvx512, kGemmAvx2, kGemmBaseline;

const GemmKernels& gemm_kernels(CpuLevel level) noexcept;

}  // namespace rlx::cpu
