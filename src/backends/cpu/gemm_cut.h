#pragma once

#include <algorithm>
#include <cstddef>

namespace rlx::cpu {

inline std::size_t ceil_div(std::size_t a, std::size_t b) noexcept { return (a + b - 1) / b; }
inline std::size_t round_up(std::size_t a, std::size_t b) noexcept { return ceil_div(a, b) * b; }

struct Range {
  std::size_t begin, end;
  std::size_t size() const noexcept { return end - begin; }
};

/// Part `i` of `n` near-equal parts of [0, total).
inline Range part_of(std::size_t total, std::size_t i, std::size_t n) noexcept {
  return {total * i / n, total * (i + 1) / n};
}

/// How the work of a batch of products is cut into parts, one a thread. Nothing here changes a
/// result.
struct Cut {
  std::size_t parts;
  std::size_t row_parts;    ///< of one problem
  std::size_t panel_parts;  ///< of one problem
  bool by_problem;          ///< each thread takes whole problems

  Range rows(std::size_t part, std::size_t m) const noexcept {
    return part_of(m, part / panel_parts, row_parts);
  }
  Range panels(std::size_t part, std::size_t count) const noexcept {
    return part_of(count, part % panel_parts, panel_parts);
  }
};

struct WorkSize {
  std::size_t batch, m;
  std::size_t panels;      ///< of B
  std::size_t panel_work;  ///< multiply-adds of one row with one panel
  std::size_t max_rows;    ///< of a tile
};

/// Cuts for at most `threads` threads, fewer where a part would not be worth a hand-off. Among the
/// splits whose largest part has the fewest tiles it takes the one with the most row parts, where
/// threads share the least of A.
Cut cut_work(const WorkSize& size, int threads) noexcept;

}  // namespace rlx::cpu
