#include "backends/cpu/kernels/tile_epilogue.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "base/cpu_features.h"

namespace rlx::cpu {
namespace {

constexpr double kUnit = 0x1p-24;
constexpr float kInfinity = std::numeric_limits<float>::infinity();

/// Finite floats of every exponent and sign, evenly over their bit patterns, subnormals left out.
std::vector<float> floats_of_every_size() {
  std::vector<float> values;
  for (std::uint64_t bits = 0; bits < (1ULL << 32); bits += 4099) {
    const auto pattern = static_cast<std::uint32_t>(bits);
    float x;
    std::memcpy(&x, &pattern, sizeof x);
    if (std::isnormal(x)) values.push_back(x);
  }
  return values;
}

double exact(Activation activation, double x) {
  switch (activation) {
    case Activation::kGeluErf:
      return x / 2 * std::erfc(-x / std::sqrt(2.0));
    case Activation::kGeluTanh:
      return x / (1 + std::exp(-2 * std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)));
    case Activation::kSilu:
      return x / (1 + std::exp(-x));
    case Activation::kSigmoid:
      return 1 / (1 + std::exp(-x));
    case Activation::kTanh:
      return std::tanh(x);
    default:
      return activation == Activation::kRelu && x < 0 ? 0 : x;
  }
}

std::vector<float> apply(Activation activation, const std::vector<float>& x) {
  Epilogue epilogue;
  epilogue.activation = activation;
  std::vector<float> y(x.size(), NAN);
  epilogue_function(epilogue)(
      {x.data(), x.size(), y.data(), y.size(), nullptr, 0, 1, x.size(), -kInfinity, kInfinity});
  return y;
}

class TileEpilogue : public testing::TestWithParam<CpuLevel> {
 protected:
  void SetUp() override {
    if (GetParam() > detected_cpu_level()) GTEST_SKIP() << "this machine lacks it";
    force_cpu_level(GetParam());
  }
  void TearDown() override { force_cpu_level(std::nullopt); }
};

/// Each activation's bound: units of the result, plus units of |x|.
struct Bound {
  Activation activation;
  double of_result;
  double of_x;
};

TEST_P(TileEpilogue, ErrorsStayWithinBounds) {
  const std::vector<float> x = floats_of_every_size();
  for (const Bound bound : {Bound{Activation::kNone, 0, 0},
                            {Activation::kRelu, 0, 0},
                            {Activation::kSigmoid, 4, 0},
                            {Activation::kTanh, 4, 0},
                            {Activation::kSilu, 5, 0},
                            {Activation::kGeluErf, 0, 2},
                            {Activation::kGeluTanh, 0, 3}}) {
    const std::vector<float> y = apply(bound.activation, x);
    double worst = 0;
    for (std::size_t i = 0; i < x.size(); ++i) {
      const double want = exact(bound.activation, x[i]);
      const double error = std::abs(y[i] - want);
      // A factor below the normal floats may be flushed; another is x, which matters up to 128.
      const double flushed = 0x1p-125 * std::clamp<double>(std::abs(x[i]), 1, 128);
      const double allowed =
          kUnit * (bound.of_result * std::abs(want) + bound.of_x * std::abs(double(x[i]))) +
          flushed;
      if (std::abs(want) > std::numeric_limits<float>::max()) continue;
      worst = std::max(worst, error / allowed);
      ASSERT_LE(error, allowed) << int(bound.activation) << " of " << x[i] << " is " << y[i]
                                << ", exactly " << want;
    }
    RecordProperty("worst_" + std::to_string(int(bound.activation)), std::to_string(worst));
  }
}

TEST_P(TileEpilogue, SpecialValues) {
  const std::vector<float> x = {NAN, -NAN, kInfinity, -kInfinity, 0.0F, -0.0F};
  for (int a = 0; a <= static_cast<int>(Activation::kTanh); ++a) {
    const auto y = apply(static_cast<Activation>(a), x);
    EXPECT_TRUE(std::isnan(y[0])) << a;
    EXPECT_TRUE(std::isnan(y[1])) << a;
    EXPECT_EQ(y[2], a >= static_cast<int>(Activation::kSigmoid) ? 1 : kInfinity) << a;
    EXPECT_EQ(y[4], static_cast<Activation>(a) == Activation::kSigmoid ? 0.5F : 0) << a;
    EXPECT_EQ(y[5], y[4]) << a;
  }
  EXPECT_EQ(apply(Activation::kTanh, x)[3], -1);
  EXPECT_TRUE(std::signbit(apply(Activation::kTanh, x)[5]));
  EXPECT_EQ(apply(Activation::kSigmoid, x)[3], 0);
  EXPECT_EQ(apply(Activation::kRelu, x)[3], 0);
}

// Known values of the exact functions, from outside this code.
TEST_P(TileEpilogue, KnownValues) {
  EXPECT_FLOAT_EQ(apply(Activation::kGeluErf, {1.0F})[0], 0.8413447461F);
  EXPECT_FLOAT_EQ(apply(Activation::kGeluErf, {-1.0F})[0], -0.1586552539F);
  EXPECT_FLOAT_EQ(apply(Activation::kGeluTanh, {1.0F})[0], 0.8411919906F);
  EXPECT_FLOAT_EQ(apply(Activation::kSilu, {1.0F})[0], 0.7310585786F);
  EXPECT_FLOAT_EQ(apply(Activation::kTanh, {0.5F})[0], 0.4621171573F);
}

INSTANTIATE_TEST_SUITE_P(Cpu, TileEpilogue, testing::ValuesIn(kCpuLevels),
                         [](const auto& info) { return std::string(name(info.param)); });

}  // namespace
}  // namespace rlx::cpu
