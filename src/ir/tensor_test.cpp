#include "rlx/tensor.h"

#include <gtest/gtest.h>

namespace rlx {
namespace {

TEST(Tensor, HoldsValuesAndSharesThemOnCopy) {
  const Tensor t({2, 2}, {1.0F, 2.0F, 3.0F, 4.0F});
  const Tensor copy = t;
  EXPECT_EQ(copy.values<float>()[3], 4.0F);
  EXPECT_EQ(copy.bytes().data(), t.bytes().data());
  EXPECT_EQ(t.dtype(), f32);
}

TEST(Tensor, RefusesWrongDtypeCountAndSizes) {
  const Tensor t(i64, {3});
  EXPECT_THROW((void)t.values<float>(), InvalidArgument);
  EXPECT_THROW(Tensor({2}, {1.0F}), ShapeError);
  EXPECT_THROW(Tensor(f32, {-1}), ShapeError);
  EXPECT_THROW(Tensor(f32, {std::int64_t{1} << 40, std::int64_t{1} << 40}), ShapeError);
  EXPECT_THROW((void)t.reshaped({4}), ShapeError);
}

TEST(DType, NamesRoundTripAndSizesFollowBlocks) {
  for (int i = 0; i < kDTypeCount; ++i) {
    const auto d = static_cast<DType>(i);
    EXPECT_EQ(dtype_named(name(d)), d);
  }
  EXPECT_EQ(byte_size(DType::q4_0, 64), 36U);
  EXPECT_EQ(byte_size(DType::i4, 3), 2U);
  EXPECT_EQ(byte_size(DType::f6e2m3, 4), 3U);
  EXPECT_EQ(dtype_named("float"), std::nullopt);
}

}  // namespace
}  // namespace rlx
