#include "ops/softmax.h"

#include <cmath>

#include "backends/cpu/accepts.h"
#include "backends/cpu/kernel.h"
#include "backends/cpu/parallel.h"
#include "ops/host_array.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/kernels/softmax.cpp"
#include <hwy/foreach_target.h>
// After foreach_target.h, which includes this file again for each instruction set.
#include <hwy/contrib/math/math-inl.h>

#include "backends/cpu/kernels/floats-inl.h"
#include "backends/cpu/kernels/vector_math-inl.h"

#ifndef RLX_CPU_SOFTMAX_STEP
#define RLX_CPU_SOFTMAX_STEP
namespace rlx::cpu {
namespace {

/// x and y as [outer, length, inner]; sums run over `length`.
struct SoftmaxStep {
  Buffer x, y;
  Buffer scratch;  ///< `row_floats` for each thread; 16-bit dtypes only
  std::size_t scratch_floats = 0;
  std::size_t outer = 1, length = 1, inner = 1;
  std::size_t threads = 1;
};
using SoftmaxFunction = void (*)(const SoftmaxStep&, const Run&) noexcept;

/// Vectors of columns that are normalised together where the axis is not the last.
constexpr int kColumnVectors = 4;
/// Elements summed in one accumulator's chain before it joins the total.
constexpr std::size_t kChunk = 2048;
/// The work of an element compared with plain arithmetic.
constexpr std::size_t kCost = 4;

}  // namespace
}  // namespace rlx::cpu
#endif

HWY_BEFORE_NAMESPACE();
namespace rlx::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

template <class D, class V>
HWY_INLINE V exponential(D d, V x) {
  if constexpr (std::is_same_v<hn::TFromD<D>, float>) {
    return exp(d, x);
  } else {
    return hn::IfThenElse(hn::IsNaN(x), x, hn::Exp(d, x));  // theirs makes NaN zero
  }
}

/// Sum of e^(x - top) over a row; the terms go to `e` unless it is null.
template <bool kStore, class T>
Computed<T> sum_of_exponentials(const T* x, std::size_t size, Computed<T> top, Computed<T>* e) {
  const ComputeTag<T> d;
  const auto shift = hn::Set(d, top);
  double total = 0;
  for (std::size_t i = 0; i < size; i += kChunk) {
    const std::size_t count = std::min(kChunk, size - i);
    const auto term = [&](auto v) HWY_ATTR { return exponential(d, hn::Sub(v, shift)); };
    if constexpr (kStore) {
      auto sum = hn::Zero(d);
      map(x + i, e + i, count, [&](auto v, std::size_t, std::size_t n) HWY_ATTR {
        const auto t = term(v);
        sum = hn::Add(sum, n == hn::Lanes(d) ? t : hn::IfThenElseZero(hn::FirstN(d, n), t));
        return t;
      });
      total += hn::GetLane(hn::SumOfLanes(d, sum));
    } else {
      total += map_sum(x + i, count, term);
    }
  }
  return static_cast<Computed<T>>(total);
}

/// One contiguous row; `e` has its size and may be y where the types agree. y may be x.
template <bool kLog, class T>
void softmax_row(const T* x, T* y, Computed<T>* e, std::size_t size) {
  const ComputeTag<T> d;
  const Computed<T> top = greatest(x, size);
  const Computed<T> total = sum_of_exponentials<!kLog>(x, size, top, e);
  if constexpr (kLog) {
    const auto shift = hn::Set(d, top), log_total = hn::Set(d, std::log(total));
    map(x, y, size, [&](auto v, std::size_t, std::size_t) HWY_ATTR {
      return hn::Sub(hn::Sub(v, shift), log_total);
    });
  } else {
    const auto scale = hn::Set(d, 1 / total);
    map(e, y, size, [&](auto v, std::size_t, std::size_t) HWY_ATTR { return hn::Mul(v, scale); });
  }
}

