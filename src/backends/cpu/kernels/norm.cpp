#include "ops/norm.h"

#include <algorithm>
#include <cmath>

#include "backends/cpu/accepts.h"
#include "backends/cpu/kernel.h"
#include "backends/cpu/parallel.h"
#include "compiler/fused.h"
#include "ops/host_array.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/kernels/norm.cpp"
#include <hwy/foreach_target.h>
// After foreach_target.h, which includes this file again for each instruction set.
#include "backends/cpu/kernels/floats-inl.h"

#ifndef RLX_CPU_NORM_STEP
#define RLX_CPU_NORM_STEP
namespace rlx::cpu {
namespace {

/// Rows that are each normalised by their own statistics. A row is `channels` runs of `run`
/// elements; where `run` is 1 each element has its own scale, else each run has one.
struct NormStep {
  Buffer x, scale, bias, y;
  Buffer residual, sum;  ///< fused_add_norm: sum = x + residual is normalised
  bool has_scale = false, has_bias = false;
  std::size_t rows = 1, channels = 1, run = 1;
  std::size_t groups = 1;  ///< rows whose scales lie one after the other before they repeat
  double epsilon = 0;
  std::size_t threads = 1;
};
using NormFunction = void (*)(const NormStep&, const Run&) noexcept;

/// x [outer, channels, inner]
struct BatchNormStep {
  Buffer x, scale, bias, mean, variance, y;
  Buffer factor;  ///< scratch [channels]: scale / sqrt(variance + epsilon), in the computed type
  bool has_scale = false, has_bias = false;
  std::size_t outer = 1, channels = 1, inner = 1;
  double epsilon = 0;
  std::size_t threads = 1;
};
using BatchNormFunction = void (*)(const BatchNormStep&, const Run&) noexcept;

enum class NormKind { layer, rms, add_layer, add_rms, group };

/// Elements whose statistics are taken together, so that the passes over them stay in the L1 cache.
constexpr std::size_t kChunk = 4096;
/// The work of an element compared with plain arithmetic.
constexpr std::size_t kCost = 3;

/// Of a row so far: how many elements, their mean and the sum of squared distances from it.
struct Moments {
  double count = 0, mean = 0, squares = 0;

  /// Chan, Golub & LeVeque 1979: no difference of large sums.
  void add(const Moments& other) noexcept {
    const double total = count + other.count;
    const double distance = other.mean - mean;
    mean += distance * (other.count / total);
    squares += other.squares + distance * distance * (count * other.count / total);
    count = total;
  }
};

}  // namespace
}  // namespace rlx::cpu
#endif

HWY_BEFORE_NAMESPACE();
namespace rlx::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

/// Two passes: the mean, then distances from it. The mean's own rounding is made up for, as the sum
/// of the distances says how far off it is.
template <class T>
Moments chunk_moments(const T* x, std::size_t size) {
  const ComputeTag<T> d;
  const double count = static_cast<double>(size);
  const auto identity = [](auto v) HWY_ATTR { return v; };
  const Computed<T> mean = map_sum(x, size, identity) / static_cast<Computed<T>>(size);
  const auto centre = hn::Set(d, mean);
  auto off = hn::Zero(d), off2 = off, squares = off, squares2 = off;
  const std::size_t lanes = hn::Lanes(d);
  std::size_t i = 0;
  for (; i + 2 * lanes <= size; i += 2 * lanes) {
    const auto a = hn::Sub(load(d, x + i), centre);
    const auto b = hn::Sub(load(d, x + i + lanes), centre);
    off = hn::Add(off, a);
    off2 = hn::Add(off2, b);
    squares = hn::MulAdd(a, a, squares);
    squares2 = hn::MulAdd(b, b, squares2);
  }
  for (; i < size; i += lanes) {
    const std::size_t n = std::min(lanes, size - i);
    auto a = hn::Sub(load_at(d, x + i, 0, n), centre);
    if (n != lanes) a = hn::IfThenElseZero(hn::FirstN(d, n), a);
    off = hn::Add(off, a);
    squares = hn::MulAdd(a, a, squares);
  }
  const double total_off = hn::GetLane(hn::SumOfLanes(d, hn::Add(off, off2)));
  const double total_squares = hn::GetLane(hn::SumOfLanes(d, hn::Add(squares, squares2)));
  const double error = total_off / count;
  return {count, mean + error, total_squares - error * total_off};
}

