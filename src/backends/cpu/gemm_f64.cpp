#include "backends/cpu/gemm_f64.h"

#include "backends/cpu/gemm_cut.h"
#include "backends/cpu/kernels/gemm_f64_tile.h"

namespace rlx::cpu {
namespace {

constexpr std::size_t kTileRows = 4;

void pack_panel(const Gemm64Args& g, const double* b, std::size_t column, double* packed) {
  const std::size_t cols = std::min(kPanel64, g.n - column);
  for (std::size_t k = 0; k < g.k; ++k, packed += kPanel64) {
    const double* from = b + k * g.b_row_stride + column * g.b_col_stride;
    for (std::size_t j = 0; j < cols; ++j) packed[j] = from[j * g.b_col_stride];
    std::fill(packed + cols, packed + kPanel64, 0.0);
  }
}

void multiply(const Gemm64Args& g, std::size_t problem, Range rows, Range panels, double* packed) {
  const double* a = g.a + problem * g.a_batch + rows.begin * g.lda;
  double* c = g.c + problem * g.c_batch + rows.begin * g.ldc;
  for (std::size_t p = panels.begin; p < panels.end; ++p) {
    const std::size_t column = p * kPanel64;
    pack_panel(g, g.b + problem * g.b_batch, column, packed);
    multiply_panel_f64(
        {rows.size(), std::min(kPanel64, g.n - column), g.k, a, g.lda, packed, c + column, g.ldc});
  }
}

}  // namespace

std::size_t gemm_f64_scratch_bytes(const Gemm64Args& g, int threads) noexcept {
  return static_cast<std::size_t>(std::max(1, threads)) * g.k * kPanel64 * sizeof(double);
}

void gemm_f64(const Gemm64Args& g, ThreadPool& pool) noexcept {
  if (g.m == 0 || g.n == 0 || g.batch == 0) return;
  const std::size_t panels = ceil_div(g.n, kPanel64);
  const Cut cut =
      cut_work({g.batch, g.m, panels, 2 * kPanel64 * (g.k + 1), kTileRows}, pool.threads());
  double* const scratch = static_cast<double*>(g.scratch);
  if (cut.by_problem) {
    parallel_for(pool, cut.parts, [&](std::size_t part) noexcept {
      const Range problems = part_of(g.batch, part, cut.parts);
      for (std::size_t i = problems.begin; i < problems.end; ++i) {
        multiply(g, i, {0, g.m}, {0, panels}, scratch + part * g.k * kPanel64);
      }
    });
    return;
  }
  for (std::size_t i = 0; i < g.batch; ++i) {
    parallel_for(pool, cut.parts, [&](std::size_t part) noexcept {
      multiply(g, i, cut.rows(part, g.m), cut.panels(part, panels),
               scratch + part * g.k * kPanel64);
    });
  }
}

}  // namespace rlx::cpu
