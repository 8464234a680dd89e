#include "ops/reduce.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <complex>
#include <limits>

#include "backends/cpu/accepts.h"
#include "backends/cpu/kernel.h"
#include "backends/cpu/parallel.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/kernels/reduce.cpp"
#include <hwy/foreach_target.h>
// After foreach_target.h, which includes this file again for each instruction set.
#include "backends/cpu/kernels/floats-inl.h"

#ifndef RLX_CPU_REDUCE_STEP
#define RLX_CPU_REDUCE_STEP
namespace rlx::cpu {
namespace {

constexpr std::size_t kMaxAxes = 8;

/// Some axes of a row-major tensor, walked in order.
struct Walk {
  std::size_t count = 1;
  std::size_t axes = 0;
  std::array<std::size_t, kMaxAxes> extents{};
  std::array<std::size_t, kMaxAxes> strides{};

  void push(std::size_t extent, std::size_t stride) {
    extents[axes] = extent;
    strides[axes++] = stride;
    count *= extent;
  }
  /// Offset of the i-th position.
  std::size_t at(std::size_t i) const noexcept {
    std::size_t offset = 0;
    for (std::size_t axis = axes; axis-- > 1;) {
      offset += i % extents[axis] * strides[axis];
      i /= extents[axis];
    }
    return axes == 0 ? 0 : offset + i * strides[0];
  }
};

/// A reduction in chunks of fixed size, whose results (`partials`) are then combined pairwise: the
/// order of operations depends on the shape alone, whoever computes which chunk.
///
/// A line is the last axis, contiguous; the others are `kept` or `reduced`. If the last axis is
/// reduced too, an output is made of lines and partials are [chunk, output]; else of columns, and
/// they are [kept, chunk, column].
struct ReduceStep {
  Buffer x, y;
  Buffer partials;  ///< in the computed type
  bool lines_are_reduced = true;
  Walk kept, reduced;
  std::size_t line = 1;
  std::size_t chunks = 1;
  std::size_t pieces = 1;  ///< chunks in a line, where that is longer than a chunk
  std::size_t lines = 1;   ///< lines in a chunk else
  double divisor = 1;      ///< of the combined result
  std::size_t threads = 1;
};
using ReduceFunction = void (*)(const ReduceStep&, const Run&) noexcept;

/// The two halves of a reduction; `finish` combines the partials.
struct ReduceFunctions {
  ReduceFunction chunks = nullptr, finish = nullptr;
};

constexpr std::size_t kChunk = 4096;        ///< elements of a line that one chunk takes at most
constexpr std::size_t kRows = 128;          ///< lines in a chunk of columns
constexpr std::size_t kColumnBlock = 1024;  ///< columns that one task takes

struct SumOf {};
struct ProductOf {};
struct GreatestOf {};
struct LeastOf {};

template <class Op, class T>
constexpr T identity_of() {
  using Limits = std::numeric_limits<T>;
  if constexpr (std::is_same_v<Op, GreatestOf>)
    return Limits::has_infinity ? -Limits::infinity() : Limits::lowest();
  if constexpr (std::is_same_v<Op, LeastOf>)
    return Limits::has_infinity ? Limits::infinity() : Limits::max();
  return std::is_same_v<Op, ProductOf> ? T(1) : T(0);
}

/// Integers wrap; NaN wins over every number.
template <class Op, class T>
T combine(T a, T b) {
  if constexpr (std::is_same_v<Op, GreatestOf>) return a != a || a > b ? a : b;
  if constexpr (std::is_same_v<Op, LeastOf>) return a != a || a < b ? a : b;
  if constexpr (std::is_integral_v<T>) {
    const auto x = static_cast<std::uint64_t>(a), y = static_cast<std::uint64_t>(b);
    return static_cast<T>(std::is_same_v<Op, ProductOf> ? x * y : x + y);
  } else {
    return std::is_same_v<Op, ProductOf> ? a * b : a + b;
  }
}

}  // namespace
}  // namespace rlx::cpu
#endif

HWY_BEFORE_NAMESPACE();
namespace rlx::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