template <class T>
Moments moments(const T* x, std::size_t size) {
  Moments all = chunk_moments(x, std::min(size, kChunk));
  for (std::size_t i = kChunk; i < size; i += kChunk)
    all.add(chunk_moments(x + i, std::min(kChunk, size - i)));
  return all;
}

template <class T>
double mean_square(const T* x, std::size_t size) {
  double total = 0;
  for (std::size_t i = 0; i < size; i += kChunk) {
    total +=
        map_sum(x + i, std::min(kChunk, size - i), [](auto v) HWY_ATTR { return hn::Mul(v, v); });
  }
  return total / static_cast<double>(size);
}

/// What brings a row to mean 0 and variance 1: (x - centre - rest)·factor. The mean has two parts,
/// as its rounding would show where it is large beside the deviation.
template <class C>
struct Standard {
  C centre, rest, factor;
};

template <bool kRms, class T>
Standard<Computed<T>> standard_of(const T* x, std::size_t size, double epsilon) {
  using C = Computed<T>;
  if constexpr (kRms) {
    return {0, 0, static_cast<C>(1 / std::sqrt(mean_square(x, size) + epsilon))};
  } else {
    const Moments m = moments(x, size);
    const C centre = static_cast<C>(m.mean);
    const double variance = std::max(m.squares / m.count, 0.0);
    const bool is_nan = std::isnan(m.squares);
    return {centre, static_cast<C>(m.mean - static_cast<double>(centre)),
            static_cast<C>(1 / std::sqrt((is_nan ? m.squares : variance) + epsilon))};
  }
}

/// y = standard(x)·scale + bias, elementwise, for one row.
template <bool kRms, bool kScale, bool kBias, class T>
HWY_INLINE void affine_row(const T* x, const T* scale, const T* bias, T* y, std::size_t size,
                           const Standard<Computed<T>>& s) {
  const ComputeTag<T> d;
  const auto centre = hn::Set(d, s.centre), rest = hn::Set(d, s.rest);
  const auto factor = hn::Set(d, s.factor);
  map(x, y, size, [&](auto v, std::size_t i, std::size_t n) HWY_ATTR {
    if constexpr (!kRms) v = hn::Sub(hn::Sub(v, centre), rest);
    v = hn::Mul(v, factor);
    if constexpr (kScale && kBias) {
      return hn::MulAdd(v, load_at(d, scale, i, n), load_at(d, bias, i, n));
    } else if constexpr (kScale) {
      return hn::Mul(v, load_at(d, scale, i, n));
    } else if constexpr (kBias) {
      return hn::Add(v, load_at(d, bias, i, n));
    } else {
      return v;
    }
  });
}

template <bool kRms, class T>
void normalise_row(const T* x, const T* scale, const T* bias, T* y, std::size_t size,
                   double epsilon) {
  const Standard<Computed<T>> s = standard_of<kRms>(x, size, epsilon);
  if (scale && bias) return affine_row<kRms, true, true>(x, scale, bias, y, size, s);
  if (scale) return affine_row<kRms, true, false>(x, scale, bias, y, size, s);
  if (bias) return affine_row<kRms, false, true>(x, scale, bias, y, size, s);
  affine_row<kRms, false, false>(x, scale, bias, y, size, s);
}

template <class T>
void add_rows(const T* x, const T* residual, T* sum, std::size_t size) {
  const ComputeTag<T> d;
  map(x, sum, size, [&](auto v, std::size_t i, std::size_t n) HWY_ATTR {
    return hn::Add(v, load_at(d, residual, i, n));
  });
}

