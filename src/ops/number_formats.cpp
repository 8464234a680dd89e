#include "ops/number_formats.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "base/check.h"

namespace rlx {
namespace {

SmallFloat format_of(DType dtype) {
  switch (dtype) {
    case DType::f16:
      return {5, 10, 15, true, true, false, false};
    case DType::bf16:
      return {8, 7, 127, true, true, false, false};
    case DType::f8e4m3:
      return {4, 3, 7, false, true, true, false};
    case DType::f8e5m2:
      return {5, 2, 15, true, true, false, false};
    case DType::f8e4m3fnuz:
      return {4, 3, 8, false, true, false, true};
    case DType::f8e5m2fnuz:
      return {5, 2, 16, false, true, false, true};
    case DType::f6e2m3:
      return {2, 3, 1, false, false, false, false};
    case DType::f6e3m2:
      return {3, 2, 3, false, false, false, false};
    case DType::f4e2m1:
      return {2, 1, 1, false, false, false, false};
    default:
      fail_assertion("small float dtype", __FILE__, __LINE__);
  }
}

std::uint32_t nan_code(const SmallFloat& f) {
  if (f.unsigned_zero) return 1U << (f.bits() - 1);
  if (f.finite_nan_all_ones) return (1U << (f.bits() - 1)) - 1;
  const std::uint32_t exponent = ((1U << f.exponent_bits) - 1) << f.mantissa_bits;
  return exponent | (1U << (f.mantissa_bits - 1));
}

// The largest finite code without its sign.
std::uint32_t largest_code(const SmallFloat& f) {
  const std::uint32_t all = (1U << (f.bits() - 1)) - 1;
  if (f.has_infinity) return all - (1U << f.mantissa_bits);
  return f.finite_nan_all_ones ? all - 1 : all;
}

bool is_nan_code(const SmallFloat& f, std::uint32_t code) {
  const std::uint32_t magnitude = code & ((1U << (f.bits() - 1)) - 1);
  if (!f.has_nan) return false;
  if (f.unsigned_zero) return code == nan_code(f);
  if (f.finite_nan_all_ones) return magnitude == nan_code(f);
  return magnitude > (((1U << f.exponent_bits) - 1) << f.mantissa_bits);
}

double finite_value(const SmallFloat& f, std::uint32_t magnitude) {
  const std::uint32_t mantissa = magnitude & ((1U << f.mantissa_bits) - 1);
  const auto exponent = static_cast<int>(magnitude >> f.mantissa_bits);
  if (exponent == 0) return std::ldexp(mantissa, 1 - f.bias - f.mantissa_bits);
  return std::ldexp(mantissa + (1U << f.mantissa_bits), exponent - f.bias - f.mantissa_bits);
}

// Nearest code of a positive finite value, possibly past the largest.
std::uint32_t nearest_code(const SmallFloat& f, double value) {
  int exponent = 0;
  std::frexp(value, &exponent);
  const int lowest = 1 - f.bias;  // of the subnormals' scale
  const int scale = std::max(exponent - 1, lowest) - f.mantissa_bits;
  const double steps =
      std::nearbyint(std::ldexp(value, -scale));  // round to even is the default mode
  const auto mantissa = static_cast<std::uint64_t>(steps);
  // A mantissa that rounds up to the next power of two carries into the exponent by itself.
  const auto base = static_cast<std::uint64_t>(scale + f.mantissa_bits - lowest);
  return static_cast<std::uint32_t>((base << f.mantissa_bits) + mantissa);
}

std::uint32_t encode_power_of_two(double value) {
  constexpr int kBias = 127;
  if (std::isnan(value)) return 0xff;
  if (std::isinf(value) && value > 0) return 0xfe;
  if (value <= 0) return 0;
  int exponent = 0;
  const double half = std::frexp(value, &exponent);  // value = 2 half * 2^(exponent - 1)
  int code = exponent - 1 + kBias;
  if (half > 0.75 || (half == 0.75 && code % 2 != 0)) ++code;
  return static_cast<std::uint32_t>(std::clamp(code, 0, 0xfe));
}

}  // namespace

double decode_float(DType dtype, std::uint32_t code) {
  if (dtype == DType::f8e8m0) {
    return code == 0xff ? std::numeric_limits<double>::quiet_NaN()
                        : std::ldexp(1.0, static_cast<int>(code) - 127);
  }
  const SmallFloat f = format_of(dtype);
  if (is_nan_code(f, code)) return std::numeric_limits<double>::quiet_NaN();
  const std::uint32_t sign = 1U << (f.bits() - 1);
  const std::uint32_t magnitude = code & (sign - 1);
  const bool infinite = f.has_infinity && magnitude > largest_code(f);
  const double value =
      infinite ? std::numeric_limits<double>::infinity() : finite_value(f, magnitude);
  return (code & sign) != 0 ? -value : value;
}

std::uint32_t encode_float(DType dtype, double value) {
  if (dtype == DType::f8e8m0) return encode_power_of_two(value);
  const SmallFloat f = format_of(dtype);
  if (std::isnan(value)) return f.has_nan ? nan_code(f) : 0;
  const std::uint32_t largest = largest_code(f);
  const double magnitude = std::fabs(value);
  const std::uint32_t infinity = f.has_infinity ? largest + 1 : largest;
  const std::uint32_t overflow = f.bits() < 16 ? largest : infinity;
  std::uint32_t code = 0;
  if (std::isinf(magnitude)) {
    code = infinity;
  } else if (magnitude > 0) {
    code = nearest_code(f, magnitude);
    if (code > largest) code = overflow;
  }
  const bool negative = std::signbit(value) && !(f.unsigned_zero && code == 0);
  return negative ? code | (1U << (f.bits() - 1)) : code;
}

double sum_to_odd(double a, double b) {
  const double sum = a + b;
  if (!std::isfinite(sum)) return sum;
  // Knuth's two-sum: `error` is exactly what `sum` lacks.
  const double b_part = sum - a;
  const double error = (a - (sum - b_part)) + (b - b_part);
  const auto bits = std::bit_cast<std::uint64_t>(sum);
  if (error == 0 || bits % 2 != 0) return sum;
  return std::bit_cast<double>((error > 0) == (sum > 0) ? bits + 1 : bits - 1);
}

}  // namespace rlx