/// Elements of type T as vectors in which `Op` combines them.
template <class Op, class T>
struct Vectors {
  using C = std::conditional_t<kIsNarrow<T> && !std::is_integral_v<T>, float, T>;
  using D = hn::ScalableTag<C>;
  using V = hn::Vec<D>;

  static HWY_INLINE std::size_t lanes() { return hn::Lanes(D()); }
  static HWY_INLINE V identity() { return hn::Set(D(), identity_of<Op, C>()); }
  static HWY_INLINE V load(const T* p) { return read(p); }
  /// The first `count` lanes, the identity in the others.
  static HWY_INLINE V load_part(const T* p, std::size_t count) {
    HWY_ALIGN T buffer[hn::MaxLanes(D())] = {};
    std::memcpy(buffer, p, count * sizeof(T));
    return hn::IfThenElse(hn::FirstN(D(), count), read(buffer), identity());
  }
  static HWY_INLINE V load_result(const C* p) { return hn::LoadU(D(), p); }
  static HWY_INLINE void store_result(V v, C* p) { hn::StoreU(v, D(), p); }

  static HWY_INLINE V combined(V a, V b) {
    if constexpr (std::is_same_v<Op, SumOf>) return hn::Add(a, b);
    if constexpr (std::is_same_v<Op, ProductOf>) return hn::Mul(a, b);
    if constexpr (std::is_integral_v<C>) {
      if constexpr (std::is_same_v<Op, GreatestOf>) return hn::Max(a, b);
      if constexpr (std::is_same_v<Op, LeastOf>) return hn::Min(a, b);
    } else {
      // x86's instructions return their second operand if either is NaN.
      if constexpr (std::is_same_v<Op, GreatestOf>)
        return hn::IfThenElse(hn::IsNaN(b), b, hn::Max(b, a));
      if constexpr (std::is_same_v<Op, LeastOf>)
        return hn::IfThenElse(hn::IsNaN(b), b, hn::Min(b, a));
    }
  }
  static HWY_INLINE C total(V v) {
    if constexpr (std::is_same_v<Op, SumOf> && std::is_floating_point_v<C>) {
      return hn::GetLane(hn::SumOfLanes(D(), v));
    } else {
      HWY_ALIGN C lane[hn::MaxLanes(D())];
      hn::Store(v, D(), lane);
      for (std::size_t half = lanes() / 2; half > 0; half /= 2) {
        for (std::size_t i = 0; i < half; ++i) lane[i] = combine<Op>(lane[i], lane[i + half]);
      }
      return lane[0];
    }
  }

 private:
  static HWY_INLINE V read(const T* p) {
    if constexpr (std::is_integral_v<T>) {
      return hn::LoadU(D(), p);
    } else {
      return HWY_NAMESPACE::load(D(), p);
    }
  }
};

/// The same interface for types without the vector operation: vectors of one element.
template <class Op, class T>
struct Scalars {
  using C = T;
  using V = T;
  static constexpr std::size_t lanes() { return 1; }
  static V identity() { return identity_of<Op, T>(); }
  static V load(const T* p) { return *p; }
  static V load_part(const T*, std::size_t) { return identity(); }
  static V load_result(const C* p) { return *p; }
  static void store_result(V v, C* p) { *p = v; }
  static V combined(V a, V b) { return combine<Op>(a, b); }
  static C total(V v) { return v; }
};

template <class L, class T>
struct LineAccumulators {
  typename L::V a, b, c, d;

  LineAccumulators() { a = b = c = d = L::identity(); }  // an implicit one lacks the target

  void add(const T* x, std::size_t size) {
    const std::size_t lanes = L::lanes();
    std::size_t i = 0;
    for (; i + 4 * lanes <= size; i += 4 * lanes) {
      a = L::combined(a, L::load(x + i));
      b = L::combined(b, L::load(x + i + lanes));
      c = L::combined(c, L::load(x + i + 2 * lanes));
      d = L::combined(d, L::load(x + i + 3 * lanes));
    }
    for (; i + lanes <= size; i += lanes) a = L::combined(a, L::load(x + i));
    if (i < size) b = L::combined(b, L::load_part(x + i, size - i));
  }
  typename L::C total() const {
    return L::total(L::combined(L::combined(a, b), L::combined(c, d)));
  }
};

