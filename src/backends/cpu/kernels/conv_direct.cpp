// Convolution row by row: each tap multiplies a row of windows. Depthwise convolutions, and all
// those in dtypes that the GEMM does not compute.

#include <algorithm>
#include <cmath>

#include "backends/cpu/accepts.h"
#include "backends/cpu/kernel.h"
#include "backends/cpu/kernels/fused_epilogue.h"
#include "backends/cpu/kernels/tile_epilogue.h"
#include "backends/cpu/kernels/window_lines.h"
#include "backends/cpu/parallel.h"
#include "compiler/fused.h"
#include "ops/conv.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/kernels/conv_direct.cpp"
#include <hwy/foreach_target.h>
// After foreach_target.h, which includes this file again for each instruction set.
#include "backends/cpu/kernels/window_lines-inl.h"

#ifndef RLX_CPU_CONV_DIRECT_STEP
#define RLX_CPU_CONV_DIRECT_STEP
namespace rlx::cpu {
namespace {

struct DirectConvStep {
  Buffer x, w, bias, residual, y, scratch;
  bool has_bias = false, has_residual = false;
  WindowLines lines;
  std::size_t batch = 0, groups = 1;
  std::size_t channels = 0, outputs = 0;  // of one group
  Epilogue epilogue;                      // float32 only
  std::size_t threads = 1, scratch_elements = 0;
};
constexpr std::size_t kVectorSlack = 16;
using DirectConvFunction = void (*)(const DirectConvStep&, const Run&) noexcept;

}  // namespace
}  // namespace rlx::cpu
#endif

HWY_BEFORE_NAMESPACE();
namespace rlx::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

/// Sums of one band of one output channel, [rows, pitch].
template <class T>
void convolve_band(const DirectConvStep& s, const Band& band, const T* x, const T* w,
                   Computed<T> bias, LineGatherer<T>& gatherer, Computed<T>* weights,
                   Computed<T>* sums) {
  const WindowLines& l = s.lines;
  const std::size_t taps = l.taps.size();
  const ComputeTag<T> d;
  if (s.channels == 0) std::fill_n(sums, l.out_elements(), bias);
  for (std::size_t c = 0; c < s.channels; ++c) {
    gatherer.gather(x + c * l.window.input_size(), band);
    map(w + c * taps, weights, taps, [](auto v, std::size_t, std::size_t) HWY_ATTR { return v; });
    sweep(
        l, band.rows, gatherer.lines(), sums, c == 0, bias,
        [&](std::size_t t) HWY_ATTR { return hn::Set(d, weights[t]); },
        [](auto sum, auto v, auto k) HWY_ATTR { return hn::MulAdd(v, k, sum); });
  }
}

/// Rows of `cols` that are `pitch` apart, one after the other. Writes up to a vector more.
inline void close_up(const float* from, std::size_t rows, std::size_t cols, std::size_t pitch,
                     float* to) {
  const hn::ScalableTag<float> d;
  for (std::size_t row = 0; row < rows; ++row, from += pitch, to += cols) {
    for (std::size_t i = 0; i < cols; i += hn::Lanes(d))
      hn::StoreU(hn::LoadU(d, from + i), d, to + i);
  }
}

/// Activation, clamp and residual of a band, which is one run of the output. Short rows are joined
/// first: the ends of rows cost more than their vectors.
inline void finish_band(const DirectConvStep& s, const Band& band, const Run& run,
                        EpilogueFunction epilogue, const float* sums, float* dense) {
  constexpr std::size_t kShortRow = 64;
  auto cols = static_cast<std::size_t>(s.lines.window.axes[2].output);
  auto pitch = static_cast<std::size_t>(s.lines.pitch);
  auto rows = static_cast<std::size_t>(band.rows);
  if (cols < kShortRow) {
    close_up(sums, rows, cols, pitch, dense);
    sums = dense;
    cols = pitch = rows * cols;
    rows = 1;
  }
  float* y = run.at<float>(s.y) + band.first;
  const float* residual = s.has_residual ? run.at<const float>(s.residual) + band.first : nullptr;
  epilogue({sums, pitch, y, cols, residual, cols, rows, cols, s.epilogue.clamp_low,
            s.epilogue.clamp_high});
}

template <class T>
void store_band(const DirectConvStep& s, const Band& band, const Run& run,
                const Computed<T>* sums) {
  const auto cols = static_cast<std::size_t>(s.lines.window.axes[2].output);
  const auto pitch = static_cast<std::size_t>(s.lines.pitch);
  T* y = run.at<T>(s.y) + band.first;
  for (std::size_t row = 0; row < static_cast<std::size_t>(band.rows); ++row)
    map(sums + row * pitch, y + row * cols, cols,
        [](auto v, std::size_t, std::size_t) HWY_ATTR { return v; });
}