/// Layer and RMS norm, and with kAdd of x + residual, which is rounded to the dtype first.
template <bool kRms, bool kAdd, class T>
void norm_rows(const NormStep& s, const Run& run) noexcept {
  const T* x = run.at<const T>(s.x);
  const T* scale = s.has_scale ? run.at<const T>(s.scale) : nullptr;
  const T* bias = s.has_bias ? run.at<const T>(s.bias) : nullptr;
  T* y = run.at<T>(s.y);
  const std::size_t size = s.channels;
  parallel_ranges(run, s.rows, size * kCost, s.threads,
                  [&](std::size_t, std::size_t begin, std::size_t end) {
                    for (std::size_t r = begin; r < end; ++r) {
                      const T* from = x + r * size;
                      if constexpr (kAdd) {
                        T* sum = run.at<T>(s.sum) + r * size;
                        add_rows(from, run.at<const T>(s.residual) + r * size, sum, size);
                        from = sum;
                      }
                      normalise_row<kRms>(from, scale, bias, y + r * size, size, s.epsilon);
                    }
                  });
}

/// One run of elements that share a scale and a bias.
template <class T>
void affine_run(const T* x, T* y, std::size_t size, const Standard<Computed<T>>& s,
                Computed<T> scale, Computed<T> bias) {
  const ComputeTag<T> d;
  const auto centre = hn::Set(d, s.centre), rest = hn::Set(d, s.rest);
  const auto factor = hn::Set(d, s.factor * scale), shift = hn::Set(d, bias);
  map(x, y, size, [&](auto v, std::size_t, std::size_t) HWY_ATTR {
    return hn::MulAdd(hn::Sub(hn::Sub(v, centre), rest), factor, shift);
  });
}

template <class T>
void group_norm_rows(const NormStep& s, const Run& run) noexcept {
  const T* x = run.at<const T>(s.x);
  T* y = run.at<T>(s.y);
  const std::size_t size = s.channels * s.run;
  parallel_ranges(
      run, s.rows, size * kCost, s.threads, [&](std::size_t, std::size_t begin, std::size_t end) {
        for (std::size_t r = begin; r < end; ++r) {
          const T* from = x + r * size;
          const auto standard = standard_of<false>(from, size, s.epsilon);
          const std::size_t first = r % s.groups * s.channels;
          for (std::size_t c = 0; c < s.channels; ++c) {
            const Computed<T> scale =
                s.has_scale ? load_one(run.at<const T>(s.scale) + first + c) : 1;
            const Computed<T> bias = s.has_bias ? load_one(run.at<const T>(s.bias) + first + c) : 0;
            affine_run(from + c * s.run, y + r * size + c * s.run, s.run, standard, scale, bias);
          }
        }
      });
}

NormFunction norm_function(DType dtype, NormKind kind) {
  return for_float(dtype, [&](auto tag) -> NormFunction {
    using T = typename decltype(tag)::type;
    switch (kind) {
      case NormKind::layer:
        return norm_rows<false, false, T>;
      case NormKind::rms:
        return norm_rows<true, false, T>;
      case NormKind::add_layer:
        return norm_rows<false, true, T>;
      case NormKind::add_rms:
        return norm_rows<true, true, T>;
      case NormKind::group:
        return group_norm_rows<T>;
    }
    return nullptr;
  });
}

// ---- batch norm

template <class T>
void batch_norm_factors(const BatchNormStep& s, const Run& run) noexcept {
  const T* variance = run.at<const T>(s.variance);
  auto* factor = run.at<Computed<T>>(s.factor);
  for (std::size_t c = 0; c < s.channels; ++c) {
    const double scale = s.has_scale ? load_one(run.at<const T>(s.scale) + c) : 1;
    factor[c] = static_cast<Computed<T>>(scale / std::sqrt(load_one(variance + c) + s.epsilon));
  }
}