template <class L, class T>
typename L::C chunk_of_lines(const ReduceStep& s, const T* x, std::size_t chunk) {
  LineAccumulators<L, T> sums;
  if (s.pieces > 1) {
    const std::size_t first = chunk % s.pieces * kChunk;
    sums.add(x + s.reduced.at(chunk / s.pieces) + first, std::min(kChunk, s.line - first));
    return sums.total();
  }
  const std::size_t end = std::min((chunk + 1) * s.lines, s.reduced.count);
  for (std::size_t i = chunk * s.lines; i < end; ++i) sums.add(x + s.reduced.at(i), s.line);
  return sums.total();
}

template <class L, class T>
void reduce_lines(const ReduceStep& s, const Run& run) noexcept {
  const T* x = run.at<const T>(s.x);
  auto* partials = run.at<typename L::C>(s.partials);
  const std::size_t outputs = s.kept.count;
  parallel_ranges(run, outputs * s.chunks, std::min(s.line, kChunk) * s.lines, s.threads,
                  [&](std::size_t, std::size_t begin, std::size_t end) {
                    for (std::size_t i = begin; i < end; ++i) {
                      partials[i] = chunk_of_lines<L>(s, x + s.kept.at(i % outputs), i / outputs);
                    }
                  });
}

/// Adds four lines, or one, to the accumulators of their columns.
template <class L, std::size_t kLines, class T>
void add_lines(const T* const (&x)[kLines], typename L::C* sums, std::size_t size) {
  const auto add = [&](auto sum, auto&& load) HWY_ATTR {
    if constexpr (kLines == 4) {
      return L::combined(sum, L::combined(L::combined(load(x[0]), load(x[1])),
                                          L::combined(load(x[2]), load(x[3]))));
    } else {
      return L::combined(sum, load(x[0]));
    }
  };
  const std::size_t lanes = L::lanes();
  std::size_t j = 0;
  for (; j + lanes <= size; j += lanes) {
    const auto load = [&](const T* p) HWY_ATTR { return L::load(p + j); };
    L::store_result(add(L::load_result(sums + j), load), sums + j);
  }
  if (j == size) return;
  const auto load = [&](const T* p) HWY_ATTR { return L::load_part(p + j, size - j); };
  HWY_ALIGN typename L::C rest[HWY_MAX_BYTES / sizeof(typename L::C)] = {};
  std::memcpy(static_cast<void*>(rest), sums + j, (size - j) * sizeof(*sums));
  L::store_result(add(L::load_result(rest), load), rest);
  std::memcpy(static_cast<void*>(sums + j), rest, (size - j) * sizeof(*sums));
}

template <class L, class T>
void chunk_of_columns(const ReduceStep& s, const T* x, typename L::C* sums, std::size_t chunk,
                      std::size_t columns) {
  std::fill_n(sums, columns, L::total(L::identity()));
  const std::size_t end = std::min((chunk + 1) * kRows, s.reduced.count);
  std::size_t i = chunk * kRows;
  for (; i + 4 <= end; i += 4) {
    const T* const four[4] = {x + s.reduced.at(i), x + s.reduced.at(i + 1), x + s.reduced.at(i + 2),
                              x + s.reduced.at(i + 3)};
    add_lines<L>(four, sums, columns);
  }
  for (; i < end; ++i) {
    const T* const one[1] = {x + s.reduced.at(i)};
    add_lines<L>(one, sums, columns);
  }
}

template <class L, class T>
void reduce_columns(const ReduceStep& s, const Run& run) noexcept {
  const T* x = run.at<const T>(s.x);
  auto* partials = run.at<typename L::C>(s.partials);
  const std::size_t blocks = (s.line + kColumnBlock - 1) / kColumnBlock;
  const std::size_t cost =
      std::min(s.line, kColumnBlock) * std::min<std::size_t>(kRows, s.reduced.count);
  parallel_ranges(run, s.kept.count * s.chunks * blocks, cost, s.threads,
                  [&](std::size_t, std::size_t begin, std::size_t end) {
                    for (std::size_t i = begin; i < end; ++i) {
                      const std::size_t first = i % blocks * kColumnBlock;
                      const std::size_t chunk = i / blocks % s.chunks;
                      const std::size_t kept = i / blocks / s.chunks;
                      chunk_of_columns<L>(s, x + s.kept.at(kept) + first,
                                          partials + i / blocks * s.line + first, chunk,
                                          std::min(kColumnBlock, s.line - first));
                    }
                  });
}

