#pragma once

#include <cstddef>
#include <cstdint>

#include "base/cpu_features.h"
#include "base/thread_pool.h"

namespace rlx::cpu {

/// Layout of a packed 8-bit B[K,N]: panels of `panel` columns, each [K/group][panel][group] over K
/// rounded up to whole groups, the last panel as wide as its columns rounded up to whole vectors;
/// then one int32 for each column, the sum of its packed values. A group is 4 bytes where the
/// instruction set multiplies bytes (VNNI), else 2 values widened to 16 bits.
struct PackedInt8B {
  std::size_t k;
  std::size_t n;
  std::size_t panel;
  std::size_t lanes;
  std::size_t group;  ///< values of K in 4 bytes: 4 or 2
  CpuLevel level;

  std::size_t panels() const noexcept { return (n + panel - 1) / panel; }
  std::size_t groups() const noexcept { return (k + group - 1) / group; }
  std::size_t padded_n() const noexcept { return (n + lanes - 1) / lanes * lanes; }
  std::size_t width(std::size_t p) const noexcept {
    const std::size_t rest = padded_n() - p * panel;
    return rest < panel ? rest : panel;
  }
  std::size_t sums_offset() const noexcept { return padded_n() * groups() * 4; }
  std::size_t bytes() const noexcept { return sums_offset() + padded_n() * 4; }
};

PackedInt8B packed_int8_b(std::size_t k, std::size_t n, CpuLevel level = cpu_level()) noexcept;

/// 8-bit B[K,N] in memory, element (k, n) at data[k·row_stride + n·col_stride].
struct Int8Matrix {
  const void* data = nullptr;
  bool is_signed = false;
  std::size_t row_stride = 0;
  std::size_t col_stride = 1;
};

/// Packs B into `packed`, `layout.bytes()` bytes aligned to 64.
void pack_int8_b(const PackedInt8B& layout, const Int8Matrix& b, void* packed,
                 ThreadPool& pool) noexcept;

/// C[M,N] = (A[M,K] - a_zero)·(B[K,N] - b_zero) in int32, for each of `batch` problems; any extent
/// may be 0. All four combinations of signedness are exact: sums wrap around as int32 does and no
/// step saturates, so bits are the same on every instruction set, for any threads and batch.
struct Int8GemmArgs {
  std::size_t m = 0, n = 0, k = 0;
  std::size_t batch = 1;

  const void* a = nullptr;  ///< rows contiguous, `lda` bytes apart
  bool a_signed = false;
  std::size_t lda = 0;
  std::size_t a_batch = 0;  ///< bytes from one problem to the next; 0 shares
  std::int32_t a_zero = 0;

  const void* packed = nullptr;
  PackedInt8B layout = {};
  bool b_signed = true;                            ///< as it was packed
  std::size_t b_batch = 0;                         ///< bytes between packed matrices; 0 shares
  std::int32_t b_zero = 0;                         ///< of all columns, or
  const std::int32_t* b_zero_of_column = nullptr;  ///< [N]

  std::int32_t* c = nullptr;
  std::size_t ldc = 0;
  std::size_t c_batch = 0;

  void* scratch = nullptr;  ///< `int8_gemm_scratch_bytes`, aligned to 64 bytes
};

/// Bytes of scratch for up to `threads` threads; reads only extents.
std::size_t int8_gemm_scratch_bytes(const Int8GemmArgs& args, int threads) noexcept;

void int8_gemm(const Int8GemmArgs& args, ThreadPool& pool) noexcept;

}  // namespace rlx::cpu