/// Channels side by side in a row.
template <class T>
void batch_norm_row(const T* x, const T* mean, const T* bias, const Computed<T>* factor, T* y,
                    std::size_t size) {
  const ComputeTag<T> d;
  map(x, y, size, [&](auto v, std::size_t i, std::size_t n) HWY_ATTR {
    const auto shift = bias ? load_at(d, bias, i, n) : hn::Zero(d);
    return hn::MulAdd(hn::Sub(v, load_at(d, mean, i, n)), load_at(d, factor, i, n), shift);
  });
}

template <class T>
void batch_norm_rows(const BatchNormStep& s, const Run& run) noexcept {
  const T* x = run.at<const T>(s.x);
  T* y = run.at<T>(s.y);
  const T* mean = run.at<const T>(s.mean);
  const T* bias = s.has_bias ? run.at<const T>(s.bias) : nullptr;
  const auto* factor = run.at<const Computed<T>>(s.factor);
  if (s.inner == 1) {
    parallel_ranges(run, s.outer, s.channels, s.threads,
                    [&](std::size_t, std::size_t begin, std::size_t end) {
                      for (std::size_t r = begin; r < end; ++r) {
                        const std::size_t at = r * s.channels;
                        batch_norm_row(x + at, mean, bias, factor, y + at, s.channels);
                      }
                    });
    return;
  }
  parallel_ranges(run, s.outer * s.channels, s.inner, s.threads,
                  [&](std::size_t, std::size_t begin, std::size_t end) {
                    for (std::size_t r = begin; r < end; ++r) {
                      const std::size_t c = r % s.channels;
                      const Standard<Computed<T>> standard = {load_one(mean + c), 0, factor[c]};
                      affine_run(x + r * s.inner, y + r * s.inner, s.inner, standard,
                                 Computed<T>(1), bias ? load_one(bias + c) : Computed<T>(0));
                    }
                  });
}

