#include "ops/selection.h"

#include <algorithm>
#include <cmath>
#include <complex>
#include <limits>
#include <numeric>

#include "backends/cpu/accepts.h"
#include "backends/cpu/kernel.h"
#include "backends/cpu/parallel.h"
#include "ops/host_array.h"
#include "ops/number_formats.h"

namespace rlx::cpu {
namespace {

/// Operands as [outer, length, inner]; every (outer, inner) is a line of its own.
struct LinesStep {
  Buffer x, y;
  Buffer indices;  ///< of top_k: i64
  Buffer order;    ///< of top_k: scratch, `length` u32 for each thread
  std::size_t outer = 1, length = 1, inner = 1;
  std::size_t k = 0;
  bool select_last = false, exclusive = false, reverse = false;
  std::size_t threads = 1;
};
using LinesFunction = void (*)(const LinesStep&, const Run&) noexcept;

/// f16 numbers as codes that `value_of` reads.
float value_of(Half x) noexcept { return static_cast<float>(decode_float(f16, x.bits)); }
float value_of(BFloat16 x) noexcept { return to_float(x); }
template <class T>
T value_of(T x) noexcept {
  return x;
}
template <class T>
using ValueOf = decltype(value_of(T()));

/// Whether a is more extreme than b, NaN more than any number if `kNanFirst`.
template <bool kLargest, bool kNanFirst, class T>
bool comes_before(T a, T b) noexcept {
  if constexpr (std::is_floating_point_v<T>) {
    const bool a_nan = a != a, b_nan = b != b;
    if (a_nan || b_nan) return a_nan != b_nan && a_nan == kNanFirst;
  }
  return kLargest ? a > b : a < b;
}

/// Calls f(first, part) with the offset of each line's first element.
template <class F>
void for_lines(const LinesStep& s, const Run& run, F&& f) noexcept {
  parallel_ranges(run, s.outer * s.inner, s.length * 4, s.threads,
                  [&](std::size_t part, std::size_t begin, std::size_t end) {
                    for (std::size_t i = begin; i < end; ++i)
                      f(i, i / s.inner * s.length * s.inner + i % s.inner, part);
                  });
}

// ---- arg_reduce

template <bool kLargest, class T>
void arg_reduce(const LinesStep& s, const Run& run) noexcept {
  const T* x = run.at<const T>(s.x);
  auto* y = run.at<std::int64_t>(s.y);
  for_lines(s, run, [&](std::size_t line, std::size_t first, std::size_t) {
    std::size_t best = 0;
    ValueOf<T> value = value_of(x[first]);
    for (std::size_t k = 1; k < s.length; ++k) {
      const ValueOf<T> next = value_of(x[first + k * s.inner]);
      const bool wins = s.select_last ? !comes_before<kLargest, true>(value, next)
                                      : comes_before<kLargest, true>(next, value);
      if (!wins) continue;
      best = k;
      value = next;
    }
    y[line] = static_cast<std::int64_t>(best);
  });
}

// ---- top_k

/// Partial selection: O(length + k log k) a line. Ties go to the smaller index, so that the order
/// is total and the result the same however it is found.
template <bool kLargest, class T>
void top_k(const LinesStep& s, const Run& run) noexcept {
  const T* x = run.at<const T>(s.x);
  T* y = run.at<T>(s.y);
  auto* indices = run.at<std::int64_t>(s.indices);
  auto* scratch = run.at<std::uint32_t>(s.order);
  for_lines(s, run, [&](std::size_t line, std::size_t first, std::size_t part) {
    std::uint32_t* order = scratch + part * s.length;
    std::iota(order, order + s.length, 0U);
    const auto before = [&](std::uint32_t a, std::uint32_t b) {
      const ValueOf<T> u = value_of(x[first + a * s.inner]), v = value_of(x[first + b * s.inner]);
      if (comes_before<kLargest, kLargest>(u, v)) return true;
      return !comes_before<kLargest, kLargest>(v, u) && a < b;
    };
    if (s.k < s.length) std::nth_element(order, order + s.k, order + s.length, before);
    std::sort(order, order + s.k, before);
    const std::size_t to = line / s.inner * s.k * s.inner + line % s.inner;
    for (std::size_t k = 0; k < s.k; ++k) {
      y[to + k * s.inner] = x[first + order[k] * s.inner];
      indices[to + k * s.inner] = order[k];
    }
  });
}

// ---- cumulative

template <class T>
struct Wide {
  using type = T;
};
template <>
struct Wide<Half> {
  using type = float;
};
template <>
struct Wide<BFloat16> {
  using type = float;
};

template <class T>
T rounded(typename Wide<T>::type x) noexcept {
  if constexpr (std::is_same_v<T, Half>) {
    return {static_cast<std::uint16_t>(encode_float(f16, x))};
  } else if constexpr (std::is_same_v<T, BFloat16>) {
    return {static_cast<std::uint16_t>(encode_float(bf16, x))};
  } else {
    return x;
  }
}

struct SumOf {
  template <class T>
  static T first() {
    return T(0);
  }
  template <class T>
  static T combine(T a, T b) {
    if constexpr (std::is_integral_v<T>) {
      return static_cast<T>(static_cast<std::uint64_t>(a) + static_cast<std::uint64_t>(b));
    } else {
      return a + b;
    }
  }
};
struct ProductOf {
  template <class T>
  static T first() {
    return T(1);
  }
  template <class T>
  static T combine(T a, T b) {
    if constexpr (std::is_integral_v<T>) {
      return static_cast<T>(static_cast<std::uint64_t>(a) * static_cast<std::uint64_t>(b));
    } else {
      return a * b;
    }
  }
};
template <bool kLargest>
struct ExtremeOf {
  template <class T>
  static T first() {
    using Limits = std::numeric_limits<T>;
    if constexpr (Limits::has_infinity) return kLargest ? -Limits::infinity() : Limits::infinity();
    return kLargest ? Limits::lowest() : Limits::max();
  }
  template <class T>
  static T combine(T a, T b) {
    return a != a || (kLargest ? a > b : a < b) ? a : b;
  }
};

/// The running value of floats is a double, so that long lines stay accurate.
template <class C>
using Running = std::conditional_t<std::is_same_v<C, float>, double, C>;

template <class Op, class T>
void accumulate_lines(const LinesStep& s, const Run& run) noexcept {
  const T* x = run.at<const T>(s.x);
  T* y = run.at<T>(s.y);
  using C = typename Wide<T>::type;
  for_lines(s, run, [&](std::size_t, std::size_t first, std::size_t) {
    auto total = Op::template first<Running<C>>();
    for (std::size_t i = 0; i < s.length; ++i) {
      const std::size_t at = first + (s.reverse ? s.length - 1 - i : i) * s.inner;
      const auto before = total;
      total = Op::combine(total, static_cast<Running<C>>(value_of(x[at])));
      y[at] = rounded<T>(static_cast<C>(s.exclusive ? before : total));
    }
  });
}

template <class T>
LinesFunction cumulative_function(Accumulation kind) {
  if (kind == Accumulation::sum) return accumulate_lines<SumOf, T>;
  if (kind == Accumulation::prod) return accumulate_lines<ProductOf, T>;
  if constexpr (std::is_arithmetic_v<typename Wide<T>::type>) {
    return kind == Accumulation::max ? accumulate_lines<ExtremeOf<true>, T>
                                     : accumulate_lines<ExtremeOf<false>, T>;
  } else {
    return nullptr;
  }
}

// ---- planning

template <class T>
struct TypeTag {
  using type = T;
};

/// f(TypeTag<T>()) for the type in which a real dtype of whole bytes is stored.
template <class F>
LinesFunction for_stored(DType dtype, F&& f) {
  switch (dtype) {
    case DType::f64:
      return f(TypeTag<double>());
    case DType::f32:
      return f(TypeTag<float>());
    case DType::f16:
      return f(TypeTag<Half>());
    case DType::bf16:
      return f(TypeTag<BFloat16>());
    case DType::i64:
      return f(TypeTag<std::int64_t>());
    case DType::i32:
      return f(TypeTag<std::int32_t>());
    case DType::i16:
      return f(TypeTag<std::int16_t>());
    case DType::i8:
      return f(TypeTag<std::int8_t>());
    case DType::u64:
      return f(TypeTag<std::uint64_t>());
    case DType::u32:
      return f(TypeTag<std::uint32_t>());
    case DType::u16:
      return f(TypeTag<std::uint16_t>());
    default:
      return f(TypeTag<std::uint8_t>());
  }
}

Match accepts_real(const Node& node) {
  const DType dtype = node.input(0).dtype();
  if (is_integer(dtype) && traits(dtype).bits >= 8) return {};
  return computes_float(dtype);
}

Match accepts_cumulative(const Node& node) {
  return is_complex(node.input(0).dtype()) ? Match() : accepts_real(node);
}

LinesStep lines_step(const StepBuilder& step, std::int64_t axis) {
  const AxisView view = fold_axis(step.in(0).dims, axis);
  LinesStep s;
  s.x = step.in(0).at;
  s.y = step.out().at;
  s.outer = static_cast<std::size_t>(view.outer);
  s.length = static_cast<std::size_t>(view.length);
  s.inner = static_cast<std::size_t>(view.inner);
  s.threads = static_cast<std::size_t>(step.threads());
  return s;
}

void plan_arg_reduce(StepBuilder& step) {
  if (step.out().size() == 0) return;
  const auto& op = *step.node().as<ArgReduce>();
  LinesStep s = lines_step(step, op.axis);
  s.select_last = op.select_last;
  step.launch(for_stored(step.in(0).dtype,
                         [&](auto tag) -> LinesFunction {
                           using T = typename decltype(tag)::type;
                           return op.largest ? arg_reduce<true, T> : arg_reduce<false, T>;
                         }),
              s);
}

void plan_top_k(StepBuilder& step) {
  if (step.out().size() == 0) return;
  const auto& op = *step.node().as<TopK>();
  LinesStep s = lines_step(step, op.axis);
  s.indices = step.out(1).at;
  s.k = static_cast<std::size_t>(step.out().dims[static_cast<std::size_t>(op.axis)]);
  s.order = step.scratch(s.threads * s.length * sizeof(std::uint32_t));
  step.launch(for_stored(step.in(0).dtype,
                         [&](auto tag) -> LinesFunction {
                           using T = typename decltype(tag)::type;
                           return op.largest ? top_k<true, T> : top_k<false, T>;
                         }),
              s);
}

void plan_cumulative(StepBuilder& step) {
  if (step.out().size() == 0) return;
  const auto& op = *step.node().as<Cumulative>();
  LinesStep s = lines_step(step, op.axis);
  s.exclusive = op.exclusive;
  s.reverse = op.reverse;
  const DType dtype = step.in(0).dtype;
  if (dtype == DType::c64) return step.launch(cumulative_function<std::complex<float>>(op.kind), s);
  if (dtype == DType::c128)
    return step.launch(cumulative_function<std::complex<double>>(op.kind), s);
  step.launch(for_stored(dtype,
                         [&](auto tag) {
                           return cumulative_function<typename decltype(tag)::type>(op.kind);
                         }),
              s);
}

}  // namespace

KernelList selection_kernels() {
  static constexpr Kernel kKernels[] = {
      {.name = "arg_reduce_lines",
       .op = &arg_reduce_def,
       .accepts = accepts_real,
       .plan = plan_arg_reduce},
      {.name = "top_k_select", .op = &top_k_def, .accepts = accepts_real, .plan = plan_top_k},
      {.name = "cumulative_lines",
       .op = &cumulative_def,
       .accepts = accepts_cumulative,
       .plan = plan_cumulative,
       .in_place = 1},
  };
  return kKernels;
}

}  // namespace rlx::cpu
