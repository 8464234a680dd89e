#include "backends/cpu/gemm_int8.h"

#include <cstring>

#include "backends/cpu/gemm_cut.h"
#include "backends/cpu/kernels/gemm_int8_tile.h"
#include "backends/cpu/kernels/int8_rows.h"

// Kernels multiply unsigned A by signed B. With the top bit of the other kind flipped,
// A = A' - a_shift and B = B' + b_shift (128 or 0), so with ZA = a_zero + a_shift and
// ZB = b_zero - b_shift
//   Σ (A - a_zero)(B - b_zero) = Σ A'B' - ZA·Σ B' - ZB·Σ A' + K·ZA·ZB.
// All of it in 32-bit arithmetic that wraps around.

namespace rlx::cpu {
namespace {

constexpr std::size_t kMaxBlockRows = 112;
constexpr std::size_t kCacheLine = 64;
constexpr std::size_t kStreamAhead = 4 * 1024;

std::size_t copied_row_bytes(const PackedInt8B& layout) noexcept {
  // An odd number of lines spreads the rows of a tile over all sets of the cache.
  return round_up(layout.groups() * 4, 2 * kCacheLine) + kCacheLine;
}

/// What one thread writes: a block of A and the sums of its rows.
std::size_t thread_bytes(const Int8GemmArgs& g, const PackedInt8B& layout) noexcept {
  const std::size_t rows = std::min(g.m, kMaxBlockRows);
  return rows * copied_row_bytes(layout) + round_up(rows * sizeof(std::int32_t), kCacheLine);
}

/// Terms and zeros of all columns of one problem.
std::size_t column_bytes(const PackedInt8B& layout) noexcept {
  return 2 * round_up(layout.padded_n() * sizeof(std::int32_t), kCacheLine);
}

struct Columns {
  std::int32_t* terms;
  std::int32_t* zeros;
  bool any_zero;  // whether any of `zeros` is not 0
};

std::int32_t wrapped(std::uint32_t x) noexcept { return static_cast<std::int32_t>(x); }

Columns columns_of(const Int8GemmArgs& g, const void* packed, char* scratch) noexcept {
  const PackedInt8B& layout = g.layout;
  Columns columns = {reinterpret_cast<std::int32_t*>(scratch),
                     reinterpret_cast<std::int32_t*>(scratch + column_bytes(layout) / 2), false};
  const std::uint32_t a_zero = static_cast<std::uint32_t>(g.a_zero) + (g.a_signed ? 128U : 0U);
  const std::uint32_t b_shift = g.b_signed ? 0U : 128U;
  const auto k = static_cast<std::uint32_t>(layout.k);
  const char* sums = static_cast<const char*>(packed) + layout.sums_offset();
  for (std::size_t n = 0; n < layout.padded_n(); ++n) {
    std::uint32_t sum;
    std::memcpy(&sum, sums + n * sizeof sum, sizeof sum);
    const std::int32_t given = g.b_zero_of_column && n < g.n ? g.b_zero_of_column[n] : g.b_zero;
    const std::uint32_t zero = static_cast<std::uint32_t>(given) - b_shift;
    columns.zeros[n] = wrapped(zero);
    columns.terms[n] = wrapped(k * a_zero * zero - a_zero * sum);
    columns.any_zero |= zero != 0;
  }
  return columns;
}

struct Problem {
  const Int8GemmArgs& g;
  const Int8Kernels& kernels;
  const char* a;
  const char* packed;
  std::int32_t* c;
  Columns columns;
};

/// A copied block of rows.
struct Block {
  Range rows;
  std::size_t tiles;
  char* a;
  std::int32_t* row_sums;
};

void copy_block(const Problem& p, const Block& block) {
  const std::size_t row_bytes = copied_row_bytes(p.g.layout);
  const std::size_t used = p.g.k * (4 / p.g.layout.group), all = p.g.layout.groups() * 4;
  for (std::size_t r = 0; r < block.rows.size(); ++r) {
    const char* from = p.a + (block.rows.begin + r) * p.g.lda;
    char* to = block.a + r * row_bytes;
    if (p.g.layout.group == 4) {
      auto* bytes = reinterpret_cast<std::uint8_t*>(to);
      block.row_sums[r] = copy_bytes(from, p.g.k, p.g.a_signed, bytes);
    } else {
      auto* wide = reinterpret_cast<std::int16_t*>(to);
      block.row_sums[r] = widen_bytes(from, p.g.k, p.g.a_signed, wide);
    }
    std::memset(to + used, 0, all - used);  // what completes the last group must not count
  }
}

void multiply_panel(const Problem& p, const Block& block, std::size_t panel, bool fetch_next) {
  const PackedInt8B& layout = p.g.layout;
  const std::size_t column = panel * layout.panel, width = layout.width(panel);
  const std::size_t group_bytes = width * 4;
  Int8Tile tile = {};
  tile.groups = layout.groups();
  tile.lda = copied_row_bytes(layout);
  tile.b = p.packed + column * layout.groups() * 4;
  tile.ldc = p.g.ldc;
  tile.cols = std::min(width, p.g.n - column);
  tile.column_terms = p.columns.terms + column;
  tile.column_zeros = p.columns.any_zero ? p.columns.zeros + column : nullptr;
  const bool stream = block.tiles == 1;
  if (fetch_next || stream) {
    tile.prefetch_bytes = round_up(ceil_div(4 * group_bytes, block.tiles), kCacheLine);
  }
  const char* next = tile.b + (stream ? kStreamAhead : layout.groups() * group_bytes);
  const Int8TileFunction* kernels =
      p.kernels.tiles + (width / layout.lanes - 1) * p.kernels.max_rows;
  for (std::size_t t = 0; t < block.tiles; ++t) {
    const Range rows = part_of(block.rows.size(), t, block.tiles);
    tile.a = block.a + rows.begin * tile.lda;
    tile.row_sums = block.row_sums + rows.begin;
    tile.c = p.c + (block.rows.begin + rows.begin) * p.g.ldc + column;
    tile.prefetch = next + t * (tile.groups / 4) * tile.prefetch_bytes;
    kernels[rows.size() - 1](tile);
  }
}

void multiply(const Problem& p, Range rows, Range panels, char* scratch) {
  const std::size_t blocks = ceil_div(rows.size(), kMaxBlockRows);
  char* const sums = scratch + std::min(p.g.m, kMaxBlockRows) * copied_row_bytes(p.g.layout);
  for (std::size_t i = 0; i < blocks; ++i) {
    const Range part = part_of(rows.size(), i, blocks);
    const Block block = {{rows.begin + part.begin, rows.begin + part.end},
                         ceil_div(part.size(), p.kernels.max_rows),
                         scratch,
                         reinterpret_cast<std::int32_t*>(sums)};
    copy_block(p, block);
    for (std::size_t panel = panels.begin; panel < panels.end; ++panel) {
      multiply_panel(p, block, panel, panel + 1 < panels.end);
    }
  }
}

Problem problem_at(const Int8GemmArgs& g, std::size_t i, char* column_scratch) noexcept {
  const char* packed = static_cast<const char*>(g.packed) + i * g.b_batch;
  return {g,      int8_kernels(g.layout.level), static_cast<const char*>(g.a) + i * g.a_batch,
          packed, g.c + i * g.c_batch,          columns_of(g, packed, column_scratch)};
}

/// The packed value at [k, n] of a panel's group-major layout.
template <class T>
void pack_panel(const PackedInt8B& layout, const Int8Matrix& b, std::size_t panel, char* packed) {
  const std::size_t n0 = panel * layout.panel, width = layout.width(panel);
  const std::size_t cols = std::min(width, layout.n - n0);
  auto* to = reinterpret_cast<T*>(packed + n0 * layout.groups() * 4);
  auto* sums = reinterpret_cast<std::uint32_t*>(packed + layout.sums_offset()) + n0;
  const auto* from = static_cast<const std::uint8_t*>(b.data) + n0 * b.col_stride;
  const std::uint8_t flip = b.is_signed ? 0 : 0x80;
  std::memset(to, 0, layout.groups() * width * 4);
  std::fill_n(sums, width, 0U);
  for (std::size_t k = 0; k < layout.k; ++k) {
    T* group = to + (k / layout.group) * width * layout.group + k % layout.group;
    const std::uint8_t* row = from + k * b.row_stride;
    for (std::size_t j = 0; j < cols; ++j) {
      const auto value = static_cast<std::int8_t>(row[j * b.col_stride] ^ flip);
      group[j * layout.group] = value;
      sums[j] += static_cast<std::uint32_t>(value);
    }
  }
}

}  // namespace

PackedInt8B packed_int8_b(std::size_t k, std::size_t n, CpuLevel level) noexcept {
  const Int8Kernels& kernels = int8_kernels(level);
  return {k, n, kernels.panel(), kernels.lanes, kernels.group, level};
}

void pack_int8_b(const PackedInt8B& layout, const Int8Matrix& b, void* packed,
                 ThreadPool& pool) noexcept {
  parallel_for(pool, layout.panels(), [&](std::size_t panel) noexcept {
    char* const to = static_cast<char*>(packed);
    if (layout.group == 4) return pack_panel<std::int8_t>(layout, b, panel, to);
    pack_panel<std::int16_t>(layout, b, panel, to);
  });
}

std::size_t int8_gemm_scratch_bytes(const Int8GemmArgs& g, int threads) noexcept {
  const PackedInt8B layout = packed_int8_b(g.k, g.n, g.packed ? g.layout.level : cpu_level());
  const auto count = static_cast<std::size_t>(std::max(1, threads));
  return count * (thread_bytes(g, layout) + column_bytes(layout));
}

void int8_gemm(const Int8GemmArgs& g, ThreadPool& pool) noexcept {
  if (g.m == 0 || g.n == 0 || g.batch == 0) return;
  const PackedInt8B& layout = g.layout;
  const Cut cut = cut_work({g.batch, g.m, layout.panels(), layout.panel * (layout.groups() + 1),
                            int8_kernels(layout.level).max_rows},
                           pool.threads());
  char* const scratch = static_cast<char*>(g.scratch);
  const std::size_t each = thread_bytes(g, layout) + column_bytes(layout);
  if (cut.by_problem) {
    parallel_for(pool, cut.parts, [&](std::size_t part) noexcept {
      char* const mine = scratch + part * each;
      const Range problems = part_of(g.batch, part, cut.parts);
      for (std::size_t i = problems.begin; i < problems.end; ++i) {
        multiply(problem_at(g, i, mine), {0, g.m}, {0, layout.panels()},
                 mine + column_bytes(layout));
      }
    });
    return;
  }
  for (std::size_t i = 0; i < g.batch; ++i) {
    const Problem problem = problem_at(g, i, scratch);
    parallel_for(pool, cut.parts, [&](std::size_t part) noexcept {
      multiply(problem, cut.rows(part, g.m), cut.panels(part, layout.panels()),
               scratch + column_bytes(layout) + part * thread_bytes(g, layout));
    });
  }
}

}  // namespace rlx::cpu
