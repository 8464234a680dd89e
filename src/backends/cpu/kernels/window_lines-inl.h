// Windows over rows of floating numbers, a band of results at a time (window_lines.h). Include
// after Highway's foreach_target.h; the file is read once per instruction set.

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

/// Copies positions first, first + stride, … of a row of `size` elements, as far as they are in it,
/// to where they belong among `count`.
template <class T>
void copy_phase(const T* row, std::int64_t size, std::int64_t first, std::int64_t stride,
                std::int64_t count, Computed<T>* to) {
  std::int64_t low = 0, high = size - first;
  if (stride != 1) {
    low = first < 0 ? (stride - 1 - first) / stride : 0;
    high = (high + stride - 1) / stride;
  } else if (first < 0) {
    low = -first;
  }
  if (high > count) high = count;
  if (low >= high) return;
  const T* from = row + first + low * stride;
  const auto inside = static_cast<std::size_t>(high - low);
  to += low;
  if (stride == 1) {
    return map(from, to, inside, [](auto v, std::size_t, std::size_t) HWY_ATTR { return v; });
  }
  std::size_t i = 0;
  if constexpr (std::is_same_v<T, float>) {
    const hn::ScalableTag<float> d;
    const std::size_t lanes = hn::Lanes(d);
    hn::Vec<decltype(d)> even, odd;
    for (; stride == 2 && i + lanes < inside; i += lanes) {
      hn::LoadInterleaved2(d, from + 2 * i, even, odd);
      hn::StoreU(even, d, to + i);
    }
  }
  for (; i < inside; ++i) to[i] = load_one(from + static_cast<std::int64_t>(i) * stride);
}

/// A thread's lines. Consecutive bands at the same place of their planes share their padding.
template <class T>
class LineGatherer {
 public:
  LineGatherer(const WindowLines& lines, Computed<T> padding, Computed<T>* to)
      : l_(lines), padding_(padding), to_(to) {}

  const Computed<T>* lines() const { return to_; }

  /// The lines that a band needs from one channel.
  void gather(const T* channel, const Band& band) {
    if (plane_ != band.plane || row_ != band.row) write_padding();
    plane_ = band.plane;
    row_ = band.row;
    const auto& [depth, height, width] = l_.window.axes;
    Computed<T>* to = to_;
    for (std::int64_t kz = 0; kz < depth.kernel; ++kz) {
      const std::int64_t z = band.plane * depth.stride + kz * depth.dilation - depth.padding_low;
      for (std::int64_t phase = 0; phase < l_.row_phases; ++phase) {
        if (z >= 0 && z < depth.input)
          gather_phase(channel + z * height.input * width.input, band, phase, to);
        to += l_.column_phases * l_.phase_lines * l_.pitch;
      }
    }
  }

 private:
  void write_padding() {
    const ComputeTag<T> d;
    const std::size_t size = l_.line_elements();  // whole vectors
    for (std::size_t i = 0; i < size; i += hn::Lanes(d))
      hn::Store(hn::Set(d, padding_), d, to_ + i);
  }

  void gather_phase(const T* plane, const Band& band, std::int64_t phase, Computed<T>* to) {
    const WindowAxis& height = l_.window.axes[1];
    const WindowAxis& width = l_.window.axes[2];
    const std::int64_t lines = band.rows + height.reach() / height.stride;
    for (std::int64_t line = 0; line < lines; ++line, to += l_.pitch) {
      const std::int64_t y = (band.row + line) * height.stride + phase - height.padding_low;
      if (y < 0 || y >= height.input) continue;
      for (std::int64_t p = 0; p < l_.column_phases; ++p) {
        copy_phase(plane + y * width.input, width.input, p - width.padding_low, width.stride,
                   l_.pitch, to + p * l_.phase_lines * l_.pitch);
      }
    }
  }

  const WindowLines& l_;
  const Computed<T> padding_;
  Computed<T>* const to_;
  std::int64_t plane_ = -1, row_ = -1;  // whose padding stands there
};

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

/// Reduces the windows of `rows` output rows into `out`, [rows, pitch]. Starts from `start`, or
/// goes on from what is in `out`.
template <class C, class Tap, class F>
HWY_INLINE void sweep(const WindowLines& l, std::int64_t rows, const C* lines, C* out, bool starts,
                      C start, Tap&& tap, F&& f) {
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(hn::ScalableTag<C>()));
  constexpr int kVectors = 4;
  const std::int64_t end = (rows - 1) * l.pitch + l.window.axes[2].output;
  std::int64_t i = 0;
  for (; i + (kVectors - 1) * lanes < end; i += kVectors * lanes)
    sweep_vectors<kVectors>(l.taps, lines + i, out + i, starts, start, tap, f);
  for (; i < end; i += lanes) sweep_vectors<1>(l.taps, lines + i, out + i, starts, start, tap, f);
}

}  // namespace rlx::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