/// All partials of one output, `stride` apart.
template <class Op, class C>
C pairwise(const C* partials, std::size_t stride, std::size_t count) {
  if (count == 1) return *partials;
  const std::size_t half = count / 2;
  return combine<Op>(pairwise<Op>(partials, stride, half),
                     pairwise<Op>(partials + half * stride, stride, count - half));
}

template <class Op, class T>
void finish_reduction(const ReduceStep& s, const Run& run) noexcept {
  using C = typename Vectors<Op, T>::C;
  const auto* partials = run.at<const C>(s.partials);
  T* y = run.at<T>(s.y);
  const std::size_t width = s.lines_are_reduced ? s.kept.count : s.line;
  const std::size_t outputs = s.lines_are_reduced ? width : s.kept.count * width;
  parallel_ranges(run, outputs, s.chunks, s.threads,
                  [&](std::size_t, std::size_t begin, std::size_t end) {
                    for (std::size_t i = begin; i < end; ++i) {
                      const C* first = partials + i / width * s.chunks * width + i % width;
                      C total = pairwise<Op>(first, width, s.chunks);
                      if constexpr (std::is_floating_point_v<C>) {
                        if (s.divisor != 1) total /= static_cast<C>(s.divisor);
                        store_one(total, y + i);
                      } else {
                        y[i] = total;
                      }
                    }
                  });
}

template <class Op, class T, class L = Vectors<Op, T>>
ReduceFunctions functions_of(bool lines) {
  return {lines ? reduce_lines<L, T> : reduce_columns<L, T>, finish_reduction<Op, T>};
}

template <class T>
ReduceFunctions extreme_functions(Reduction kind, bool lines) {
  return kind == Reduction::max ? functions_of<GreatestOf, T>(lines)
                                : functions_of<LeastOf, T>(lines);
}

template <class T>
ReduceFunctions product_functions(bool lines) {
  return functions_of<ProductOf, T, Scalars<ProductOf, T>>(lines);
}

/// Sums and products wrap alike for signed and unsigned integers.
template <class Signed, class Unsigned>
ReduceFunctions integer_functions(bool is_signed, Reduction kind, bool lines) {
  if (kind == Reduction::sum) return functions_of<SumOf, Unsigned>(lines);
  if (kind == Reduction::prod) return product_functions<Unsigned>(lines);
  return is_signed ? extreme_functions<Signed>(kind, lines)
                   : extreme_functions<Unsigned>(kind, lines);
}

template <class T>
ReduceFunctions float_functions(Reduction kind, bool lines) {
  if (kind == Reduction::sum || kind == Reduction::mean) return functions_of<SumOf, T>(lines);
  if (kind == Reduction::prod) return functions_of<ProductOf, T>(lines);
  return extreme_functions<T>(kind, lines);
}

