#pragma once

#include <cstdint>

#include "rlx/dtype.h"

namespace rlx {

/// Storage of 16-bit floats.
struct Half {
  std::uint16_t bits;
};
struct BFloat16 {
  std::uint16_t bits;
};

/// A binary floating-point format of at most 16 bits: sign, exponent and mantissa widths, and which
/// codes are special.
struct SmallFloat {
  int exponent_bits;
  int mantissa_bits;
  int bias;
  bool has_infinity;
  bool has_nan;
  bool finite_nan_all_ones;  ///< the only NaN is S.11…1 (f8e4m3)
  bool unsigned_zero;        ///< fnuz: one NaN at 0x80, no negative zero
  int bits() const { return 1 + exponent_bits + mantissa_bits; }
};

/// The value of a code; `dtype` is a floating type of at most 16 bits.
double decode_float(DType dtype, std::uint32_t code);
/// The nearest code, ties to even. f16 and bf16 overflow to infinity. The narrower formats saturate
/// at their largest finite value; infinities too, but in f8e5m2, which has them. NaN stays NaN
/// where the format has one and becomes 0 elsewhere. What is not above 0 becomes the least f8e8m0.
std::uint32_t encode_float(DType dtype, double value);

/// a + b rounded to double such that rounding the result to a format of at most 51 bits of mantissa
/// gives the correctly rounded sum: an inexact result is the neighbour whose last bit is set (round
/// to odd; Boldo & Melquiond 2008, IEEE Trans. Comput. 57(4)).
double sum_to_odd(double a, double b);

inline float to_float(BFloat16 x) {
  const std::uint32_t bits = static_cast<std::uint32_t>(x.bits) << 16;
  float f;
  __builtin_memcpy(&f, &bits, 4);
  return f;
}

}  // namespace rlx