template <class D, class V>
HWY_INLINE V log_of_lanes(D d, V x) {
  HWY_ALIGN hn::TFromD<D> lanes[hn::MaxLanes(D())];
  hn::Store(x, d, lanes);
  for (auto& v : lanes) v = std::log(v);
  return hn::Load(d, lanes);
}

/// Columns side by side, `stride` elements from one row to the next: kVectors vectors, of which
/// the last has `count` columns.
template <class T>
struct Columns {
  const T* x;
  T* y;
  Computed<T>* e;
  std::size_t stride, e_stride, length;
  std::size_t count;
};

template <bool kLog, int kVectors, class T>
void softmax_columns(const Columns<T>& at) {
  const ComputeTag<T> d;
  const std::size_t lanes = hn::Lanes(d);
  const auto x = [&](std::size_t k, int v)
                     HWY_ATTR { return load_at(d, at.x + k * at.stride, v * lanes, at.count); };
  using V = hn::Vec<ComputeTag<T>>;
  V top[kVectors], total[kVectors];
  for (int v = 0; v < kVectors; ++v) {
    top[v] = hn::Set(d, -HUGE_VALF);
    total[v] = hn::Zero(d);
  }
  for (std::size_t k = 0; k < at.length; ++k) {
    for (int v = 0; v < kVectors; ++v) top[v] = hn::Max(x(k, v), top[v]);
  }
  constexpr std::size_t kRows = 256;
  for (std::size_t first = 0; first < at.length; first += kRows) {
    const std::size_t last = std::min(at.length, first + kRows);
    V sum[kVectors];
    for (int v = 0; v < kVectors; ++v) sum[v] = hn::Zero(d);
    for (std::size_t k = first; k < last; ++k) {
      for (int v = 0; v < kVectors; ++v) {
        const V term = exponential(d, hn::Sub(x(k, v), top[v]));
        sum[v] = hn::Add(sum[v], term);
        Computed<T>* e = at.e + k * at.e_stride + v * lanes;
        if (kLog) continue;
        if (at.count == lanes) hn::StoreU(term, d, e);
        if (at.count != lanes) store_part(d, term, e, at.count);
      }
    }
    for (int v = 0; v < kVectors; ++v) total[v] = hn::Add(total[v], sum[v]);
  }
  V last[kVectors];
  for (int v = 0; v < kVectors; ++v) {
    last[v] = kLog ? log_of_lanes(d, total[v]) : hn::Div(hn::Set(d, 1), total[v]);
  }
  for (std::size_t k = 0; k < at.length; ++k) {
    for (int v = 0; v < kVectors; ++v) {
      const Computed<T>* e = at.e + k * at.e_stride;
      const V result = kLog ? hn::Sub(hn::Sub(x(k, v), top[v]), last[v])
                            : hn::Mul(load_at(d, e, v * lanes, at.count), last[v]);
      T* y = at.y + k * at.stride + v * lanes;
      if (at.count == lanes) store(d, result, y);
      if (at.count != lanes) store_part(d, result, y, at.count);
    }
  }
}

/// Columns [begin, end) of one [length, inner] slab.
template <bool kLog, class T>
void softmax_slab(const T* x, T* y, Computed<T>* e, const SoftmaxStep& s, std::size_t begin,
                  std::size_t end) {
  const std::size_t lanes = hn::Lanes(ComputeTag<T>());
  const std::size_t wide = kColumnVectors * lanes;
  for (std::size_t j = begin; j < end;) {
    const std::size_t rest = end - j;
    // 16-bit dtypes keep the terms in scratch, others in y.
    Computed<T>* terms = e;
    if constexpr (!kIsNarrow<T>) terms = y + j;
    Columns<T> at = {x + j, y + j, terms, s.inner, kIsNarrow<T> ? wide : s.inner, s.length, lanes};
    if (rest >= wide) {
      softmax_columns<kLog, kColumnVectors>(at);
      j += wide;
    } else {
      at.count = std::min(rest, lanes);
      softmax_columns<kLog, 1>(at);
      j += at.count;
    }
  }
}

