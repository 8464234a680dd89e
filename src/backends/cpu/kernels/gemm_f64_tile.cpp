#include "backends/cpu/kernels/gemm_f64_tile.h"

#include <algorithm>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/kernels/gemm_f64_tile.cpp"
#include <hwy/foreach_target.h>
// After foreach_target.h, which includes this file again for each instruction set.
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace rlx::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

/// kRows rows by two vectors, at column `j` of the panel.
template <std::size_t kRows>
HWY_INLINE void tile(const Panel64& p, std::size_t row, std::size_t j) {
  const hn::ScalableTag<double> d;
  const std::size_t lanes = hn::Lanes(d);
  const double* a = p.a + row * p.lda;
  const double* b = p.b + j;
  using V = hn::Vec<decltype(d)>;
  V left[kRows], right[kRows];
  for (std::size_t i = 0; i < kRows; ++i) left[i] = right[i] = hn::Zero(d);
  for (std::size_t k = 0; k < p.k; ++k, b += kPanel64) {
    const V b_left = hn::LoadU(d, b), b_right = hn::LoadU(d, b + lanes);
#if HWY_COMPILER_CLANG
#pragma clang loop unroll(full)
#else
#pragma GCC unroll 4
#endif
    for (std::size_t i = 0; i < kRows; ++i) {
      const V x = hn::Set(d, a[i * p.lda + k]);
      left[i] = hn::MulAdd(x, b_left, left[i]);
      right[i] = hn::MulAdd(x, b_right, right[i]);
    }
  }
  HWY_ALIGN double sums[2 * hn::MaxLanes(d)];
  for (std::size_t i = 0; i < kRows; ++i) {
    hn::Store(left[i], d, sums);
    hn::Store(right[i], d, sums + lanes);
    std::copy_n(sums, std::min(2 * lanes, p.cols - j), p.c + (row + i) * p.ldc + j);
  }
}

void multiply_panel(const Panel64& p) {
  const std::size_t width = 2 * hn::Lanes(hn::ScalableTag<double>());
  std::size_t row = 0;
  for (; row + 4 <= p.rows; row += 4) {
    for (std::size_t j = 0; j < p.cols; j += width) tile<4>(p, row, j);
  }
  for (; row < p.rows; ++row) {
    for (std::size_t j = 0; j < p.cols; j += width) tile<1>(p, row, j);
  }
}

}  // namespace rlx::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace rlx::cpu {

HWY_EXPORT(multiply_panel);

void multiply_panel_f64(const Panel64& panel) noexcept {
  HWY_DYNAMIC_DISPATCH(multiply_panel)(panel);
}

}  // namespace rlx::cpu
#endif
