// Functions of float32 computed in double lanes: two vectors for each one of floats, but no tricks
// to keep the error under an ulp. Every result is the exact one rounded to float32, up to an error
// of some 1e-13 before rounding, so within 0.51 ulp. Include after Highway's foreach_target.h; the
// file is read once per instruction set.

#if defined(RLX_CPU_WIDE_MATH_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef RLX_CPU_WIDE_MATH_INL_H_
#undef RLX_CPU_WIDE_MATH_INL_H_
#else
#define RLX_CPU_WIDE_MATH_INL_H_
#endif

#include <hwy/contrib/math/math-inl.h>
#include <hwy/highway.h>

#include <cmath>
#include <limits>

#include "backends/cpu/kernels/vector_math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace rlx::cpu::HWY_NAMESPACE::wide {
namespace hn = hwy::HWY_NAMESPACE;

/// Applies F, a functor on double vectors, to one or two vectors of floats.
template <class F>
struct Widened {
  template <class D, class V>
  HWY_INLINE V operator()(D d, V x) const {
    const hn::RepartitionToWide<D> dd;
    const hn::Half<D> dh;
    const auto low = F()(dd, hn::PromoteTo(dd, hn::LowerHalf(dh, x)));
    const auto high = F()(dd, hn::PromoteTo(dd, hn::UpperHalf(dh, x)));
    return hn::Combine(d, hn::DemoteTo(dh, high), hn::DemoteTo(dh, low));
  }
  template <class D, class V>
  HWY_INLINE V operator()(D d, V a, V b) const {
    const hn::RepartitionToWide<D> dd;
    const hn::Half<D> dh;
    const auto low =
        F()(dd, hn::PromoteTo(dd, hn::LowerHalf(dh, a)), hn::PromoteTo(dd, hn::LowerHalf(dh, b)));
    const auto high =
        F()(dd, hn::PromoteTo(dd, hn::UpperHalf(dh, a)), hn::PromoteTo(dd, hn::UpperHalf(dh, b)));
    return hn::Combine(d, hn::DemoteTo(dh, high), hn::DemoteTo(dh, low));
  }
};

/// c[0] + c[1]·x + … by Horner's rule.
template <class D, class V, std::size_t N>
HWY_INLINE V series(D d, V x, const double (&c)[N]) {
  V sum = hn::Set(d, c[N - 1]);
  for (std::size_t i = N - 1; i-- > 0;) sum = hn::MulAdd(sum, x, hn::Set(d, c[i]));
  return sum;
}

inline constexpr double kInfinity = std::numeric_limits<double>::infinity();
inline constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
/// 1.5·2^52: adding it rounds to an integer and leaves that in the low bits.
inline constexpr double kRounder = 6755399441055744.0;
inline constexpr double kLn2High = 6.93147180369123816490e-01;  // 21 low bits are zero
inline constexpr double kLn2Low = 1.90821492927058770002e-10;

/// The sign of zero and infinities, which reductions lose: f(±0) = ±0.
template <class V>
HWY_INLINE V keeping_zero(V x, V y) {
  const hn::DFromV<V> d;
  return hn::IfThenElse(hn::Eq(x, hn::Zero(d)), x, y);
}

/// 2^n and p with e^x = 2^n·(1 + p), |p| < 0.42. x is taken to lie within ±200, which float32
/// results cannot tell from infinity and 0.
template <class D, class V>
HWY_INLINE V exp_parts(D d, V x, V& power) {
  const hn::RebindToSigned<D> di;
  x = hn::Max(hn::Set(d, -200.0), hn::Min(hn::Set(d, 200.0), x));
  const V shifted = hn::MulAdd(x, hn::Set(d, 1.4426950408889634), hn::Set(d, kRounder));
  const V n = hn::Sub(shifted, hn::Set(d, kRounder));
  const V r = hn::NegMulAdd(n, hn::Set(d, kLn2Low), hn::NegMulAdd(n, hn::Set(d, kLn2High), x));
  power = hn::BitCast(
      d, hn::ShiftLeft<52>(hn::Add(hn::BitCast(di, shifted), hn::Set(di, std::int64_t{1023}))));
  static constexpr double kFactorials[] = {1.0,          1.0 / 2,       1.0 / 6,       1.0 / 24,
                                           1.0 / 120,    1.0 / 720,     1.0 / 5040,    1.0 / 40320,
                                           1.0 / 362880, 1.0 / 3628800, 1.0 / 39916800};
  return hn::Mul(r, series(d, r, kFactorials));
}

