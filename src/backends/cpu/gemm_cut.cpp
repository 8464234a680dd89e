#include "backends/cpu/gemm_cut.h"

namespace rlx::cpu {
namespace {

constexpr std::size_t kMinRowsPerPart = 32;  // fewer: split the columns instead
constexpr double kWorkPerThread = 50'000;    // multiply-adds: less than about a microsecond

std::size_t useful_threads(const WorkSize& size, int threads) noexcept {
  const double work = static_cast<double>(size.batch) * static_cast<double>(size.m) *
                      static_cast<double>(size.panels) * static_cast<double>(size.panel_work);
  return static_cast<std::size_t>(std::clamp(work / kWorkPerThread, 1.0, 1.0 * threads));
}

}  // namespace

Cut cut_work(const WorkSize& size, int threads) noexcept {
  const std::size_t parts = useful_threads(size, threads);
  if (size.batch >= parts) return {parts, 1, 1, true};
  const std::size_t tiles = ceil_div(size.m, size.max_rows);
  Cut best = {parts, 1, parts, false};
  std::size_t best_cost = tiles * ceil_div(size.panels, parts);
  for (std::size_t rows = 2; rows <= parts && size.m >= rows * kMinRowsPerPart; ++rows) {
    const std::size_t across = parts / rows;
    const std::size_t cost = ceil_div(tiles, rows) * ceil_div(size.panels, across);
    if (cost > best_cost) continue;
    best = {rows * across, rows, across, false};
    best_cost = cost;
  }
  return best;
}

}  // namespace rlx::cpu
