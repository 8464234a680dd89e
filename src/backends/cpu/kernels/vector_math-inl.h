// Vector functions on float32 shared by kernels. Include after Highway's foreach_target.h; the file
// is read once per instruction set. All propagate NaN; error bounds are in units in the last place,
// checked by tile_epilogue_test.cpp.

#if defined(RLX_CPU_VECTOR_MATH_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef RLX_CPU_VECTOR_MATH_INL_H_
#undef RLX_CPU_VECTOR_MATH_INL_H_
#else
#define RLX_CPU_VECTOR_MATH_INL_H_
#endif

#include <hwy/highway.h>

#include <limits>

HWY_BEFORE_NAMESPACE();
namespace rlx::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

/// min and max that return the second operand if either is NaN, which is what x86's instructions
/// do: with a constant first, NaN in `x` passes through.
template <class D, class V>
HWY_INLINE V at_most(D d, float limit, V x) {
  return hn::Min(hn::Set(d, limit), x);
}
template <class D, class V>
HWY_INLINE V at_least(D d, float limit, V x) {
  return hn::Max(hn::Set(d, limit), x);
}

/// c[0] + c[1]·x + … by Horner's rule.
template <class D, class V, std::size_t N>
HWY_INLINE V polynomial(D d, V x, const float (&c)[N]) {
  V sum = hn::Set(d, c[N - 1]);
  for (std::size_t i = N - 1; i-- > 0;) sum = hn::MulAdd(sum, x, hn::Set(d, c[i]));
  return sum;
}

/// 1.5·2^23: adding it rounds a small number to an integer and leaves that in the low bits.
inline constexpr float kRounder = 12582912.0F;

/// 2^n as a float, for integers n in [-126, 127].
template <class D, class VI>
HWY_INLINE auto power_of_two(D d, VI n) {
  const hn::RebindToSigned<D> di;
  return hn::BitCast(d, hn::ShiftLeft<23>(hn::Add(n, hn::Set(di, 127))));
}

/// e^x, 1 ulp; subnormal results 1 ulp of the smallest normal number.
template <class D, class V>
HWY_INLINE V exp(D d, V x) {
  const hn::RebindToSigned<D> di;
  const V rounder = hn::Set(d, kRounder);
  // Beyond these the result is infinite or zero, and the reduction below must stay in range.
  x = at_least(d, -104.0F, at_most(d, 89.0F, x));
  const V shifted = hn::MulAdd(x, hn::Set(d, 1.44269504F), rounder);
  const V n = hn::Sub(shifted, rounder);
  V r = hn::NegMulAdd(n, hn::Set(d, 0.693145752F), x);  // ln 2 in two parts: the first is exact
  r = hn::NegMulAdd(n, hn::Set(d, 1.42860677e-6F), r);
  static constexpr float kTail[] = {0.499999934F, 0.166665205F, 0.0416683893F, 0.00836873022F,
                                    0.00138145706F};
  const V e = hn::Add(hn::Set(d, 1.0F), hn::MulAdd(hn::Mul(r, r), polynomial(d, r, kTail), r));
  // 2^n may be no float where the result is one: two factors.
  const auto power = hn::Sub(hn::BitCast(di, shifted), hn::BitCast(di, rounder));
  const auto half = hn::ShiftRight<1>(power);
  return hn::Mul(hn::Mul(e, power_of_two(d, half)), power_of_two(d, hn::Sub(power, half)));
}

/// 1/(1 + e^-x), 2 ulp.
template <class D, class V>
HWY_INLINE V sigmoid(D d, V x) {
  return hn::Div(hn::Set(d, 1.0F), hn::Add(hn::Set(d, 1.0F), exp(d, hn::Neg(x))));
}

/// x·gate(x) for a gate that is 0 at -infinity: the result is -0 there.
template <class D, class V>
HWY_INLINE V gated(D d, V x, V gate) {
  return hn::Mul(at_least(d, -std::numeric_limits<float>::max(), x), gate);
}

/// x·sigmoid(x), 2 ulp; -0 below -88.7, where the value is under 3e-37.
template <class D, class V>
HWY_INLINE V silu(D d, V x) {
  return gated(d, x, sigmoid(d, x));
}