template <class T>
void convolve_direct(const DirectConvStep& s, const Run& run) noexcept {
  using C = Computed<T>;
  Epilogue e = s.epilogue;
  if (s.has_residual) e.residual = run.at<const float>(s.residual);
  const EpilogueFunction epilogue = needs_second_pass(e) ? epilogue_function(e) : nullptr;
  const WindowLines& l = s.lines;
  const std::size_t all_outputs = s.groups * s.outputs;
  const std::size_t weights = s.channels * l.taps.size();
  const std::size_t cost = l.out_elements() * (weights + 4) / 8;
  C* scratch = run.at<C>(s.scratch);
  parallel_ranges(run, s.batch * all_outputs * bands_of_channel(l), cost, s.threads,
                  [&](std::size_t part, std::size_t begin, std::size_t end) noexcept {
                    C* sums = scratch + part * s.scratch_elements;
                    C* dense = sums + l.out_elements();
                    C* lines = dense + l.out_elements() + kVectorSlack;
                    LineGatherer<T> gatherer(l, C(0), lines);
                    for (std::size_t i = begin; i < end; ++i) {
                      const Band band = band_at(l, i);
                      const auto channel = static_cast<std::size_t>(band.channel);
                      const std::size_t output = channel % all_outputs;
                      const std::size_t group = channel / s.outputs;  // of all samples' groups
                      const T* x =
                          run.at<const T>(s.x) + group * s.channels * l.window.input_size();
                      const T* w = run.at<const T>(s.w) + output * weights;
                      const C bias = s.has_bias ? load_one(run.at<const T>(s.bias) + output) : C(0);
                      convolve_band(s, band, x, w, bias, gatherer, lines + l.line_elements(), sums);
                      if constexpr (std::is_same_v<T, float>) {
                        if (epilogue != nullptr) {
                          finish_band(s, band, run, epilogue, sums, dense);
                          continue;
                        }
                      }
                      store_band<T>(s, band, run, sums);
                    }
                  });
}

DirectConvFunction direct_conv_function(DType dtype) {
  return for_float(dtype, [](auto tag) -> DirectConvFunction {
    return convolve_direct<typename decltype(tag)::type>;
  });
}

}  // namespace rlx::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace rlx::cpu {
namespace {

HWY_EXPORT(direct_conv_function);

std::span<const std::int64_t> spatial(const Operand& x) { return std::span(x.dims).subspan(2); }

template <class Attributes>
void plan(StepBuilder& step, const Attributes& op, const Epilogue& epilogue) {
  const Operand& x = step.in(0);
  const Operand& w = step.in(1);
  const Operand& y = step.out();
  if (y.size() == 0) return;
  DirectConvStep s;
  s.lines = plan_lines(step, make_window({spatial(x), spatial(y), spatial(w), op.strides,
                                          op.padding_low, op.padding_high, op.dilations}));
  s.batch = static_cast<std::size_t>(x.dims[0]);
  s.groups = static_cast<std::size_t>(op.groups);
  s.channels = static_cast<std::size_t>(w.dims[1]);
  s.outputs = static_cast<std::size_t>(w.dims[0]) / s.groups;
  s.epilogue = epilogue;
  s.x = x.at;
  s.w = w.at;
  s.y = y.at;
  s.has_bias = step.has(2);
  if (s.has_bias) s.bias = step.in(2).at;
  s.has_residual = step.has(3);
  if (s.has_residual) s.residual = step.in(3).at;
  s.threads = static_cast<std::size_t>(step.threads());
  constexpr std::size_t kAlign = 64;
  s.scratch_elements = (2 * s.lines.out_elements() + kVectorSlack + s.lines.line_elements() +
                        s.lines.taps.size() + kAlign) /
                       kAlign * kAlign;
  const std::size_t element = x.dtype == DType::f64 ? sizeof(double) : sizeof(float);
  s.scratch = step.scratch(s.threads * s.scratch_elements * element);
  step.launch(HWY_DYNAMIC_DISPATCH(direct_conv_function)(x.dtype), s);
}

void plan_conv(StepBuilder& step) { plan(step, *step.node().as<Conv>(), {}); }

void plan_fused_conv(StepBuilder& step) {
  const auto& op = *step.node().as<FusedConv>();
  plan(step, op, epilogue_of(op));
}

Match accepts_conv(const Node& node) { return computes_float(node.type().dtype); }

Match accepts_fused_conv(const Node& node) {
  if (node.type().dtype == DType::f32) return {};
  return Match::no(fmt::format("takes f32, not {}", name(node.type().dtype)));
}

}  // namespace

KernelList conv_direct_kernels() {
  static constexpr Kernel kKernels[] = {
      {.name = "conv_rows", .op = &conv_def, .accepts = accepts_conv, .plan = plan_conv},
      {.name = "fused_conv_rows",
       .op = &fused_conv_def,
       .accepts = accepts_fused_conv,
       .plan = plan_fused_conv},
  };
  return kKernels;
}

}  // namespace rlx::cpu
#endif
