#include "backends/cpu/gemm.h"

#include <algorithm>
#include <numeric>

#include "backends/cpu/gemm_cut.h"
#include "backends/cpu/kernels/gemm_pack.h"
#include "backends/cpu/kernels/gemm_tile.h"
#include "backends/cpu/kernels/tile_epilogue.h"

namespace rlx::cpu {
namespace {

constexpr std::size_t kMaxK = 1024;         // of one pass over B; longer sums go through C
constexpr std::size_t kMaxBlockRows = 112;  // of A used at once: 112·1024 floats stay in L2
constexpr std::size_t kMaxTileRows = 14, kMaxTileFloats = 14 * 32;  // of any instruction set
constexpr std::size_t kCacheLineFloats = 16;
constexpr std::size_t kStreamAhead = 4 * 1024;  // bytes, where one tile reads a panel once

Cut cut_of(const GemmArgs& g, const PackedB& layout, int threads) noexcept {
  const std::size_t max_rows = gemm_kernels(layout.level).max_rows;
  return cut_work({g.batch, g.m, layout.panels(), layout.panel * (g.k + 1), max_rows}, threads);
}

/// Steps of K in one pass. A residual that is the output itself must not be overwritten by partial
/// sums, so then all of K goes in one.
std::size_t k_step(const GemmArgs& g) noexcept {
  if (g.epilogue.residual == g.c) return g.k;
  const std::size_t passes = std::max<std::size_t>(1, ceil_div(g.k, kMaxK));
  return round_up(ceil_div(g.k, passes), 4);
}

/// Whether rows this far apart fall into so few sets of a 12-way L1 cache (4 KiB a way) that the
/// rows of a tile push each other out.
bool rows_collide(std::size_t stride_bytes) noexcept {
  constexpr std::size_t kWay = 4096, kRowsPerSet = 8;
  const std::size_t distinct = kWay / std::gcd(stride_bytes, kWay);
  return distinct * kRowsPerSet < kMaxTileRows;
}

/// Whether blocks of A are copied before use: to become float32, or to lie apart.
bool copies_a(const GemmArgs& g) noexcept {
  return g.a_dtype != DType::f32 || (g.m > 1 && rows_collide(g.lda * sizeof(float)));
}

/// Row stride of copied A, in floats: a line more than a multiple of 128 bytes spreads rows over
/// all sets.
std::size_t copy_stride(std::size_t k) noexcept {
  return round_up(k, 2 * kCacheLineFloats) + kCacheLineFloats;
}

/// Floats of scratch for a copied block of A. Counts all of K: whether the residual is the output
/// may not be known where scratch is planned.
std::size_t a_floats(const GemmArgs& g) noexcept {
  if (!copies_a(g)) return 0;
  return std::min(g.m, kMaxBlockRows) * copy_stride(g.k);
}

/// One problem as one thread sees it.
struct Problem {
  const GemmArgs& g;
  const GemmKernels& kernels;
  const PackedB& layout;
  EpilogueFunction second_pass;  // null if there is none
  const char* a;
  const float* packed;
  float* c;
  const float* residual;
};

/// One block of rows in one pass over K.
struct Block {
  Range rows;
  Range k;
  std::size_t tiles;
  const float* a;  // element [rows.begin, k.begin]
  std::size_t lda;
};

const void* element(const void* base, std::size_t index, DType dtype) noexcept {
  return static_cast<const char*>(base) + index * traits(dtype).block_bytes;
}

/// Lets the block read A where it is, or a copy in `scratch`.
void bring_rows(const Problem& p, Block& block, float* scratch) {
  const void* from = element(p.a, block.rows.begin * p.g.lda + block.k.begin, p.g.a_dtype);
  block.a = static_cast<const float*>(from);
  block.lda = p.g.lda;
  if (!copies_a(p.g)) return;
  block.a = scratch;
  block.lda = copy_stride(k_step(p.g));
  copy_rows({from, p.g.lda, 1, p.g.a_dtype}, block.rows.size(), block.k.size(), scratch, block.lda);
}

/// Runs the kernel of the tile whose first output is C[row, column]. With a second pass the sums go
/// to a buffer first, since the residual may lie where they belong.
void multiply_tile(const Problem& p, GemmTileFunction kernel, GemmTile& tile, std::size_t row,
                   std::size_t rows, std::size_t column, bool first) {
  float* const c = p.c + row * p.g.ldc + column;
  tile.partial = first ? nullptr : c;
  tile.partial_ld = tile.out_ld = p.g.ldc;
  tile.out = c;
  if (!tile.last || !p.second_pass) return kernel(tile);

  alignas(64) float sums[kMaxTileFloats];
  tile.out = sums;
  tile.out_ld = round_up(tile.cols, p.layout.lanes);
  kernel(tile);
  const Epilogue& e = p.g.epilogue;
  const float* residual = p.residual ? p.residual + row * e.residual_ld + column : nullptr;
  p.second_pass({sums, tile.out_ld, c, p.g.ldc, residual, e.residual_ld, rows, tile.cols,
                 e.clamp_low, e.clamp_high});
}

/// What the tiles of a block over `panels` panels from `panel` on have in common.
GemmTile tile_of(const Problem& p, const Block& block, std::size_t panel, std::size_t panels) {
  const std::size_t column = panel * p.layout.panel;
  GemmTile tile = {};
  tile.k = block.k.size();
  tile.b = p.packed + column * p.layout.k + block.k.begin * p.layout.width(panel);
  tile.panel_stride = p.layout.panel * p.layout.k;
  tile.cols = std::min(panels * p.layout.panel, p.layout.n - column);
  tile.last = block.k.end == p.g.k;
  tile.alpha = p.g.epilogue.alpha;
  tile.bias = p.g.epilogue.bias ? p.g.epilogue.bias + column : nullptr;
  return tile;
}

/// All row tiles of a block against one panel of B. Meanwhile the next panel is fetched, a share by
/// each tile.
void multiply_panel(const Problem& p, const Block& block, std::size_t panel, bool fetch_next) {
  const std::size_t width = p.layout.width(panel);
  const std::size_t row_bytes = width * sizeof(float);
  GemmTile tile = tile_of(p, block, panel, 1);
  if (fetch_next) tile.prefetch_bytes = round_up(ceil_div(4 * row_bytes, block.tiles), 64);
  const char* next = reinterpret_cast<const char*>(tile.b) + p.layout.k * row_bytes;
  const GemmTileFunction* kernels =
      p.kernels.tiles + (width / p.layout.lanes - 1) * p.kernels.max_rows;
  for (std::size_t t = 0; t < block.tiles; ++t) {
    const Range rows = part_of(block.rows.size(), t, block.tiles);
    tile.a = block.a + rows.begin * block.lda;
    tile.lda = block.lda;
    tile.prefetch = next + t * (block.k.size() / 4) * tile.prefetch_bytes;
    multiply_tile(p, kernels[rows.size() - 1], tile, block.rows.begin + rows.begin, rows.size(),
                  panel * p.layout.panel, block.k.begin == 0);
  }
}

/// A block that is one tile reads B only once, so it fetches its own lines ahead. Few rows take
/// several panels at once, which the hardware follows by itself.
void stream_panels(const Problem& p, const Block& block, Range panels) {
  const std::size_t rows = block.rows.size(), whole = p.layout.n / p.layout.panel;
  for (std::size_t panel = panels.begin; panel < panels.end;) {
    const std::size_t width = p.layout.width(panel);
    const std::size_t wide = panels_at_once(rows);
    const bool several = wide > 1 && panel + wide <= std::min(panels.end, whole);
    const GemmTileFunction* kernels =
        several ? p.kernels.wide_tiles
                : p.kernels.tiles + (width / p.layout.lanes - 1) * p.kernels.max_rows;
    GemmTile tile = tile_of(p, block, panel, several ? wide : 1);
    tile.a = block.a;
    tile.lda = block.lda;
    tile.prefetch = reinterpret_cast<const char*>(tile.b) + kStreamAhead;
    tile.prefetch_bytes = wide > 1 ? 0 : 4 * width * sizeof(float);
    multiply_tile(p, kernels[rows - 1], tile, block.rows.begin, rows, panel * p.layout.panel,
                  block.k.begin == 0);
    panel += several ? wide : 1;
  }
}

void multiply_block(const Problem& p, const Block& block, Range panels) {
  if (block.tiles == 1) return stream_panels(p, block, panels);
  for (std::size_t panel = panels.begin; panel < panels.end; ++panel) {
    multiply_panel(p, block, panel, panel + 1 < panels.end);
  }
}

void multiply(const Problem& p, Range rows, Range panels, float* scratch) {
  const std::size_t step = k_step(p.g);
  const std::size_t blocks = ceil_div(rows.size(), kMaxBlockRows);
  std::size_t k = 0;
  do {  // once for K = 0: the epilogue of an empty sum
    for (std::size_t i = 0; i < blocks; ++i) {
      const Range part = part_of(rows.size(), i, blocks);
      Block block = {{rows.begin + part.begin, rows.begin + part.end},
                     {k, std::min(p.g.k, k + step)},
                     ceil_div(part.size(), p.kernels.max_rows),
                     nullptr,
                     0};
      bring_rows(p, block, scratch);
      multiply_block(p, block, panels);
    }
    k += step;
  } while (k < p.g.k);
}

Problem problem_at(const GemmArgs& g, const PackedB& layout, const float* packed,
                   EpilogueFunction second_pass, std::size_t index) noexcept {
  const float* residual = g.epilogue.residual;
  return {g,
          gemm_kernels(layout.level),
          layout,
          second_pass,
          static_cast<const char*>(element(g.a, index * g.a_batch, g.a_dtype)),
          packed,
          g.c + index * g.c_batch,
          residual ? residual + index * g.residual_batch : nullptr};
}

MatrixView plain_b(const GemmArgs& g, std::size_t index) noexcept {
  MatrixView b = g.b;
  b.data = element(b.data, index * g.b_batch, b.dtype);
  return b;
}

/// Each thread runs whole problems, packing B for itself where that is needed.
void run_by_problem(const GemmArgs& g, const PackedB& layout, std::size_t parts,
                    EpilogueFunction second_pass, ThreadPool& pool) noexcept {
  float* const scratch = static_cast<float*>(g.scratch);
  float* const packed_here = scratch + parts * a_floats(g);
  const std::size_t packed_floats = round_up(layout.size(), kCacheLineFloats);
  parallel_for(pool, parts, [&](std::size_t part) noexcept {
    const Range problems = part_of(g.batch, part, parts);
    for (std::size_t i = problems.begin; i < problems.end; ++i) {
      const float* packed = g.packed + i * g.b_batch;
      if (!g.packed) {
        float* to = packed_here + part * packed_floats;
        if (i == problems.begin || g.b_batch != 0) {
          pack_panels(layout, plain_b(g, i), to, 0, layout.panels());
        }
        packed = to;
      }
      multiply(problem_at(g, layout, packed, second_pass, i), {0, g.m}, {0, layout.panels()},
               scratch + part * a_floats(g));
    }
  });
}

/// All threads share each problem.
void run_together(const GemmArgs& g, const PackedB& layout, const Cut& cut,
                  EpilogueFunction second_pass, ThreadPool& pool) noexcept {
  float* const scratch = static_cast<float*>(g.scratch);
  float* const packed_here = scratch + cut.parts * a_floats(g);
  for (std::size_t i = 0; i < g.batch; ++i) {
    const float* packed = g.packed + i * g.b_batch;
    if (!g.packed) {
      if (i == 0 || g.b_batch != 0) pack_b(layout, plain_b(g, i), packed_here, pool);
      packed = packed_here;
    }
    const Problem problem = problem_at(g, layout, packed, second_pass, i);
    parallel_for(pool, cut.parts, [&](std::size_t part) noexcept {
      multiply(problem, cut.rows(part, g.m), cut.panels(part, layout.panels()),
               scratch + part * a_floats(g));
    });
  }
}

}  // namespace

PackedB packed_b(std::size_t k, std::size_t n, CpuLevel level) noexcept {
  const GemmKernels& kernels = gemm_kernels(level);
  return {k, n, kernels.panel(), kernels.lanes, level};
}

void pack_b(const PackedB& layout, const MatrixView& b, float* packed, ThreadPool& pool) noexcept {
  constexpr std::size_t kFloatsPerTask = 16 * 1024;
  const std::size_t tasks = std::min(layout.panels(), ceil_div(layout.size(), kFloatsPerTask));
  parallel_for(pool, tasks, [&](std::size_t task) noexcept {
    const Range panels = part_of(layout.panels(), task, tasks);
    pack_panels(layout, b, packed, panels.begin, panels.end);
  });
}

std::size_t gemm_scratch_bytes(const GemmArgs& g, int threads) noexcept {
  const auto count = static_cast<std::size_t>(std::max(1, threads));
  std::size_t floats = count * a_floats(g);
  if (!g.packed) {
    const std::size_t copies = std::max<std::size_t>(1, std::min(count, g.batch));
    floats += copies * round_up(packed_b(g.k, g.n).size(), kCacheLineFloats);
  }
  return floats * sizeof(float);
}

void gemm(const GemmArgs& g, ThreadPool& pool) noexcept {
  if (g.m == 0 || g.n == 0 || g.batch == 0) return;
  const PackedB layout = g.packed ? g.layout : packed_b(g.k, g.n);
  const EpilogueFunction second_pass =
      needs_second_pass(g.epilogue) ? epilogue_function(g.epilogue) : nullptr;
  const Cut cut = cut_of(g, layout, pool.threads());
  if (cut.by_problem) {
    run_by_problem(g, layout, cut.parts, second_pass, pool);
  } else {
    run_together(g, layout, cut, second_pass, pool);
  }
}

}  // namespace rlx::cpu
