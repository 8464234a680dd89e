#include "backends/cpu/kernels/window.h"

#include <algorithm>
#include <vector>

namespace rlx::cpu {

std::size_t Window::taps() const noexcept {
  std::int64_t count = 1;
  for (const WindowAxis& axis : axes) count *= axis.kernel;
  return static_cast<std::size_t>(count);
}

std::size_t Window::input_size() const noexcept {
  std::int64_t count = 1;
  for (const WindowAxis& axis : axes) count *= axis.input;
  return static_cast<std::size_t>(count);
}

std::size_t Window::output_size() const noexcept {
  std::int64_t count = 1;
  for (const WindowAxis& axis : axes) count *= axis.output;
  return static_cast<std::size_t>(count);
}

Window make_window(const WindowLists& l) {
  std::vector<WindowAxis> axes;
  for (std::size_t i = 0; i < l.input.size(); ++i) {
    const WindowAxis axis{l.input[i],     l.output[i],      l.kernel[i],      l.strides[i],
                          l.dilations[i], l.padding_low[i], l.padding_high[i]};
    const bool padded = axis.padding_low != 0 || axis.padding_high != 0;
    if (axis.input == 1 && axis.kernel == 1 && !padded) continue;
    if (!axes.empty() && axis.copies() && axes.back().copies()) {
      axes.back().input *= axis.input;
      axes.back().output *= axis.output;
    } else {
      axes.push_back(axis);
    }
  }
  Window window;
  std::ranges::copy(axes, window.axes.end() - static_cast<std::ptrdiff_t>(axes.size()));
  return window;
}

}  // namespace rlx::cpu
