// Windows over rows of floating numbers. The rows of input that a band of output rows needs are
// copied with their padding and parted by phase: of stride s, phase p holds positions p, p + s, …
// Then each tap of a whole row of windows is one contiguous row, whatever strides, dilations and
// padding are. Include after Highway's foreach_target.h; the file is read once per instruction set.

#if defined(RLX_CPU_WINDOW_LINES_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef RLX_CPU_WINDOW_LINES_INL_H_
#undef RLX_CPU_WINDOW_LINES_INL_H_
#else
#define RLX_CPU_WINDOW_LINES_INL_H_
#endif

#include "backends/cpu/kernels/floats-inl.h"
#include "backends/cpu/kernels/window_lines.h"

HWY_BEFORE_NAMESPACE();
namespace rlx::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

/// Positions first, first + stride, … of a row of `size` elements; outside it they are `padding`.
template <class T>
void copy_phase(const T* row, std::int64_t size, std::int64_t first, std::int64_t stride,
                std::int64_t count, Computed<T> padding, Computed<T>* to) {
  const std::int64_t low = std::min(count, first < 0 ? (stride - 1 - first) / stride : 0);
  const std::int64_t high =
      first >= size ? low : std::clamp((size - first + stride - 1) / stride, low, count);
  std::fill(to, to + low, padding);
  const T* from = row + first + low * stride;
  const auto inside = static_cast<std::size_t>(high - low);
  if (inside != 0 && stride == 1) {
    map(from, to + low, inside, [](auto v, std::size_t, std::size_t) HWY_ATTR { return v; });
  } else {
    for (std::size_t i = 0; i < inside; ++i)
      to[static_cast<std::size_t>(low) + i] =
          load_one(from + static_cast<std::int64_t>(i) * stride);
  }
  std::fill(to + high, to + count, padding);
}

/// The lines that output rows from `row` on of output plane `plane` need, from one channel.
template <class T>
void gather_lines(const WindowLines& l, const T* channel, std::int64_t plane, std::int64_t row,
                  std::int64_t rows, Computed<T> padding, Computed<T>* to) {
  const auto& [depth, height, width] = l.window.axes;
  const std::int64_t lines = (rows - 1) * height.stride + height.reach() + 1;
  for (std::int64_t kz = 0; kz < depth.kernel; ++kz) {
    const std::int64_t z = plane * depth.stride + kz * depth.dilation - depth.padding_low;
    for (std::int64_t i = 0; i < lines; ++i) {
      const std::int64_t y = row * height.stride + i - height.padding_low;
      Computed<T>* line = to + (kz * l.lines + i) * l.line_stride;
      if (z < 0 || z >= depth.input || y < 0 || y >= height.input) {
        std::fill_n(line, l.line_stride, padding);
        continue;
      }
      const T* from = channel + (z * height.input + y) * width.input;
      for (std::int64_t p = 0; p < l.phases; ++p)
        copy_phase(from, width.input, p - width.padding_low, width.stride, l.phase_size, padding,
                   line + p * l.phase_size);
    }
  }
}

/// V vectors of results: f(sum, taps read, what `tap` made of the tap's index) over all taps.
template <int V, class C, class Tap, class F>
HWY_INLINE void sweep_vectors(std::span<const std::int64_t> taps, const C* lines, C* out,
                              bool starts, C start, Tap&& tap, F&& f) {
  const hn::ScalableTag<C> d;
  const std::size_t lanes = hn::Lanes(d);
  hn::Vec<hn::ScalableTag<C>> sum[V];
#pragma GCC unroll 8
  for (int v = 0; v < V; ++v)
    sum[v] = starts ? hn::Set(d, start) : hn::Load(d, out + static_cast<std::size_t>(v) * lanes);
  for (std::size_t t = 0; t < taps.size(); ++t) {
    const auto k = tap(t);
#pragma GCC unroll 8
    for (int v = 0; v < V; ++v)
      sum[v] = f(sum[v], hn::LoadU(d, lines + taps[t] + static_cast<std::size_t>(v) * lanes), k);
  }
#pragma GCC unroll 8
  for (int v = 0; v < V; ++v) hn::Store(sum[v], d, out + static_cast<std::size_t>(v) * lanes);
}

/// Reduces the windows of `rows` output rows into `out`, whose rows are `l.out_stride` apart.
/// Starts from `start`, or goes on from what is in `out`.
template <class C, class Tap, class F>
HWY_INLINE void sweep(const WindowLines& l, std::int64_t rows, const C* lines, C* out, bool starts,
                      C start, Tap&& tap, F&& f) {
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(hn::ScalableTag<C>()));
  constexpr int kVectors = 4;
  const std::int64_t step = l.window.axes[1].stride * l.line_stride;
  for (std::int64_t row = 0; row < rows; ++row, lines += step, out += l.out_stride) {
    std::int64_t i = 0;
    const std::int64_t end = l.window.axes[2].output;
    for (; i + (kVectors - 1) * lanes < end; i += kVectors * lanes)
      sweep_vectors<kVectors>(l.taps, lines + i, out + i, starts, start, tap, f);
    for (; i < end; i += lanes) sweep_vectors<1>(l.taps, lines + i, out + i, starts, start, tap, f);
  }
}

}  // namespace rlx::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
