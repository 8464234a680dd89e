#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "backends/cpu/kernel.h"
#include "backends/cpu/kernels/window.h"

namespace rlx::cpu {

/// How bands of output rows and the input that they need lie in a thread's scratch, in elements of
/// the computed type. Input rows are parted by phase along both axes: phase (p, q) of strides (s,
/// t) holds rows p, p + s, … and of them columns q, q + t, …. Lines are [kernel depth][row phases]
/// [column phases][phase_lines][pitch], results [band][pitch]: whatever the strides are, the tap of
/// all results of a band is one contiguous run.
struct WindowLines {
  Window window;
  std::int64_t band = 1;   ///< output rows of a band at most
  std::int64_t bands = 1;  ///< of one output plane
  std::int64_t row_phases = 1, column_phases = 1;
  std::int64_t phase_lines = 1;
  std::int64_t pitch = 0;
  std::span<const std::int64_t> taps;  ///< where each tap of a band's first result stands

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
