#pragma once

#include <cstddef>

#include "base/cpu_features.h"

namespace rlx::cpu {

/// One call of a micro-kernel: C[rows, cols] (+)= A·B over `k` steps, one fused multiply-add per
/// output and step, in ascending order (a multiply and an add on the baseline level). `rows` and
/// the number of vectors across are template parameters of the kernel.
struct GemmTile {
  std::size_t k;
  const float* a;        ///< [k][rows]
  const float* b;        ///< [k][vectors·lanes]
  const float* partial;  ///< sums so far, rows `partial_ld` apart; null to start from zero
  std::size_t partial_ld;
  float* out;
  std::size_t out_ld;
  std::size_t cols;  ///< columns to write: all, or some of the last vector's missing
  bool last;         ///< finish with alpha·sum + bias
  float alpha;
  const float* bias;           ///< [cols], or null
  const char* prefetch;        ///< where the next panel's lines begin that this tile fetches
  std::size_t prefetch_bytes;  ///< how many of them to fetch for every four steps
};

/// The micro-kernels of one instruction set.
struct GemmKernels {
  std::size_t max_rows;  ///< rows of a full tile
  std::size_t lanes;     ///< floats in a vector
  std::size_t vectors;   ///< vectors across a full tile
  /// tiles[(vectors - 1)·max_rows + rows - 1]
  void (*const* tiles)(const GemmTile&);
  /// Packs A[rows, k] (rows `lda` apart) as [k][rows]. Writes up to `lanes` floats past the end.
  void (*pack_a)(const float* a, std::size_t lda, std::size_t rows, std::size_t k, float* packed);

  std::size_t panel() const noexcept { return lanes * vectors; }
};

extern const GemmKernels kGemmAvx512, kGemmAvx2, kGemmBaseline;

const GemmKernels& gemm_kernels(CpuLevel level) noexcept;

}  // namespace rlx::cpu