template <class D, class V>
HWY_INLINE V exp(D d, V x) {
  V power;
  const V p = exp_parts(d, x, power);
  return hn::MulAdd(power, p, power);
}

template <class D, class V>
HWY_INLINE V expm1(D d, V x) {
  V power;
  const V p = exp_parts(d, x, power);
  return keeping_zero(x, hn::MulAdd(power, p, hn::Sub(power, hn::Set(d, 1.0))));
}

/// log(1 + f) + k·ln 2 by the series of 2·artanh(f/(2 + f)), |f| < 0.42.
template <class D, class V>
HWY_INLINE V log_parts(D d, V f, V k) {
  static constexpr double kOdd[] = {2.0,      2.0 / 3,  2.0 / 5,  2.0 / 7,  2.0 / 9,
                                    2.0 / 11, 2.0 / 13, 2.0 / 15, 2.0 / 17, 2.0 / 19};
  const V s = hn::Div(f, hn::Add(hn::Set(d, 2.0), f));
  const V log = hn::Mul(s, series(d, hn::Mul(s, s), kOdd));
  return hn::MulAdd(k, hn::Set(d, kLn2High), hn::MulAdd(k, hn::Set(d, kLn2Low), log));
}

/// k and m with x = 2^k·m, m in [√½, √2), for positive normal x.
template <class D, class V>
HWY_INLINE V split(D d, V x, V& k) {
  const hn::RebindToSigned<D> di;
  constexpr std::int64_t kSqrtHalf = 0x3fe6a09e667f3bcd;
  const auto bits = hn::BitCast(di, x);
  const auto exponent = hn::ShiftRight<52>(hn::Sub(bits, hn::Set(di, kSqrtHalf)));
  k = hn::Sub(hn::BitCast(d, hn::Add(hn::BitCast(di, hn::Set(d, kRounder)), exponent)),
              hn::Set(d, kRounder));
  return hn::BitCast(d, hn::Sub(bits, hn::ShiftLeft<52>(exponent)));
}

/// What logarithms are where their argument u is not a positive number.
template <class D, class V>
HWY_INLINE V with_poles(D d, V u, V y) {
  y = hn::IfThenElse(hn::Lt(u, hn::Set(d, kInfinity)), y, u);
  y = hn::IfThenElse(hn::Lt(u, hn::Zero(d)), hn::Set(d, kNan), y);
  return hn::IfThenElse(hn::Eq(u, hn::Zero(d)), hn::Set(d, -kInfinity), y);
}

template <class D, class V>
HWY_INLINE V log(D d, V x) {
  V k;
  const V m = split(d, x, k);
  return with_poles(d, x, log_parts(d, hn::Sub(m, hn::Set(d, 1.0)), k));
}

template <class D, class V>
HWY_INLINE V log1p(D d, V x) {
  V k;
  const V u = hn::Add(hn::Set(d, 1.0), x);
  const V m = split(d, u, k);
  // Near zero 1 + x has lost digits of x.
  const V f = hn::IfThenElse(hn::Eq(k, hn::Zero(d)), x, hn::Sub(m, hn::Set(d, 1.0)));
  return keeping_zero(x, with_poles(d, u, log_parts(d, f, k)));
}