ReduceFunctions reduce_functions(DType dtype, Reduction kind, bool lines) {
  if (is_computed_float(dtype)) {
    return for_float(dtype, [&](auto tag) {
      return float_functions<typename decltype(tag)::type>(kind, lines);
    });
  }
  if (dtype == DType::c64) return product_functions<std::complex<float>>(lines);
  if (dtype == DType::c128) return product_functions<std::complex<double>>(lines);
  const bool is_signed = is_signed_integer(dtype);
  switch (traits(dtype).bits) {
    case 8:
      return integer_functions<std::int8_t, std::uint8_t>(is_signed, kind, lines);
    case 16:
      return integer_functions<std::int16_t, std::uint16_t>(is_signed, kind, lines);
    case 32:
      return integer_functions<std::int32_t, std::uint32_t>(is_signed, kind, lines);
    default:
      return integer_functions<std::int64_t, std::uint64_t>(is_signed, kind, lines);
  }
}

}  // namespace rlx::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace rlx::cpu {
namespace {

HWY_EXPORT(reduce_functions);

Match accepts_reduce(const Node& node) {
  const TensorType& x = node.input(0).type();
  const DTypeTraits& t = traits(x.dtype);
  if (x.rank() > 2 * kMaxAxes)
    return Match::no(fmt::format("rank {} is above {}", x.rank(), 2 * kMaxAxes));
  if (is_complex(x.dtype)) return {};
  if (is_integer(x.dtype) && t.bits >= 8) return {};
  return computes_float(x.dtype);
}

struct Axis {
  std::size_t extent;
  bool reduced;
};

/// The axes without those of extent 1, neighbours of a kind joined; one at least.
std::vector<Axis> collapsed_axes(std::span<const std::int64_t> dims,
                                 const std::vector<std::int64_t>& reduced) {
  std::vector<Axis> axes;
  for (std::size_t i = 0; i < dims.size(); ++i) {
    const Axis axis = {static_cast<std::size_t>(dims[i]),
                       std::ranges::count(reduced, static_cast<std::int64_t>(i)) != 0};
    if (axis.extent == 1) continue;
    if (!axes.empty() && axes.back().reduced == axis.reduced) {
      axes.back().extent *= axis.extent;
    } else {
      axes.push_back(axis);
    }
  }
  if (axes.empty()) axes.push_back({1, false});
  return axes;
}

ReduceStep lay_out(const std::vector<Axis>& axes) {
  ReduceStep s;
  s.line = axes.back().extent;
  s.lines_are_reduced = axes.back().reduced;
  std::size_t stride = 1;
  for (const Axis& axis : axes) stride *= axis.extent;
  for (std::size_t i = 0; i + 1 < axes.size(); ++i) {
    stride = axes[i].extent == 0 ? 0 : stride / axes[i].extent;
    (axes[i].reduced ? s.reduced : s.kept).push(axes[i].extent, stride);
  }
  const auto pieces_of = [](std::size_t size, std::size_t piece) {
    return std::max<std::size_t>(1, (size + piece - 1) / piece);
  };
  if (!s.lines_are_reduced) {
    s.chunks = pieces_of(s.reduced.count, kRows);
  } else if (s.line > kChunk) {
    s.pieces = pieces_of(s.line, kChunk);
    s.chunks = s.reduced.count * s.pieces;
  } else {
    s.lines = kChunk / std::max<std::size_t>(1, s.line);
    s.chunks = pieces_of(s.reduced.count, s.lines);
  }
  return s;
}

std::size_t computed_bytes(DType dtype) {
  return dtype == f16 || dtype == bf16 ? sizeof(float) : traits(dtype).block_bytes;
}

void plan_reduce(StepBuilder& step) {
  const Operand& x = step.in(0);
  const Operand& y = step.out();
  const auto& op = *step.node().as<Reduce>();
  if (y.size() == 0) return;
  DType dtype = x.dtype;
  std::vector<std::int64_t> dims = x.dims;
  if (is_complex(dtype) && op.kind != Reduction::prod) {  // two sums of real numbers
    dtype = dtype == DType::c64 ? f32 : f64;
    dims.push_back(2);
  }
  ReduceStep s = lay_out(collapsed_axes(dims, op.axes));
  s.x = x.at;
  s.y = y.at;
  s.threads = static_cast<std::size_t>(step.threads());
  if (op.kind == Reduction::mean)
    s.divisor = static_cast<double>(x.size()) / static_cast<double>(y.size());

  const bool direct = s.chunks == 1 && computed_bytes(dtype) == traits(dtype).block_bytes;
  const std::size_t outputs = s.kept.count * (s.lines_are_reduced ? 1 : s.line);
  s.partials = direct ? s.y : step.scratch(outputs * s.chunks * computed_bytes(dtype));
  const auto functions =
      HWY_DYNAMIC_DISPATCH(reduce_functions)(dtype, op.kind, s.lines_are_reduced);
  step.launch(functions.chunks, s);
  if (!direct || s.divisor != 1) step.launch(functions.finish, s);
}

}  // namespace

KernelList reduce_kernels() {
  static constexpr Kernel kKernels[] = {
      {.name = "reduce_chunks", .op = &reduce_def, .accepts = accepts_reduce, .plan = plan_reduce}};
  return kKernels;
}

}  // namespace rlx::cpu
#endif
