#pragma once

#include <cstddef>

namespace rlx::cpu {

/// Columns of a float64 panel, on every instruction set.
inline constexpr std::size_t kPanel64 = 16;

/// C[rows, cols] = A·B for all rows against one panel of B.
struct Panel64 {
  std::size_t rows, cols, k;
  const double* a;  ///< rows `lda` apart
  std::size_t lda;
  const double* b;  ///< [k][kPanel64], padded with zeros
  double* c;        ///< rows `ldc` apart
  std::size_t ldc;
};

void multiply_panel_f64(const Panel64& panel) noexcept;

}  // namespace rlx::cpu
