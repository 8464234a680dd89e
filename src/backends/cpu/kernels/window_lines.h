#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "backends/cpu/kernel.h"
#include "backends/cpu/kernels/window.h"

namespace rlx::cpu {

/// How bands of output rows and the input that they need lie in a thread's scratch, in elements of
/// the computed type. Lines are [kernel depth][lines][phases][phase_size].
struct WindowLines {
  Window window;
  std::int64_t band = 1;   ///< output rows of a band at most
  std::int64_t bands = 1;  ///< of one output plane
  std::int64_t lines = 1;  ///< input rows that a whole band needs, in one input plane
  std::int64_t phases = 1, phase_size = 0;
  std::int64_t line_stride = 0;        ///< phases · phase_size
  std::int64_t out_stride = 0;         ///< from one output row in scratch to the next
  std::span<const std::int64_t> taps;  ///< where each tap of a band's first window stands

  std::size_t line_elements() const noexcept;
  std::size_t out_elements() const noexcept;
};

/// Lays out bands that stay in the L1 cache.
WindowLines plan_lines(StepBuilder& step, const Window& window);

/// One band of one channel of results.
struct Band {
  std::int64_t channel;  ///< of all samples' channels
  std::int64_t plane, row, rows;
  std::size_t first;  ///< its first element in the output
};
/// Band `index` of channels · planes · bands.
Band band_at(const WindowLines& lines, std::size_t index) noexcept;
std::size_t bands_of_channel(const WindowLines& lines) noexcept;

}  // namespace rlx::cpu