BatchNormFunction batch_norm_factors_function(DType dtype) {
  return for_float(dtype, [](auto tag) -> BatchNormFunction {
    return batch_norm_factors<typename decltype(tag)::type>;
  });
}
BatchNormFunction batch_norm_function(DType dtype) {
  return for_float(dtype, [](auto tag) -> BatchNormFunction {
    return batch_norm_rows<typename decltype(tag)::type>;
  });
}

}  // namespace rlx::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace rlx::cpu {
namespace {

HWY_EXPORT(norm_function);
HWY_EXPORT(batch_norm_factors_function);
HWY_EXPORT(batch_norm_function);

/// All operands are of one dtype that vectors compute.
Match accepts_norm(const Node& node) {
  const DType dtype = node.input(0).dtype();
  for (const Value v : node.inputs()) {
    if (v && v.dtype() != dtype)
      return Match::no(fmt::format("operands of {} and {}", name(dtype), name(v.dtype())));
  }
  return computes_float(dtype);
}

std::size_t product(std::span<const std::int64_t> dims) {
  std::size_t count = 1;
  for (const std::int64_t d : dims) count *= static_cast<std::size_t>(d);
  return count;
}

NormStep norm_step(StepBuilder& step, std::size_t scale_input) {
  NormStep s;
  s.x = step.in(0).at;
  s.y = step.out().at;
  s.has_scale = step.has(scale_input);
  if (s.has_scale) s.scale = step.in(scale_input).at;
  s.has_bias = step.has(scale_input + 1);
  if (s.has_bias) s.bias = step.in(scale_input + 1).at;
  s.threads = static_cast<std::size_t>(step.threads());
  return s;
}

void launch_rows(StepBuilder& step, NormStep s, std::size_t axis, NormKind kind) {
  const Operand& x = step.in(0);
  if (x.size() == 0) return;
  s.rows = product(std::span(x.dims).first(axis));
  s.channels = product(std::span(x.dims).subspan(axis));
  step.launch(HWY_DYNAMIC_DISPATCH(norm_function)(x.dtype, kind), s);
}

void plan_layer_norm(StepBuilder& step) {
  const auto& op = *step.node().as<LayerNorm>();
  NormStep s = norm_step(step, 1);
  s.epsilon = op.epsilon;
  launch_rows(step, s, static_cast<std::size_t>(op.axis), NormKind::layer);
}

void plan_rms_norm(StepBuilder& step) {
  const auto& op = *step.node().as<RmsNorm>();
  NormStep s = norm_step(step, 1);
  s.epsilon = op.epsilon;
  launch_rows(step, s, static_cast<std::size_t>(op.axis), NormKind::rms);
}

void plan_fused_add_norm(StepBuilder& step) {
  const auto& op = *step.node().as<FusedAddNorm>();
  NormStep s = norm_step(step, 2);
  s.residual = step.in(1).at;
  s.sum = step.out(1).at;
  s.epsilon = op.epsilon;
  launch_rows(step, s, step.in(0).rank() - 1, op.rms ? NormKind::add_rms : NormKind::add_layer);
}

void plan_group_norm(StepBuilder& step) {
  const auto& op = *step.node().as<GroupNorm>();
  const Operand& x = step.in(0);
  if (x.size() == 0) return;
  NormStep s = norm_step(step, 1);
  s.epsilon = op.epsilon;
  s.groups = static_cast<std::size_t>(op.groups);
  s.rows = static_cast<std::size_t>(x.dims[0]) * s.groups;
  s.channels = static_cast<std::size_t>(x.dims[1]) / s.groups;
  s.run = product(std::span(x.dims).subspan(2));
  step.launch(HWY_DYNAMIC_DISPATCH(norm_function)(x.dtype, NormKind::group), s);
}

void plan_batch_norm(StepBuilder& step) {
  const auto& op = *step.node().as<BatchNorm>();
  const Operand& x = step.in(0);
  if (x.size() == 0) return;
  const AxisView view = fold_axis(x.dims, op.axis);
  BatchNormStep s;
  s.x = x.at;
  s.y = step.out().at;
  s.has_scale = step.has(1);
  if (s.has_scale) s.scale = step.in(1).at;
  s.has_bias = step.has(2);
  if (s.has_bias) s.bias = step.in(2).at;
  s.mean = step.in(3).at;
  s.variance = step.in(4).at;
  s.outer = static_cast<std::size_t>(view.outer);
  s.channels = static_cast<std::size_t>(view.length);
  s.inner = static_cast<std::size_t>(view.inner);
  s.epsilon = op.epsilon;
  s.threads = static_cast<std::size_t>(step.threads());
  s.factor = step.scratch(s.channels * sizeof(double));
  step.launch(HWY_DYNAMIC_DISPATCH(batch_norm_factors_function)(x.dtype), s);
  step.launch(HWY_DYNAMIC_DISPATCH(batch_norm_function)(x.dtype), s);
}

}  // namespace

KernelList norm_kernels() {
  static constexpr Kernel kKernels[] = {
      {.name = "layer_norm_rows",
       .op = &layer_norm_def,
       .accepts = accepts_norm,
       .plan = plan_layer_norm,
       .in_place = 1},
      {.name = "rms_norm_rows",
       .op = &rms_norm_def,
       .accepts = accepts_norm,
       .plan = plan_rms_norm,
       .in_place = 1},
      {.name = "add_norm_rows",
       .op = &fused_add_norm_def,
       .accepts = accepts_norm,
       .plan = plan_fused_add_norm,
       .in_place = 3},
      {.name = "group_norm_rows",
       .op = &group_norm_def,
       .accepts = accepts_norm,
       .plan = plan_group_norm,
       .in_place = 1},
      {.name = "batch_norm_rows",
       .op = &batch_norm_def,
       .accepts = accepts_norm,
       .plan = plan_batch_norm,
       .in_place = 1},
  };
  return kKernels;
}

}  // namespace rlx::cpu
#endif
