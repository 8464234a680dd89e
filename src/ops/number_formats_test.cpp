#include "ops/number_formats.h"

#include <gtest/gtest.h>

#include <cmath>

namespace rlx {
namespace {

struct Published {
  DType dtype;
  int bits;
  double largest, least_normal, least_subnormal;
};

void PrintTo(const Published& f, std::ostream* out) { *out << name(f.dtype); }

// IEEE 754 (f16), the OCP OFP8 and MX specifications, and the fnuz formats as in ml_dtypes.finfo.
const Published kFormats[] = {
    {DType::f16, 16, 65504, 0x1p-14, 0x1p-24},
    {DType::bf16, 16, 0x1.fep127, 0x1p-126, 0x1p-133},
    {DType::f8e4m3, 8, 448, 0x1p-6, 0x1p-9},
    {DType::f8e5m2, 8, 57344, 0x1p-14, 0x1p-16},
    {DType::f8e4m3fnuz, 8, 240, 0x1p-7, 0x1p-10},
    {DType::f8e5m2fnuz, 8, 57344, 0x1p-15, 0x1p-17},
    {DType::f6e2m3, 6, 7.5, 1, 0.125},
    {DType::f6e3m2, 6, 28, 0.25, 0.0625},
    {DType::f4e2m1, 4, 6, 1, 0.5},
};

class NumberFormat : public testing::TestWithParam<Published> {
 protected:
  DType dtype() const { return GetParam().dtype; }
  std::uint32_t sign() const { return 1U << (GetParam().bits - 1); }
  double rounded(double x) const { return decode_float(dtype(), encode_float(dtype(), x)); }
};

TEST_P(NumberFormat, EveryCodeRoundTrips) {
  for (std::uint32_t code = 0; code < 2 * sign(); ++code) {
    const double value = decode_float(dtype(), code);
    if (std::isnan(value)) {
      EXPECT_TRUE(std::isnan(rounded(value))) << code;
    } else {
      EXPECT_EQ(encode_float(dtype(), value), code) << value;
    }
  }
}

TEST_P(NumberFormat, CodesGrowWithTheirValues) {
  for (std::uint32_t code = 0; decode_float(dtype(), code) < GetParam().largest; ++code)
    EXPECT_LT(decode_float(dtype(), code), decode_float(dtype(), code + 1)) << code;
}

TEST_P(NumberFormat, RoundsToTheNearestAndTiesToEven) {
  for (std::uint32_t code = 0; decode_float(dtype(), code) < GetParam().largest; ++code) {
    const double low = decode_float(dtype(), code);
    const double middle = (low + decode_float(dtype(), code + 1)) / 2;
    EXPECT_EQ(encode_float(dtype(), middle), code % 2 == 0 ? code : code + 1) << middle;
    EXPECT_EQ(encode_float(dtype(), std::nextafter(middle, 0)), code) << middle;
    EXPECT_EQ(encode_float(dtype(), std::nextafter(middle, INFINITY)), code + 1) << middle;
    if (middle > 0 && code > 0) {
      EXPECT_EQ(encode_float(dtype(), -std::nextafter(middle, 0)), code | sign()) << middle;
    }
  }
}

TEST_P(NumberFormat, HasThePublishedExtremes) {
  const Published& f = GetParam();
  EXPECT_EQ(rounded(f.largest), f.largest);
  EXPECT_EQ(rounded(-f.largest), -f.largest);
  EXPECT_EQ(rounded(f.least_normal), f.least_normal);
  EXPECT_EQ(decode_float(f.dtype, 1), f.least_subnormal);
  EXPECT_EQ(rounded(f.least_subnormal / 2), 0);
  EXPECT_EQ(rounded(std::nextafter(f.least_subnormal / 2, 1)), f.least_subnormal);
  EXPECT_EQ(rounded(1e-300), 0);
}

TEST_P(NumberFormat, OverflowIsInfiniteInSixteenBitsAndSaturatesBelow) {
  const Published& f = GetParam();
  const double past = f.bits == 16 ? INFINITY : f.largest;
  const double infinite = f.bits == 16 || f.dtype == DType::f8e5m2 ? INFINITY : f.largest;
  EXPECT_EQ(rounded(1e300), past);
  EXPECT_EQ(rounded(-1e300), -past);
  EXPECT_EQ(rounded(INFINITY), infinite);
  EXPECT_EQ(rounded(-INFINITY), -infinite);
}

TEST_P(NumberFormat, NanAndZeros) {
  const bool has_nan = GetParam().bits >= 8;
  EXPECT_EQ(std::isnan(rounded(NAN)), has_nan);
  if (!has_nan) {
    EXPECT_EQ(rounded(NAN), 0);
  }
  const bool fnuz = dtype() == DType::f8e4m3fnuz || dtype() == DType::f8e5m2fnuz;
  EXPECT_EQ(encode_float(dtype(), -0.0), fnuz ? 0 : sign());
  EXPECT_EQ(encode_float(dtype(), -1e-300), fnuz ? 0 : sign());
}
INSTANTIATE_TEST_SUITE_P(Ops, NumberFormat, testing::ValuesIn(kFormats),
                         [](const auto& info) { return std::string(name(info.param.dtype)); });

// ml_dtypes' answers.
TEST(NumberFormats, KnownValues) {
  const auto rounded = [](DType d, double x) { return decode_float(d, encode_float(d, x)); };
  EXPECT_EQ(rounded(DType::f8e4m3, 0.3), 0.3125);
  EXPECT_EQ(rounded(DType::f8e4m3, -2.7), -2.75);
  EXPECT_EQ(rounded(DType::f8e5m2, 1.1), 1.0);
  EXPECT_EQ(rounded(DType::f8e5m2, -2.7), -2.5);
  EXPECT_EQ(rounded(DType::f8e4m3fnuz, 5.1), 5.0);
  EXPECT_EQ(rounded(DType::f6e2m3, 0.3), 0.25);
  EXPECT_EQ(rounded(DType::f6e3m2, 0.3), 0.3125);
  EXPECT_EQ(rounded(DType::f4e2m1, -2.7), -3.0);
  EXPECT_EQ(rounded(DType::f4e2m1, 5.1), 6.0);
  EXPECT_EQ(rounded(DType::bf16, 0.3), 0.30078125);
  EXPECT_EQ(rounded(DType::bf16, 5.1), 5.09375);
}

TEST(NumberFormats, PowersOfTwo) {
  for (std::uint32_t code = 0; code < 0xff; ++code)
    EXPECT_EQ(encode_float(DType::f8e8m0, decode_float(DType::f8e8m0, code)), code);
  const auto rounded = [](double x) {
    return decode_float(DType::f8e8m0, encode_float(DType::f8e8m0, x));
  };
  EXPECT_EQ(rounded(1.4), 1);
  EXPECT_EQ(rounded(1.5), 2);  // the code of 2 is even
  EXPECT_EQ(rounded(2.9), 2);
  EXPECT_EQ(rounded(3), 2);
  EXPECT_EQ(rounded(3.1), 4);
  EXPECT_EQ(rounded(1e300), 0x1p127);
  EXPECT_EQ(rounded(INFINITY), 0x1p127);
  EXPECT_EQ(rounded(1e-300), 0x1p-127);
  EXPECT_EQ(rounded(0), 0x1p-127);
  EXPECT_EQ(rounded(-1), 0x1p-127);
  EXPECT_TRUE(std::isnan(rounded(NAN)));
}

// 1 + 2^-11 lies half way between two f16 numbers; what is added to it decides, however small.
TEST(NumberFormats, SumsToOddRoundOnce) {
  const auto rounded = [](double a, double b) {
    return decode_float(DType::f16, encode_float(DType::f16, sum_to_odd(a, b)));
  };
  const double tie = 1 + 0x1p-11;
  EXPECT_EQ(rounded(tie, 0), 1);
  EXPECT_EQ(rounded(tie, 0x1p-200), 1 + 0x1p-10);
  EXPECT_EQ(rounded(tie, -0x1p-200), 1);
  EXPECT_EQ(rounded(-tie, -0x1p-200), -1 - 0x1p-10);
  EXPECT_EQ(sum_to_odd(INFINITY, 1), INFINITY);
  EXPECT_TRUE(std::isnan(sum_to_odd(INFINITY, -INFINITY)));
}

}  // namespace
}  // namespace rlx