template <class D, class V>
HWY_INLINE V softplus(D d, V x) {
  return hn::Add(hn::Max(hn::Zero(d), x), log1p(d, exp(d, hn::Neg(hn::Abs(x)))));
}

/// x·tanh(log(1 + e^x)), where tanh(log u) = (u² - 1)/(u² + 1).
template <class D, class V>
HWY_INLINE V mish(D d, V x) {
  const V two = hn::Set(d, 2.0);
  const V e = exp(d, hn::Min(hn::Set(d, 60.0), x));
  const V n = hn::Mul(e, hn::Add(e, two));
  const V finite = hn::Max(hn::Set(d, -1e39), x);  // not -∞ times 0
  return hn::Mul(finite, hn::Div(n, hn::Add(n, two)));
}

template <class D, class V>
HWY_INLINE V sinh(D d, V x) {
  const V e = expm1(d, hn::Abs(x));
  const V twice = hn::Add(e, hn::Div(e, hn::Add(e, hn::Set(d, 1.0))));
  return hn::CopySign(hn::Mul(twice, hn::Set(d, 0.5)), x);
}

template <class D, class V>
HWY_INLINE V cosh(D d, V x) {
  const V e = exp(d, hn::Abs(x));
  return hn::Mul(hn::Add(e, hn::Div(hn::Set(d, 1.0), e)), hn::Set(d, 0.5));
}

template <class D, class V>
HWY_INLINE V asinh(D d, V x) {
  const V one = hn::Set(d, 1.0), a = hn::Abs(x), s = hn::Mul(a, a);
  const V y = log1p(d, hn::Add(a, hn::Div(s, hn::Add(one, hn::Sqrt(hn::Add(s, one))))));
  return hn::CopySign(hn::IfThenElse(hn::Lt(a, hn::Set(d, kInfinity)), y, a), x);
}

template <class D, class V>
HWY_INLINE V acosh(D d, V x) {
  const V t = hn::Sub(x, hn::Set(d, 1.0));
  const V y = log1p(d, hn::Add(t, hn::Sqrt(hn::MulAdd(t, t, hn::Add(t, t)))));
  return hn::IfThenElse(hn::Lt(t, hn::Zero(d)), hn::Set(d, kNan), y);
}

template <class D, class V>
HWY_INLINE V atanh(D d, V x) {
  const V a = hn::Abs(x);
  const V y = log1p(d, hn::Div(hn::Add(a, a), hn::Sub(hn::Set(d, 1.0), a)));
  return hn::CopySign(hn::Mul(y, hn::Set(d, 0.5)), x);
}

template <class D, class V>
HWY_INLINE V asin(D d, V x) {
  return keeping_zero(x, hn::Asin(d, x));
}
template <class D, class V>
HWY_INLINE V acos(D d, V x) {
  return hn::Acos(d, x);
}
template <class D, class V>
HWY_INLINE V atan(D d, V x) {
  return keeping_zero(x, hn::Atan(d, x));
}

template <class D, class V>
HWY_INLINE V atan2(D d, V y, V x) {
  constexpr double kPi = 3.14159265358979323846;
  const V ay = hn::Abs(y), ax = hn::Abs(x);
  const V large = hn::Max(ay, ax), small = hn::Min(ay, ax);
  // 0/0 counts as 0, ∞/∞ as 1.
  V ratio = hn::IfThenElse(hn::Eq(large, hn::Zero(d)), small, hn::Div(small, large));
  ratio = hn::IfThenElse(hn::Eq(small, hn::Set(d, kInfinity)), hn::Set(d, 1.0), ratio);
  V angle = hn::Atan(d, ratio);
  angle = hn::IfThenElse(hn::Gt(ay, ax), hn::Sub(hn::Set(d, kPi / 2), angle), angle);
  angle = hn::IfThenElse(hn::Lt(hn::CopySign(hn::Set(d, 1.0), x), hn::Zero(d)),
                         hn::Sub(hn::Set(d, kPi), angle), angle);
  angle = hn::CopySign(angle, y);
  const auto nan = hn::Or(hn::IsNaN(x), hn::IsNaN(y));
  return hn::IfThenElse(nan, hn::Set(d, kNan), angle);
}