template <bool kLog, class T>
void softmax_rows(const SoftmaxStep& s, const Run& run) noexcept {
  const T* x = run.at<const T>(s.x);
  T* y = run.at<T>(s.y);
  auto* scratch = run.at<Computed<T>>(s.scratch);
  parallel_ranges(run, s.outer, s.length * kCost, s.threads,
                  [&](std::size_t part, std::size_t begin, std::size_t end) {
                    for (std::size_t r = begin; r < end; ++r) {
                      T* to = y + r * s.length;
                      Computed<T>* e = scratch + part * s.scratch_floats;
                      if constexpr (!kIsNarrow<T>) e = to;
                      softmax_row<kLog>(x + r * s.length, to, e, s.length);
                    }
                  });
}

template <bool kLog, class T>
void softmax_slabs(const SoftmaxStep& s, const Run& run) noexcept {
  const T* x = run.at<const T>(s.x);
  T* y = run.at<T>(s.y);
  auto* scratch = run.at<Computed<T>>(s.scratch);
  const std::size_t wide = kColumnVectors * hn::Lanes(ComputeTag<T>());
  const std::size_t blocks = (s.inner + wide - 1) / wide;
  parallel_ranges(run, s.outer * blocks, s.length * wide * kCost, s.threads,
                  [&](std::size_t part, std::size_t begin, std::size_t end) {
                    for (std::size_t i = begin; i < end; ++i) {
                      const std::size_t slab = i / blocks * s.length * s.inner;
                      const std::size_t first = i % blocks * wide;
                      softmax_slab<kLog>(x + slab, y + slab, scratch + part * s.scratch_floats, s,
                                         first, std::min(first + wide, s.inner));
                    }
                  });
}

SoftmaxFunction softmax_function(DType dtype, bool log, bool rows) {
  return for_float(dtype, [&](auto tag) -> SoftmaxFunction {
    using T = typename decltype(tag)::type;
    if (rows) return log ? softmax_rows<true, T> : softmax_rows<false, T>;
    return log ? softmax_slabs<true, T> : softmax_slabs<false, T>;
  });
}

std::size_t softmax_column_block() { return kColumnVectors * hn::Lanes(hn::ScalableTag<float>()); }

}  // namespace rlx::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace rlx::cpu {
namespace {

HWY_EXPORT(softmax_function);
HWY_EXPORT(softmax_column_block);

Match accepts_softmax(const Node& node) { return computes_float(node.input(0).dtype()); }

template <class Attributes>
void plan_softmax(StepBuilder& step) {
  const Operand& x = step.in(0);
  const AxisView view = fold_axis(x.dims, step.node().as<Attributes>()->axis);
  if (x.size() == 0) return;
  SoftmaxStep s;
  s.x = x.at;
  s.y = step.out().at;
  s.outer = static_cast<std::size_t>(view.outer);
  s.length = static_cast<std::size_t>(view.length);
  s.inner = static_cast<std::size_t>(view.inner);
  s.threads = static_cast<std::size_t>(step.threads());
  if (x.dtype == f16 || x.dtype == bf16) {
    s.scratch_floats = s.length * (s.inner == 1 ? 1 : HWY_DYNAMIC_DISPATCH(softmax_column_block)());
    s.scratch = step.scratch(s.threads * s.scratch_floats * sizeof(float));
  }
  constexpr bool kLog = std::is_same_v<Attributes, LogSoftmax>;
  step.launch(HWY_DYNAMIC_DISPATCH(softmax_function)(x.dtype, kLog, s.inner == 1), s);
}

}  // namespace

KernelList softmax_kernels() {
  static constexpr Kernel kKernels[] = {
      {.name = "softmax_rows",
       .op = &softmax_def,
       .accepts = accepts_softmax,
       .plan = plan_softmax<Softmax>,
       .in_place = 1},
      {.name = "log_softmax_rows",
       .op = &log_softmax_def,
       .accepts = accepts_softmax,
       .plan = plan_softmax<LogSoftmax>,
       .in_place = 1},
  };
  return kKernels;
}

}  // namespace rlx::cpu
#endif
