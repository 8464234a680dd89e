#include "rlx/dim.h"

#include <gtest/gtest.h>

#include "rlx/error.h"

namespace rlx {
namespace {

const Dim b("batch"), s("seq");

TEST(Dim, EqualPolynomialsAreTheSamePointer) {
  EXPECT_EQ((b + s) * (b - s), b * b - s * s);
  EXPECT_EQ(b + s - b, s);
  EXPECT_EQ(b * 0, Dim(0));
  EXPECT_NE(b * s, b + s);
  EXPECT_EQ((2 * b * s).to_string(), "2*batch*seq");
}

TEST(Dim, DivisionsThatComeOutExactlyVanish) {
  EXPECT_EQ(floor_div(b * s * 384, b * s * 12), Dim(32));
  EXPECT_EQ(floor_div(4 * b + 6, 4), b + 1);
  EXPECT_EQ(ceil_div(4 * b + 6, 4), b + 2);
  EXPECT_EQ(mod(6 * b + 4, 3), Dim(1));
  EXPECT_EQ(floor_div(s, 2).to_string(), "floordiv(seq, 2)");
  EXPECT_EQ(floor_div(mod(s, 8), 8), Dim(0));
}

TEST(Dim, ExtremesUseRangeFacts) {
  EXPECT_EQ(max(b, 0), b);
  EXPECT_EQ(min(b, b + 3), b);
  EXPECT_EQ(min(s, 512).upper_bound(), 512);
  EXPECT_EQ(min(s, 512).lower_bound(), 0);
  EXPECT_EQ(max(b + 1, 1), b + 1);
}

TEST(Dim, EvaluatesWhereSymbolsHaveSizes) {
  DimBinding sizes;
  sizes.set("batch", 3);
  sizes.set("seq", 7);
  EXPECT_EQ((b * s - 1).evaluate(sizes), 20);
  EXPECT_EQ(floor_div(s - 9, 2).evaluate(sizes), -1);
  EXPECT_EQ(ceil_div(s, 2).evaluate(sizes), 4);
  EXPECT_EQ(mod(s - 9, 4).evaluate(sizes), 2);
  EXPECT_THROW(Dim("x").evaluate(sizes), InvalidArgument);
  EXPECT_THROW(floor_div(s, b - 3).evaluate(sizes), ShapeError);
}

TEST(Dim, TextRoundTrips) {
  for (const Dim d : {b, Dim(-3), -b, 2 * b * b - s + 1, min(floor_div(s, 2), mod(b + s, 5)),
                      Dim("a strange 'name'") + 1, Dim("x.0")}) {
    EXPECT_EQ(Dim::parse(d.to_string()), d) << d.to_string();
  }
  for (const char* bad : {"", "1 +", "min(1)", "a b", "'x", "99999999999999999999", "min"}) {
    EXPECT_THROW((void)Dim::parse(bad), InvalidArgument) << bad;
  }
}

TEST(Dim, OverflowIsAnError) {
  const Dim big(std::int64_t{1} << 62);
  EXPECT_THROW((void)(big * 2), ShapeError);
  EXPECT_THROW((void)(big + big), ShapeError);
}

}  // namespace
}  // namespace rlx