/// 2 ulp.
template <class D, class V>
HWY_INLINE V tanh(D d, V x) {
  const V a = hn::Abs(x), one = hn::Set(d, 1.0F);
  const V large = hn::Sub(one, hn::Div(hn::Set(d, 2.0F), hn::Add(exp(d, hn::Add(a, a)), one)));
  // Near zero that cancels: an odd polynomial, good to 0.625.
  static constexpr float kOdd[] = {-0.333332819F, 0.133314422F, -0.0537397146F, 0.0206390858F,
                                   -0.0057049855F};
  const V s = hn::Mul(a, a);
  const V small = hn::MulAdd(hn::Mul(a, s), polynomial(d, s, kOdd), a);
  return hn::CopySign(hn::IfThenElse(hn::Lt(a, hn::Set(d, 0.625F)), small, large), x);
}

/// x/2·(1 + tanh(√(2/π)·(x + 0.044715·x³))), which is x·sigmoid of twice tanh's argument.
template <class D, class V>
HWY_INLINE V gelu_tanh(D d, V x) {
  const V cubic = hn::MulAdd(hn::Mul(x, x), hn::Set(d, 0.0713548163F), hn::Set(d, 1.59576912F));
  return gated(d, x, sigmoid(d, hn::Mul(x, cubic)));
}

/// The upper tail of the normal distribution, for t >= 0; 0 from 6 on. Relative error 2e-6 at t =
/// 6, 2e-7 near 0. Method: it is 2^h(t), h a polynomial.
template <class D, class V>
HWY_INLINE V normal_tail(D d, V t) {
  const hn::RebindToSigned<D> di;
  constexpr float kEnd = 6.0F;
  static constexpr float kLogTail[] = {-0.999999987F,    -1.15110512F,    -0.459212239F,
                                       -0.0524707004F,   0.00699610162F,  -4.53286925e-05F,
                                       -0.000255305157F, 6.86811375e-05F, -9.52168758e-06F,
                                       7.14734667e-07F,  -2.28933111e-08F};
  static constexpr float kPower[] = {1.0F,           0.693147206F,   0.240226469F,   0.0555032871F,
                                     0.00961848925F, 0.00133999576F, 0.000153457881F};
  const V h = polynomial(d, at_most(d, kEnd, t), kLogTail);
  const V shifted = hn::Add(h, hn::Set(d, kRounder));
  const V fraction = hn::Sub(h, hn::Sub(shifted, hn::Set(d, kRounder)));
  const V power = polynomial(d, fraction, kPower);
  const auto exponent =
      hn::ShiftLeft<23>(hn::BitCast(di, shifted));  // the integer is in the low bits
  const V tail = hn::BitCast(d, hn::Add(hn::BitCast(di, power), exponent));
  return hn::IfThenElseZero(hn::Not(hn::Gt(t, hn::Set(d, kEnd))), tail);  // NaN stays
}

/// x/2·(1 + erf(x/√2)). The error is at most 2 units (2^-24) of |x|, and far less than the
/// formula's where x is negative; -0 below -6, where the value is under 6e-9.
template <class D, class V>
HWY_INLINE V gelu_erf(D d, V x) {
  const V tail = normal_tail(d, hn::Abs(x));
  return gated(d, x, hn::IfNegativeThenElse(x, tail, hn::Sub(hn::Set(d, 1.0F), tail)));
}

/// 2 ulp. An odd polynomial to 1, then 1 less twice the normal distribution's tail at x·√2.
template <class D, class V>
HWY_INLINE V erf(D d, V x) {
  static constexpr float kOdd[] = {1.12837917F,   -0.376126256F,    0.112835823F,   -0.026853693F,
                                   0.0051881025F, -0.000800822097F, 7.84736342e-05F};
  const V a = hn::Abs(x), s = hn::Min(hn::Mul(a, a), hn::Set(d, 1.0F));
  const V small = hn::Mul(a, polynomial(d, s, kOdd));
  const V tail = normal_tail(d, hn::Mul(a, hn::Set(d, 1.41421356F)));
  const V large = hn::NegMulAdd(hn::Set(d, 2.0F), tail, hn::Set(d, 1.0F));
  return hn::CopySign(hn::IfThenElse(hn::Ge(a, hn::Set(d, 1.0F)), large, small), x);  // NaN: small
}

}  // namespace rlx::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
