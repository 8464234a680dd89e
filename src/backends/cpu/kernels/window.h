#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace rlx::cpu {

/// One axis that a window slides along. Output i reads positions
/// i·stride + k·dilation - padding_low for k < kernel; those outside [0, input) are padding.
struct WindowAxis {
  std::int64_t input = 1, output = 1, kernel = 1, stride = 1, dilation = 1;
  std::int64_t padding_low = 0, padding_high = 0;

  /// The output along this axis is the input.
  bool copies() const noexcept {
    return kernel == 1 && stride == 1 && padding_low == 0 && padding_high == 0;
  }
  /// From the first tap to the last.
  std::int64_t reach() const noexcept { return (kernel - 1) * dilation; }
};

/// A window over the spatial axes of arrays [n, c, spatial…], always as three axes, outermost
/// first. Axes that only copy are joined with their neighbours, unit axes are left out: rows are as
/// long as they can be.
struct Window {
  std::array<WindowAxis, 3> axes;

  std::size_t taps() const noexcept;
  /// Elements of one channel of the input and of the output.
  std::size_t input_size() const noexcept;
  std::size_t output_size() const noexcept;
};

/// Lists with one entry a spatial axis; there are one to three.
struct WindowLists {
  std::span<const std::int64_t> input, output, kernel;
  std::span<const std::int64_t> strides, padding_low, padding_high, dilations;
};

Window make_window(const WindowLists& lists);

}  // namespace rlx::cpu
