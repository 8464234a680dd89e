#pragma once

#include <cstddef>

#include "base/thread_pool.h"

namespace rlx::cpu {

/// C[M,N] = A[M,K]·B[K,N] in float64 for each of `batch` problems; any extent may be 0 (a sum over
/// K = 0 is 0). Rows of A and C are contiguous; B has any strides. C overlaps neither operand.
/// Each output is one chain of multiply-adds over ascending k, so bits depend on the instruction
/// set alone.
struct Gemm64Args {
  std::size_t m = 0, n = 0, k = 0;
  std::size_t batch = 1;

  const double* a = nullptr;  ///< rows `lda` elements apart
  std::size_t lda = 0;
  std::size_t a_batch = 0;  ///< elements from one problem to the next, here and below; 0 shares

  const double* b = nullptr;  ///< element (k, n) at b[k·b_row_stride + n·b_col_stride]
  std::size_t b_row_stride = 0;
  std::size_t b_col_stride = 1;
  std::size_t b_batch = 0;

  double* c = nullptr;
  std::size_t ldc = 0;
  std::size_t c_batch = 0;

  void* scratch = nullptr;  ///< `gemm_f64_scratch_bytes`, aligned to 64 bytes
};

/// Bytes of scratch for up to `threads` threads; reads only extents.
std::size_t gemm_f64_scratch_bytes(const Gemm64Args& args, int threads) noexcept;

void gemm_f64(const Gemm64Args& args, ThreadPool& pool) noexcept;

}  // namespace rlx::cpu
