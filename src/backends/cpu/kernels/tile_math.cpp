#include <cmath>
#include <limits>
#include <numbers>

#include "backends/cpu/kernels/tile.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/kernels/tile_math.cpp"
#include <hwy/foreach_target.h>
// After foreach_target.h, which includes this file again for each instruction set.
#include <hwy/highway.h>

#include "backends/cpu/kernels/tile_loops-inl.h"
#include "backends/cpu/kernels/vector_math-inl.h"
#include "backends/cpu/kernels/wide_math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace rlx::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;
namespace {

// Functors from functions of vectors: RLX_VECTOR_FUNCTION(Exp, exp) makes `Exp` call exp(d, x).
#define RLX_VECTOR_FUNCTION(Name, function)         \
  struct Name {                                     \
    template <class D, class... V>                  \
    HWY_INLINE auto operator()(D d, V... x) const { \
      return function(d, x...);                     \
    }                                               \
  };

RLX_VECTOR_FUNCTION(Exp, exp)
RLX_VECTOR_FUNCTION(Tanh, tanh)
RLX_VECTOR_FUNCTION(Erf, erf)
RLX_VECTOR_FUNCTION(Sigmoid, sigmoid)
RLX_VECTOR_FUNCTION(Gelu, gelu_erf)
RLX_VECTOR_FUNCTION(GeluTanh, gelu_tanh)
RLX_VECTOR_FUNCTION(Silu, silu)
RLX_VECTOR_FUNCTION(WideExpm1, wide::expm1)
RLX_VECTOR_FUNCTION(WideLog, wide::log)
RLX_VECTOR_FUNCTION(WideLog1p, wide::log1p)
RLX_VECTOR_FUNCTION(WideSin, wide::sin)
RLX_VECTOR_FUNCTION(WideCos, wide::cos)
RLX_VECTOR_FUNCTION(WideTan, wide::tan)
RLX_VECTOR_FUNCTION(WideAsin, wide::asin)
RLX_VECTOR_FUNCTION(WideAcos, wide::acos)
RLX_VECTOR_FUNCTION(WideAtan, wide::atan)
RLX_VECTOR_FUNCTION(WideSinh, wide::sinh)
RLX_VECTOR_FUNCTION(WideCosh, wide::cosh)
RLX_VECTOR_FUNCTION(WideAsinh, wide::asinh)
RLX_VECTOR_FUNCTION(WideAcosh, wide::acosh)
RLX_VECTOR_FUNCTION(WideAtanh, wide::atanh)
RLX_VECTOR_FUNCTION(WideSoftplus, wide::softplus)
RLX_VECTOR_FUNCTION(WideMish, wide::mish)
RLX_VECTOR_FUNCTION(WidePow, wide::pow)
RLX_VECTOR_FUNCTION(WideAtan2, wide::atan2)
RLX_VECTOR_FUNCTION(WideRemainder, wide::remainder)
RLX_VECTOR_FUNCTION(WideModulo, wide::modulo)
#undef RLX_VECTOR_FUNCTION

/// -softplus(-x).
struct WideLogSigmoid {
  template <class D, class V>
  HWY_INLINE V operator()(D d, V x) const {
    return hn::Neg(wide::softplus(d, hn::Neg(x)));
  }
};

template <class F>
constexpr TileFunction kNarrow = map1<float, F>;
template <class F>
constexpr TileFunction kWide1 = map1<float, wide::Widened<F>>;
template <class F>
constexpr TileFunction kWide2 = map2<float, wide::Widened<F>>;

TileFunction find_f32(const OpDef& op) {
  static constexpr TileRow kRows[] = {
      {&exp_def, kNarrow<Exp>},
      {&tanh_def, kNarrow<Tanh>},
      {&erf_def, kNarrow<Erf>},
      {&sigmoid_def, kNarrow<Sigmoid>},
      {&gelu_def, kNarrow<Gelu>},
      {&gelu_tanh_def, kNarrow<GeluTanh>},
      {&silu_def, kNarrow<Silu>},
      {&expm1_def, kWide1<WideExpm1>},
      {&log_def, kWide1<WideLog>},
      {&log1p_def, kWide1<WideLog1p>},
      {&sin_def, kWide1<WideSin>},
      {&cos_def, kWide1<WideCos>},
      {&tan_def, kWide1<WideTan>},
      {&asin_def, kWide1<WideAsin>},
      {&acos_def, kWide1<WideAcos>},
      {&atan_def, kWide1<WideAtan>},
      {&sinh_def, kWide1<WideSinh>},
      {&cosh_def, kWide1<WideCosh>},
      {&asinh_def, kWide1<WideAsinh>},
      {&acosh_def, kWide1<WideAcosh>},
      {&atanh_def, kWide1<WideAtanh>},
      {&softplus_def, kWide1<WideSoftplus>},
      {&mish_def, kWide1<WideMish>},
      {&log_sigmoid_def, kWide1<WideLogSigmoid>},
      {&pow_def, kWide2<WidePow>},
      {&atan2_def, kWide2<WideAtan2>},
      {&remainder_def, kWide2<WideRemainder>},
      {&modulo_def, kWide2<WideModulo>},
  };
  return find_row(kRows, op);
}

}  // namespace