/// Applies a scalar function where the vector one has given up.
template <class D, class V, class F>
HWY_NOINLINE V each(D d, V x, F f) {
  HWY_ALIGN double lanes[hn::MaxLanes(D())];
  hn::Store(x, d, lanes);
  for (double& v : lanes) v = f(v);
  return hn::Load(d, lanes);
}
template <class D, class V, class F>
HWY_NOINLINE V each(D d, V a, V b, F f) {
  HWY_ALIGN double x[hn::MaxLanes(D())];
  HWY_ALIGN double y[hn::MaxLanes(D())];
  hn::Store(a, d, x);
  hn::Store(b, d, y);
  for (std::size_t i = 0; i < hn::MaxLanes(D()); ++i) x[i] = f(x[i], y[i]);
  return hn::Load(d, x);
}

/// Sine and cosine of x less the nearest multiple of π/2, and that multiple in the low bits of
/// `quadrant`. For |x| < 2^20, where the multiple times π/2's first 33 bits is exact.
template <class D, class V>
HWY_INLINE void sine_parts(D d, V x, V& sine, V& cosine, hn::Vec<hn::RebindToSigned<D>>& quadrant) {
  const hn::RebindToSigned<D> di;
  const V shifted = hn::MulAdd(x, hn::Set(d, 0.63661977236758134308), hn::Set(d, kRounder));
  const V n = hn::Sub(shifted, hn::Set(d, kRounder));
  V r = hn::NegMulAdd(n, hn::Set(d, 1.57079632673412561417e+00), x);
  r = hn::NegMulAdd(n, hn::Set(d, 6.07710050630396597660e-11), r);
  r = hn::NegMulAdd(n, hn::Set(d, 2.02226624879595063154e-21), r);
  quadrant = hn::BitCast(di, shifted);
  static constexpr double kSine[] = {
      -1.0 / 6,        1.0 / 120,        -1.0 / 5040,         1.0 / 362880,
      -1.0 / 39916800, 1.0 / 6227020800, -1.0 / 1307674368000};
  static constexpr double kCosine[] = {
      1.0,         -1.0 / 2,       1.0 / 24,        -1.0 / 720,
      1.0 / 40320, -1.0 / 3628800, 1.0 / 479001600, -1.0 / 87178291200};
  const V s = hn::Mul(r, r);
  sine = hn::MulAdd(hn::Mul(r, s), series(d, s, kSine), r);
  cosine = series(d, s, kCosine);
}

template <class D, class V>
HWY_INLINE bool is_small_angle(D d, V x) {
  return hn::AllTrue(d, hn::Lt(hn::Abs(x), hn::Set(d, 1048576.0)));
}
template <class D, class VI>
HWY_INLINE auto bit_set(D d, VI quadrant, std::int64_t bit) {
  const hn::RebindToSigned<D> di;
  return hn::MaskFromVec(
      hn::BitCast(d, hn::VecFromMask(di, hn::TestBit(quadrant, hn::Set(di, bit)))));
}

template <class D, class V>
HWY_INLINE V sin(D d, V x) {
  if (HWY_UNLIKELY(!is_small_angle(d, x))) {
    return each(d, x, [](double v) { return std::sin(v); });
  }
  V sine, cosine;
  hn::Vec<hn::RebindToSigned<D>> quadrant;
  sine_parts(d, x, sine, cosine, quadrant);
  const V y = hn::IfThenElse(bit_set(d, quadrant, 1), cosine, sine);
  return keeping_zero(x, hn::IfThenElse(bit_set(d, quadrant, 2), hn::Neg(y), y));
}

