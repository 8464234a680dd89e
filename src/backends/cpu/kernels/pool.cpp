#include <algorithm>
#include <cmath>
#include <limits>

#include "backends/cpu/accepts.h"
#include "backends/cpu/kernel.h"
#include "backends/cpu/kernels/window_lines.h"
#include "backends/cpu/parallel.h"
#include "ops/conv.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/kernels/pool.cpp"
#include <hwy/foreach_target.h>
// After foreach_target.h, which includes this file again for each instruction set.
#include "backends/cpu/kernels/window_lines-inl.h"

#ifndef RLX_CPU_POOL_STEP
#define RLX_CPU_POOL_STEP
namespace rlx::cpu {
namespace {

struct PoolStep {
  Buffer x, y, scratch;
  WindowLines lines;
  std::size_t channels = 0;  // of all samples
  /// Averages: how many taps count for each output, an axis at a time.
  std::span<const std::int64_t> counts[3];
  std::size_t threads = 1, scratch_elements = 0;
};
using PoolFunction = void (*)(const PoolStep&, const Run&) noexcept;

}  // namespace
}  // namespace rlx::cpu
#endif

HWY_BEFORE_NAMESPACE();
namespace rlx::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

struct PoolMax {
  static constexpr bool kDivides = false;
  template <class C>
  static constexpr C start() {
    return -std::numeric_limits<C>::infinity();
  }
  /// x86's maximum gives its second operand if either is NaN: only `sum`'s own needs care.
  template <class V>
  static HWY_INLINE V apply(V sum, V v) {
    return hn::IfThenElse(hn::IsNaN(sum), sum, hn::IfThenElse(hn::Gt(sum, v), sum, v));
  }
};

struct PoolAverage {
  static constexpr bool kDivides = true;
  template <class C>
  static constexpr C start() {
    return 0;
  }
  template <class V>
  static HWY_INLINE V apply(V sum, V v) {
    return hn::Add(sum, v);
  }
};

/// Divides a row of sums by how many taps each has.
template <class C>
void divide_row(std::span<const std::int64_t> counts, std::int64_t others, C* sums) {
  for (std::size_t i = 0; i < counts.size(); ++i) sums[i] /= static_cast<C>(counts[i] * others);
}

template <class Kind, class T>
void pool_band(const PoolStep& s, const Band& band, const T* channel, T* y,
               LineGatherer<T>& gatherer, Computed<T>* out) {
  using C = Computed<T>;
  const WindowLines& l = s.lines;
  const auto cols = static_cast<std::size_t>(l.window.axes[2].output);
  gatherer.gather(channel, band);
  sweep(
      l, band.rows, gatherer.lines(), out, true, Kind::template start<C>(),
      [](std::size_t) HWY_ATTR { return 0; },
      [](auto sum, auto v, int) HWY_ATTR { return Kind::apply(sum, v); });
  for (std::int64_t row = 0; row < band.rows; ++row) {
    C* from = out + row * l.pitch;
    if constexpr (Kind::kDivides) {
      divide_row(s.counts[2],
                 s.counts[0][static_cast<std::size_t>(band.plane)] *
                     s.counts[1][static_cast<std::size_t>(band.row + row)],
                 from);
    }
    map(from, y + static_cast<std::size_t>(row) * cols, cols,
        [](auto v, std::size_t, std::size_t) HWY_ATTR { return v; });
  }
}

template <class Kind, class T>
void pool(const PoolStep& s, const Run& run) noexcept {
  const WindowLines& l = s.lines;
  const std::size_t cost = l.out_elements() * (l.taps.size() + 4) / 4;
  Computed<T>* scratch = run.at<Computed<T>>(s.scratch);
  parallel_ranges(
      run, s.channels * bands_of_channel(l), cost, s.threads,
      [&](std::size_t part, std::size_t begin, std::size_t end) noexcept {
        Computed<T>* out = scratch + part * s.scratch_elements;
        LineGatherer<T> gatherer(l, Kind::template start<Computed<T>>(), out + l.out_elements());
        for (std::size_t i = begin; i < end; ++i) {
          const Band band = band_at(l, i);
          const T* channel =
              run.at<const T>(s.x) + static_cast<std::size_t>(band.channel) * l.window.input_size();
          pool_band<Kind>(s, band, channel, run.at<T>(s.y) + band.first, gatherer, out);
        }
      });
}

PoolFunction pool_function(DType dtype, Pooling kind) {
  return for_float(dtype, [&](auto tag) -> PoolFunction {
    using T = typename decltype(tag)::type;
    return kind == Pooling::max ? &pool<PoolMax, T> : &pool<PoolAverage, T>;
  });
}

}  // namespace rlx::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace rlx::cpu {
namespace {

HWY_EXPORT(pool_function);

/// For each output along the axis, its taps in the input, with `padded` those in the padding too.
std::vector<std::int64_t> tap_counts(const WindowAxis& axis, bool padded) {
  std::vector<std::int64_t> counts(static_cast<std::size_t>(axis.output));
  const std::int64_t begin = padded ? -axis.padding_low : 0;
  const std::int64_t end = axis.input + (padded ? axis.padding_high : 0);
  std::int64_t first = -axis.padding_low;
  for (std::int64_t& count : counts) {
    for (std::int64_t k = 0; k < axis.kernel; ++k) {
      const std::int64_t at = first + k * axis.dilation;
      count += at >= begin && at < end;
    }
    first += axis.stride;
  }
  return counts;
}

std::span<const std::int64_t> spatial(const Operand& x) { return std::span(x.dims).subspan(2); }

void plan_pool(StepBuilder& step) {
  const auto& op = *step.node().as<Pool>();
  const Operand& x = step.in(0);
  const Operand& y = step.out();
  if (y.size() == 0) return;
  PoolStep s;
  s.lines = plan_lines(step, make_window({spatial(x), spatial(y), op.kernel, op.strides,
                                          op.padding_low, op.padding_high, op.dilations}));
  s.channels = static_cast<std::size_t>(x.dims[0] * x.dims[1]);
  for (std::size_t axis = 0; axis < 3; ++axis)
    s.counts[axis] = step.keep(tap_counts(s.lines.window.axes[axis], op.count_include_pad));
  s.x = x.at;
  s.y = y.at;
  s.threads = static_cast<std::size_t>(step.threads());
  constexpr std::size_t kAlign = 64;
  s.scratch_elements =
      (s.lines.out_elements() + s.lines.line_elements() + kAlign) / kAlign * kAlign;
  const std::size_t element = x.dtype == DType::f64 ? sizeof(double) : sizeof(float);
  s.scratch = step.scratch(s.threads * s.scratch_elements * element);
  step.launch(HWY_DYNAMIC_DISPATCH(pool_function)(x.dtype, op.kind), s);
}

Match accepts_pool(const Node& node) { return computes_float(node.type().dtype); }

}  // namespace

KernelList pool_kernels() {
  static constexpr Kernel kKernels[] = {
      {.name = "pool_rows", .op = &pool_def, .accepts = accepts_pool, .plan = plan_pool}};
  return kKernels;
}

}  // namespace rlx::cpu
#endif