TileFunction math_row(const OpDef& op) { return find_f32(op); }

}  // namespace rlx::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace rlx::cpu {
namespace {

// f64 goes to the C library element by element: models hold next to none of it, and its functions
// are right to an ulp over the whole range.

template <double (*kFunction)(double)>
void each1(const TileArgs& t) {
  const auto* x = reinterpret_cast<const double*>(t.in[0]);
  auto* to = reinterpret_cast<double*>(t.to);
  for (std::size_t i = 0; i < t.count; ++i) to[i] = kFunction(x[i & t.mask[0]]);
}

template <double (*kFunction)(double, double)>
void each2(const TileArgs& t) {
  const auto* a = reinterpret_cast<const double*>(t.in[0]);
  const auto* b = reinterpret_cast<const double*>(t.in[1]);
  auto* to = reinterpret_cast<double*>(t.to);
  for (std::size_t i = 0; i < t.count; ++i) to[i] = kFunction(a[i & t.mask[0]], b[i & t.mask[1]]);
}

// 0 times infinity is no result of these: at -∞ they end in -0.
double times_gate(double x, double gate) { return gate == 0 && x < 0 ? -0.0 : x * gate; }

double sigmoid(double x) {
  const double e = std::exp(-std::fabs(x));
  return (x < 0 ? e : 1) / (1 + e);
}
double softplus(double x) { return (x > 0 ? x : 0 * x) + std::log1p(std::exp(-std::fabs(x))); }
double softplus_finite(double x) {
  return std::isinf(x) ? std::fmax(x, 0) : softplus(x);  // 0·∞ above
}
double log_sigmoid(double x) { return -softplus_finite(-x); }
double silu(double x) { return times_gate(x, sigmoid(x)); }
double gelu(double x) { return times_gate(x, 0.5 * std::erfc(-x / std::numbers::sqrt2)); }
double gelu_tanh(double x) {
  constexpr double kScale = 1.5957691216057308;  // √(8/π)
  return times_gate(x, sigmoid(kScale * (x + 0.044715 * x * x * x)));
}
double mish(double x) { return times_gate(x, std::tanh(softplus_finite(x))); }
double modulo(double a, double b) {
  const double r = std::fmod(a, b);
  if (r == 0) return std::copysign(0.0, b);
  return (r < 0) != (b < 0) ? r + b : r;
}

struct LibraryRow {
  const OpDef* op;
  TileFunction function;
};
constexpr LibraryRow kLibraryRows[] = {
    {&exp_def, each1<std::exp>},        {&expm1_def, each1<std::expm1>},
    {&log_def, each1<std::log>},        {&log1p_def, each1<std::log1p>},
    {&sin_def, each1<std::sin>},        {&cos_def, each1<std::cos>},
    {&tan_def, each1<std::tan>},        {&asin_def, each1<std::asin>},
    {&acos_def, each1<std::acos>},      {&atan_def, each1<std::atan>},
    {&sinh_def, each1<std::sinh>},      {&cosh_def, each1<std::cosh>},
    {&tanh_def, each1<std::tanh>},      {&asinh_def, each1<std::asinh>},
    {&acosh_def, each1<std::acosh>},    {&atanh_def, each1<std::atanh>},
    {&erf_def, each1<std::erf>},        {&sigmoid_def, each1<sigmoid>},
    {&gelu_def, each1<gelu>},           {&gelu_tanh_def, each1<gelu_tanh>},
    {&silu_def, each1<silu>},           {&softplus_def, each1<softplus_finite>},
    {&mish_def, each1<mish>},           {&log_sigmoid_def, each1<log_sigmoid>},
    {&pow_def, each2<std::pow>},        {&atan2_def, each2<std::atan2>},
    {&remainder_def, each2<std::fmod>}, {&modulo_def, each2<modulo>},
};

TileFunction library_row(const OpDef& op) {
  for (const LibraryRow& row : kLibraryRows) {
    if (row.op == &op) return row.function;
  }
  return nullptr;
}

}  // namespace

HWY_EXPORT(math_row);

TileFunction math_tile(const OpDef& op, DType tile) noexcept {
  if (tile == DType::f32) return HWY_DYNAMIC_DISPATCH(math_row)(op);
  return tile == DType::f64 ? library_row(op) : nullptr;
}

}  // namespace rlx::cpu
#endif