template <class D, class V>
HWY_INLINE V cos(D d, V x) {
  if (HWY_UNLIKELY(!is_small_angle(d, x))) {
    return each(d, x, [](double v) { return std::cos(v); });
  }
  const hn::RebindToSigned<D> di;
  V sine, cosine;
  hn::Vec<hn::RebindToSigned<D>> quadrant;
  sine_parts(d, x, sine, cosine, quadrant);
  const V y = hn::IfThenElse(bit_set(d, quadrant, 1), sine, cosine);
  const auto next = hn::Add(quadrant, hn::Set(di, std::int64_t{1}));
  return hn::IfThenElse(bit_set(d, next, 2), hn::Neg(y), y);
}

template <class D, class V>
HWY_INLINE V tan(D d, V x) {
  if (HWY_UNLIKELY(!is_small_angle(d, x))) {
    return each(d, x, [](double v) { return std::tan(v); });
  }
  V sine, cosine;
  hn::Vec<hn::RebindToSigned<D>> quadrant;
  sine_parts(d, x, sine, cosine, quadrant);
  const auto odd = bit_set(d, quadrant, 1);
  const V top = hn::IfThenElse(odd, hn::Neg(cosine), sine);
  return keeping_zero(x, hn::Div(top, hn::IfThenElse(odd, sine, cosine)));
}

/// |a|^b = e^(b·log|a|), the sign from b's parity. What is not a finite number other than 0 on both
/// sides goes to the C library.
template <class D, class V>
HWY_INLINE V pow(D d, V a, V b) {
  const V size = hn::Abs(a), infinity = hn::Set(d, kInfinity), zero = hn::Zero(d);
  const auto plain =
      hn::And(hn::And(hn::Gt(size, zero), hn::Lt(size, infinity)), hn::Lt(hn::Abs(b), infinity));
  if (HWY_UNLIKELY(!hn::AllTrue(d, plain))) {
    return each(d, a, b, [](double x, double y) { return std::pow(x, y); });
  }
  const V y = exp(d, hn::Mul(b, log(d, size)));
  const V half = hn::Mul(b, hn::Set(d, 0.5));
  const auto odd = hn::Ne(hn::Floor(half), half);
  const V signed_y = hn::IfThenElse(odd, hn::Neg(y), y);
  const V negative = hn::IfThenElse(hn::Eq(hn::Floor(b), b), signed_y, hn::Set(d, kNan));
  return hn::IfThenElse(hn::Lt(a, zero), negative, y);
}

/// What a leaves over b, with the sign of a; exact. Quotients from 2^29 go to the C library.
template <class D, class V>
HWY_INLINE V remainder(D d, V a, V b) {
  const V size = hn::Abs(b), x = hn::Abs(a);
  const V q = hn::Floor(hn::Div(x, size));
  const auto plain =
      hn::And(hn::Lt(q, hn::Set(d, 536870912.0)), hn::Lt(size, hn::Set(d, kInfinity)));
  if (HWY_UNLIKELY(!hn::AllTrue(d, plain))) {
    return each(d, a, b, [](double u, double v) { return std::fmod(u, v); });
  }
  // The product is exact; the quotient may have been rounded up to an integer.
  const V r = hn::Sub(x, hn::Mul(q, size));
  return hn::CopySign(hn::IfThenElse(hn::Lt(r, hn::Zero(d)), hn::Add(r, size), r), a);
}

/// What a leaves over b, with the sign of b.
template <class D, class V>
HWY_INLINE V modulo(D d, V a, V b) {
  const V r = remainder(d, a, b);
  const V zero = hn::Zero(d);
  const auto other_sign = hn::Xor(hn::Lt(r, zero), hn::Lt(b, zero));
  const V y = hn::IfThenElse(other_sign, hn::Add(r, b), r);
  return hn::IfThenElse(hn::Eq(r, zero), hn::CopySign(zero, b), y);
}

}  // namespace rlx::cpu::HWY_NAMESPACE::wide
HWY_AFTER_NAMESPACE();

#endif
