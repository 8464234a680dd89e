#pragma once

#include <cstddef>

#include "backends/cpu/activation.h"
#include "base/cpu_features.h"
#include "base/thread_pool.h"
#include "rlx/dtype.h"

namespace rlx::cpu {

/// Layout of a packed B[K,N]: panels of `panel` columns, each [K][panel] and contiguous over all of
/// K; the last panel is as wide as its columns, rounded up to whole vectors and padded with zeros.
/// The layout fixes the instruction set of the kernels that read it.
struct PackedB {
  std::size_t k;
  std::size_t n;
  std::size_t panel;
  std::size_t lanes;
  CpuLevel level;

  std::size_t panels() const noexcept { return (n + panel - 1) / panel; }
  /// Floats from one k to the next in panel `p`.
  std::size_t width(std::size_t p) const noexcept {
    const std::size_t rest = n - p * panel;
    return rest >= panel ? panel : (rest + lanes - 1) / lanes * lanes;
  }
  /// Floats of the whole matrix.
  std::size_t size() const noexcept { return (n + lanes - 1) / lanes * lanes * k; }
  std::size_t bytes() const noexcept { return size() * sizeof(float); }
};

PackedB packed_b(std::size_t k, std::size_t n, CpuLevel level = cpu_level()) noexcept;

/// A matrix in memory: element (i, j) is at data[i·row_stride + j·col_stride], strides in elements.
/// dtype is f32, bf16 or f16.
struct MatrixView {
  const void* data = nullptr;
  std::size_t row_stride = 0;
  std::size_t col_stride = 1;
  DType dtype = DType::f32;
};

/// Packs B[K,N] as float32. `packed` holds `layout.bytes()`, best aligned to 64 bytes (2 MiB pages
/// help large weights) and must not overlap `b`.
void pack_b(const PackedB& layout, const MatrixView& b, float* packed, ThreadPool& pool) noexcept;

/// C[M,N] = epilogue(A[M,K]·B[K,N]) for each of `batch` problems; any extent may be 0.
///
/// B is either packed (`packed` and `layout`) or plain (`b`), which costs a packing in each call.
/// Rows of A and C are contiguous. C overlaps none of the operands, except that the residual may be
/// C itself (same address and `ld`).
///
/// Each output is one chain of fused multiply-adds over ascending k from zero, then
/// fma(alpha, sum, bias): bits depend on the layout's level alone, neither on M, N and the batch
/// nor on the number of threads.
struct GemmArgs {
  std::size_t m = 0, n = 0, k = 0;
  std::size_t batch = 1;

  const void* a = nullptr;     ///< rows `lda` elements apart
  DType a_dtype = DType::f32;  ///< f32, bf16 or f16
  std::size_t lda = 0;
  std::size_t a_batch = 0;  ///< elements from one problem to the next, here and below; 0 shares

  const float* packed = nullptr;
  PackedB layout = {};
  MatrixView b = {};
  std::size_t b_batch = 0;  ///< of `packed` (floats) or `b` (elements)

  float* c = nullptr;
  std::size_t ldc = 0;
  std::size_t c_batch = 0;

  Epilogue epilogue = {};
  std::size_t residual_batch = 0;

  void* scratch = nullptr;  ///< `gemm_scratch_bytes`, aligned to 64 bytes
};

/// Bytes of scratch that `gemm(args, pool)` needs on up to `threads` threads. Reads only extents,
/// dtypes and which form of B is given.
std::size_t gemm_scratch_bytes(const GemmArgs& args, int threads) noexcept;

void gemm(const GemmArgs& args, ThreadPool& pool) noexcept;

}  // namespace rlx::cpu
