#include "backends/cpu/kernels/window_lines.h"

#include <algorithm>

namespace rlx::cpu {
namespace {

constexpr std::int64_t kBandElements = 8 * 1024;
constexpr std::int64_t kVectorElements = 16;  // whole vectors of any instruction set and type
// Results are computed in whole blocks of four vectors at most.
constexpr std::int64_t kBlockElements = 4 * kVectorElements;

std::int64_t round_up(std::int64_t n, std::int64_t to) { return (n + to - 1) / to * to; }

std::int64_t lines_for(const WindowAxis& height, std::int64_t rows) {
  return (rows - 1) * height.stride + height.reach() + 1;
}

std::vector<std::int64_t> tap_offsets(const WindowLines& l) {
  const auto& [depth, height, width] = l.window.axes;
  std::vector<std::int64_t> taps;
  for (std::int64_t z = 0; z < depth.kernel; ++z) {
    for (std::int64_t y = 0; y < height.kernel; ++y) {
      const std::int64_t line = z * l.lines + y * height.dilation;
      for (std::int64_t x = 0; x < width.kernel; ++x) {
        const std::int64_t at = x * width.dilation;
        taps.push_back(line * l.line_stride + at % width.stride * l.phase_size + at / width.stride);
      }
    }
  }
  return taps;
}

}  // namespace

std::size_t WindowLines::line_elements() const noexcept {
  return static_cast<std::size_t>(window.axes[0].kernel * lines * line_stride);
}

std::size_t WindowLines::out_elements() const noexcept {
  return static_cast<std::size_t>(band * out_stride);
}

WindowLines plan_lines(StepBuilder& step, const Window& window) {
  const auto& [depth, height, width] = window.axes;
  WindowLines l;
  l.window = window;
  l.out_stride = round_up(width.output, kBlockElements);
  l.phases = std::min(width.stride, width.reach() + 1);
  l.phase_size = round_up(l.out_stride + width.reach() / width.stride, kVectorElements);
  l.line_stride = l.phases * l.phase_size;
  l.band = height.output;
  const std::int64_t fit = kBandElements / (depth.kernel * l.line_stride);
  if (lines_for(height, l.band) > fit)
    l.band = std::max<std::int64_t>(1, (fit - height.reach() - 1) / height.stride + 1);
  l.band = std::min(l.band, height.output);
  l.bands = (height.output + l.band - 1) / l.band;
  l.lines = lines_for(height, l.band);
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
