#include "backends/cpu/kernels/window_lines.h"

#include <algorithm>

namespace rlx::cpu {
namespace {

constexpr std::int64_t kBandElements = 8 * 1024;
constexpr std::int64_t kVectorElements = 16;  // whole vectors of any instruction set and type

std::int64_t round_up(std::int64_t n, std::int64_t to) { return (n + to - 1) / to * to; }

/// Steps of the stride that the window reaches beyond its first tap.
std::int64_t overhang(const WindowAxis& axis) { return axis.reach() / axis.stride; }

std::int64_t phases_of(const WindowAxis& axis) { return std::min(axis.stride, axis.reach() + 1); }

std::vector<std::int64_t> tap_offsets(const WindowLines& l) {
  const auto& [depth, height, width] = l.window.axes;
  std::vector<std::int64_t> taps;
  for (std::int64_t z = 0; z < depth.kernel; ++z) {
    for (std::int64_t i = 0; i < height.kernel; ++i) {
      const std::int64_t y = i * height.dilation;
      for (std::int64_t j = 0; j < width.kernel; ++j) {
        const std::int64_t x = j * width.dilation;
        const std::int64_t phase =
            (z * l.row_phases + y % height.stride) * l.column_phases + x % width.stride;
        taps.push_back((phase * l.phase_lines + y / height.stride) * l.pitch + x / width.stride);
      }
    }
  }
  return taps;
}

}  // namespace

std::size_t WindowLines::line_elements() const noexcept {
  const std::int64_t phases = window.axes[0].kernel * row_phases * column_phases;
  // The last vector of the last tap reads beyond the lines.
  const std::int64_t slack = overhang(window.axes[2]) + kVectorElements;
  return static_cast<std::size_t>(round_up(phases * phase_lines * pitch + slack, kVectorElements));
}

std::size_t WindowLines::out_elements() const noexcept {
  return static_cast<std::size_t>(round_up(band * pitch, kVectorElements));
}

WindowLines plan_lines(StepBuilder& step, const Window& window) {
  const auto& [depth, height, width] = window.axes;
  WindowLines l;
  l.window = window;
  l.row_phases = phases_of(height);
  l.column_phases = phases_of(width);
  l.pitch = width.output + overhang(width);
  const std::int64_t row = depth.kernel * l.row_phases * l.column_phases * l.pitch;
  l.band = std::clamp<std::int64_t>(kBandElements / row - overhang(height), 1, height.output);
  l.bands = (height.output + l.band - 1) / l.band;
  l.phase_lines = l.band + overhang(height);
  l.taps = step.keep(tap_offsets(l));
  return l;
}

std::size_t bands_of_channel(const WindowLines& l) noexcept {
  return static_cast<std::size_t>(l.window.axes[0].output * l.bands);
}

Band band_at(const WindowLines& l, std::size_t index) noexcept {
  const auto& [depth, height, width] = l.window.axes;
  const auto i = static_cast<std::int64_t>(index);
  Band b{};
  b.row = i % l.bands * l.band;
  b.rows = std::min(l.band, height.output - b.row);
  b.plane = i / l.bands % depth.output;
  b.channel = i / l.bands / depth.output;
  b.first = static_cast<std::size_t>(
      ((b.channel * depth.output + b.plane) * height.output + b.row) * width.output);
  return b;
}

}  // namespace rlx::cpu
