#include "ops/conv.h"

#include "conformance/op_case.h"

namespace rlx {
namespace {

/// As random_tensor, with NaN and infinities strewn in.
Tensor not_all_finite(DType dtype, Tensor::Dims dims, std::uint64_t seed) {
  constexpr double kOdd[] = {NAN, INFINITY, -INFINITY};
  std::vector<double> values = doubles(random_tensor(dtype, dims, seed));
  std::mt19937_64 engine(seed + 1);
  for (double& v : values) {
    if (engine() % 16 == 0) v = kOdd[engine() % std::size(kOdd)];
  }
  return tensor_of(dtype, std::move(dims), values);
}

// ---------------------------------------------------------------- convolution

struct ConvCase {
  std::string name;
  Tensor::Dims x, w;
  ConvOptions options = {};
  DType dtype = f32;
  bool special = false;
};

OpCase conv_case(const ConvCase& c, bool biased) {
  const auto make = [&](Tensor::Dims dims, std::uint64_t seed) {
    return c.special ? not_all_finite(c.dtype, std::move(dims), seed)
                     : random_tensor(c.dtype, std::move(dims), seed);
  };
  std::vector<Tensor> inputs{make(c.x, 3), random_tensor(c.dtype, c.w, 4)};
  if (biased) inputs.push_back(random_tensor(c.dtype, {c.w[0]}, 5));
  OpCase result = op_case(c.name + (biased ? "_biased" : "_plain"), inputs,
                          [=, options = c.options](const std::vector<Value>& in) {
                            return conv(in[0], in[1], biased ? in[2] : Value(), options);
                          });
  result.terms = 1;
  for (std::size_t axis = 1; axis < c.w.size(); ++axis)
    result.terms += static_cast<double>(c.w[axis]);
  result.terms *= 4;
  return result;
}

std::vector<ConvCase> conv_shapes() {
  const ConvOptions same{.padding_low = {1, 1}, .padding_high = {1, 1}};
  const ConvOptions halves{.strides = {2, 2}, .padding_low = {1, 1}, .padding_high = {1, 1}};
  const auto grouped = [](ConvOptions options, std::int64_t groups) {
    options.groups = groups;
    return options;
  };
  return {
      {"pointwise", {2, 5, 7, 6}, {9, 5, 1, 1}},
      {"pointwise_strided", {2, 5, 9, 7}, {4, 5, 1, 1}, {.strides = {2, 3}}},
      {"pointwise_long_sum", {1, 512, 5, 5}, {17, 512, 1, 1}},
      {"k3", {2, 3, 8, 9}, {5, 3, 3, 3}, same},
      {"k3_one_row_of_windows", {1, 3, 3, 50}, {5, 3, 3, 3}},
      {"k3_strided", {1, 4, 11, 12}, {6, 4, 3, 3}, halves},
      {"k3_wide", {1, 2, 5, 70}, {15, 2, 3, 3}, same},
      {"k3_long_sum", {1, 60, 7, 7}, {30, 60, 3, 3}, same},
      {"k7_strided",
       {1, 3, 20, 23},
       {8, 3, 7, 7},
       {.strides = {2, 2}, .padding_low = {3, 3}, .padding_high = {3, 3}}},
      {"stride_3", {1, 2, 13, 40}, {5, 2, 2, 5}, {.strides = {1, 3}}},
      {"asymmetric",
       {2, 3, 6, 7},
       {5, 3, 3, 4},
       {.strides = {1, 2}, .padding_low = {0, 3}, .padding_high = {2, 1}}},
      {"dilated",
       {1, 3, 12, 11},
       {5, 3, 3, 2},
       {.padding_low = {2, 0}, .padding_high = {1, 3}, .dilations = {2, 3}}},
      {"padding_beyond_kernel",
       {1, 2, 2, 3},
       {6, 2, 2, 2},
       {.padding_low = {4, 5}, .padding_high = {3, 6}}},
      {"groups", {2, 6, 6, 5}, {10, 3, 3, 3}, grouped(same, 2)},
      {"groups_strided", {1, 8, 7, 7}, {12, 2, 3, 3}, grouped(halves, 4)},
      {"depthwise", {2, 7, 9, 21}, {7, 1, 3, 3}, grouped(same, 7)},
      {"depthwise_wide", {1, 3, 6, 131}, {3, 1, 3, 3}, grouped(same, 3)},
      {"depthwise_strided", {1, 5, 12, 19}, {5, 1, 3, 3}, grouped(halves, 5)},
      {"depthwise_pairs", {2, 4, 8, 9}, {8, 1, 5, 3}, grouped(same, 4)},
      {"depthwise_many", {1, 3, 6, 7}, {18, 1, 3, 3}, grouped(same, 3)},
      {"depthwise_dilated",
       {1, 4, 14, 17},
       {4, 1, 3, 3},
       {.strides = {2, 3},
        .padding_low = {1, 4},
        .padding_high = {3, 0},
        .dilations = {3, 2},
        .groups = 4}},
      {"depthwise_tall", {1, 2, 300, 40}, {2, 1, 3, 3}, grouped(same, 2)},
      {"line", {2, 4, 50}, {6, 4, 5}, {.padding_low = {2}, .padding_high = {2}}},
      {"line_strided", {1, 3, 41}, {4, 3, 4}, {.strides = {3}, .dilations = {2}}},
      {"line_depthwise",
       {2, 5, 37},
       {5, 1, 7},
       {.padding_low = {6}, .padding_high = {0}, .groups = 5}},
      {"column", {1, 3, 40, 1}, {5, 3, 4, 1}},
      {"volume", {2, 2, 5, 6, 7}, {5, 2, 3, 2, 3}},
      {"volume_all",
       {1, 4, 6, 7, 8},
       {8, 2, 2, 3, 2},
       {.strides = {2, 1, 3},
        .padding_low = {1, 0, 2},
        .padding_high = {0, 2, 1},
        .dilations = {1, 2, 2},
        .groups = 2}},
      {"volume_depthwise",
       {1, 3, 5, 6, 18},
       {3, 1, 3, 3, 3},
       {.padding_low = {1, 1, 1}, .padding_high = {1, 1, 1}, .groups = 3}},
      {"no_samples", {0, 3, 5, 5}, {4, 3, 3, 3}, same},
      {"no_channels", {2, 0, 4, 4}, {3, 0, 3, 3}, same},
      {"padding_alone",
       {1, 2, 0, 3},
       {5, 2, 1, 2},
       {.padding_low = {1, 0}, .padding_high = {1, 0}}},
      {"f64", {2, 3, 8, 9}, {5, 3, 3, 3}, same, f64},
      {"f64_depthwise", {1, 5, 12, 19}, {5, 1, 3, 3}, grouped(halves, 5), f64},
      {"f16", {2, 3, 8, 9}, {5, 3, 3, 3}, same, f16},
      {"f16_strided", {1, 4, 11, 12}, {6, 2, 3, 3}, grouped(halves, 2), f16},
      {"bf16", {2, 3, 8, 9}, {5, 3, 3, 3}, same, bf16},
      {"special", {1, 3, 9, 10}, {20, 3, 2, 2}, {}, f32, true},
      {"special_depthwise", {1, 3, 9, 40}, {3, 1, 2, 2}, {.groups = 3}, f32, true},
  };
}

std::vector<OpCase> conv_cases() {
  std::vector<OpCase> cases;
  for (const ConvCase& c : conv_shapes()) {
    for (const bool biased : {false, true}) cases.push_back(conv_case(c, biased));
  }
  return cases;
}
INSTANTIATE_TEST_SUITE_P(Conv, OpConformance, testing::ValuesIn(conv_cases()), case_name);

/// From -n/2 upwards, again and again.
Tensor cycle(Tensor::Dims dims, int n) {
  std::size_t size = 1;
  for (const std::int64_t d : dims) size *= static_cast<std::size_t>(d);
  std::vector<double> values(size);
  for (std::size_t i = 0; i < size; ++i) values[i] = static_cast<int>(i % n) - n / 2;
  return tensor_of(f32, std::move(dims), values);
}

std::vector<double> convolved(const std::vector<Tensor>& inputs, const ConvOptions& options) {
  return doubles(evaluated(inputs, [&](const std::vector<Value>& in) {
    return conv(in[0], in[1], in.size() > 2 ? in[2] : Value(), options);
  }));
}

// From torch.nn.functional.conv{1,2,3}d on the same integers.
TEST(Conv, KnownValues) {
  EXPECT_EQ(convolved({cycle({1, 2, 7}, 7), cycle({2, 2, 3}, 5)},
                      {.strides = {2}, .padding_low = {2}, .padding_high = {1}}),
            (std::vector<double>{6, 3, -1, -5, 0, 1, -1, -3}));
  EXPECT_EQ(convolved({cycle({1, 1, 3, 3, 3}, 7), cycle({1, 1, 2, 2, 2}, 5)}, {}),
            (std::vector<double>{5, 2, -4, 7, 6, -4, -10, -6}));
  EXPECT_EQ(
      convolved({cycle({2, 4, 5, 4}, 7), cycle({6, 2, 3, 2}, 5),
                 Tensor({6}, {0.0F, 1.0F, 2.0F, 3.0F, 4.0F, 5.0F})},
                {.strides = {2, 1},
                 .padding_low = {1, 0},
                 .padding_high = {1, 0},
                 .dilations = {1, 2},
                 .groups = 2}),
      (std::vector<double>{-8, 0,  -5, 6,  -3, -3, -6, 5,  12, -1, 5,  -8, 6, -5, -11, 17, 8, 12,
                           -2, 11, 12, 4,  9,  -2, 1,  1,  -2, 15, 8,  14, 9, -4, -1,  -4, 2, -5,
                           -5, 10, 14, 11, 11, -3, -1, -4, -6, 2,  1,  9,  8, -3, -11, 3,  6, -4,
                           -5, -6, -5, 1,  -3, 7,  15, 1,  -7, 10, 12, 4,  5, 13, 11,  -6, 2, 16}));
}

TEST(Conv, NamesWhatDoesNotFit) {
  Graph g;
  const Value x = g.input("x", {f32, {2, 6, 8, 8}});
  int count = 0;
  const auto weights = [&](Shape shape) {
    return g.input("w" + std::to_string(count++), {f32, std::move(shape)});
  };
  EXPECT_THROW((void)conv(x, weights({4, 5, 3, 3})), ShapeError);
  EXPECT_THROW((void)conv(x, weights({4, 6, 3})), ShapeError);
  EXPECT_THROW((void)conv(x, weights({4, 6, 9, 3})), ShapeError);
  EXPECT_THROW((void)conv(x, weights({4, 3, 3, 3}), {}, {.groups = 3}), ShapeError);
  EXPECT_THROW((void)conv(x, weights({4, 6, 3, 3}), weights({5})), ShapeError);
  EXPECT_THROW((void)conv(x, weights({4, 6, 3, 3}), {}, {.strides = {1}}), InvalidArgument);
  EXPECT_THROW((void)conv(x, weights({4, 6, 3, 3}), {}, {.strides = {1, 0}}), InvalidArgument);
}

// ---------------------------------------------------------------- pooling

struct PoolCase {
  std::string name;
  Tensor::Dims x;
  PoolOptions options;
  DType dtype = f32;
  bool special = false;
};

std::vector<PoolCase> pool_shapes() {
  return {
      {"k2", {2, 3, 8, 10}, {.kernel = {2, 2}, .strides = {2, 2}}},
      {"k3", {2, 3, 9, 37}, {.kernel = {3, 3}, .padding_low = {1, 1}, .padding_high = {1, 1}}},
      {"k3_strided",
       {1, 3, 12, 21},
       {.kernel = {3, 3}, .strides = {2, 2}, .padding_low = {1, 1}, .padding_high = {1, 1}}},
      {"k3_padding_counts",
       {1, 3, 12, 21},
       {.kernel = {3, 3},
        .strides = {2, 2},
        .padding_low = {1, 1},
        .padding_high = {1, 1},
        .count_include_pad = true}},
      {"ceil", {1, 2, 6, 7}, {.kernel = {3, 2}, .strides = {2, 2}, .ceil_mode = true}},
      {"ceil_padding_counts",
       {1, 2, 6, 6},
       {.kernel = {3, 3},
        .strides = {2, 2},
        .padding_low = {1, 0},
        .padding_high = {1, 2},
        .ceil_mode = true,
        .count_include_pad = true}},
      {"asymmetric",
       {1, 2, 7, 9},
       {.kernel = {2, 4}, .strides = {1, 3}, .padding_low = {0, 3}, .padding_high = {1, 2}}},
      {"dilated",
       {1, 2, 11, 13},
       {.kernel = {3, 2}, .padding_low = {2, 1}, .padding_high = {0, 2}, .dilations = {2, 3}}},
      {"whole_plane", {2, 19, 7, 7}, {.kernel = {7, 7}}},
      {"tall", {1, 2, 200, 33}, {.kernel = {3, 3}, .strides = {2, 1}}},
      {"line", {2, 3, 50}, {.kernel = {5}, .strides = {2}}},
      {"rows_only", {2, 3, 9, 20}, {.kernel = {2, 1}, .strides = {2, 1}}},
      {"volume",
       {1, 2, 5, 6, 7},
       {.kernel = {2, 3, 2},
        .strides = {2, 1, 2},
        .padding_low = {1, 1, 0},
        .padding_high = {0, 1, 1}}},
      {"padding_alone", {1, 1, 2, 3}, {.kernel = {1, 2}, .padding_low = {0, 4}}},
      {"no_samples", {0, 3, 6, 6}, {.kernel = {2, 2}}},
      {"f64", {1, 3, 9, 20}, {.kernel = {3, 3}}, f64},
      {"f16", {1, 3, 9, 20}, {.kernel = {3, 3}, .strides = {1, 2}}, f16},
      {"bf16", {1, 3, 9, 20}, {.kernel = {3, 3}}, bf16},
      {"special", {1, 4, 9, 40}, {.kernel = {2, 2}}, f32, true},
      {"special_strided", {1, 4, 9, 40}, {.kernel = {2, 3}, .strides = {2, 2}}, f16, true},
  };
}

OpCase pool_case(const PoolCase& c, Pooling kind) {
  const Tensor x =
      c.special ? not_all_finite(c.dtype, c.x, 7) : random_tensor(c.dtype, c.x, 7, -3, -1);
  OpCase result = op_case((kind == Pooling::max ? "max_" : "average_") + c.name, {x},
                          [=, options = c.options](const std::vector<Value>& in) {
                            return pool(in[0], kind, options);
                          });
  if (kind == Pooling::average) {
    result.terms = 1;
    for (const std::int64_t k : c.options.kernel) result.terms *= static_cast<double>(k);
  } else {
    result.ulps = 0;
  }
  return result;
}

std::vector<OpCase> pool_cases() {
  std::vector<OpCase> cases;
  for (const PoolCase& c : pool_shapes()) {
    for (const Pooling kind : {Pooling::max, Pooling::average}) cases.push_back(pool_case(c, kind));
  }
  return cases;
}
INSTANTIATE_TEST_SUITE_P(Pool, OpConformance, testing::ValuesIn(pool_cases()), case_name);

std::vector<double> pooled(const Tensor& x, Pooling kind, const PoolOptions& options) {
  return doubles(
      evaluated({x}, [&](const std::vector<Value>& in) { return pool(in[0], kind, options); }));
}

// From torch.nn.functional.{max,avg}_pool2d on the same integers.
TEST(Pool, KnownValues) {
  const Tensor x = cycle({1, 1, 6, 6}, 7);
  PoolOptions options{
      .kernel = {3, 3}, .strides = {2, 2}, .padding_low = {1, 1}, .padding_high = {1, 1}};
  options.count_include_pad = true;
  const auto ninths = [](std::vector<double> values) {
    for (double& v : values) v = static_cast<float>(v / 9);
    return values;
  };
  EXPECT_EQ(pooled(x, Pooling::average, options), ninths({-5, -9, 3, 8, -6, -9, 3, 11, -6}));
  options.ceil_mode = true;
  EXPECT_THAT(pooled(x, Pooling::average, options),
              testing::Pointwise(
                  testing::DoubleNear(1e-6),
                  {-0.5555556, -1.0, 0.3333333, 0.5, 0.8888889, -0.6666667, -1.0, 0.0, 0.3333333,
                   1.2222222, -0.6666667, -1.0, -0.1666667, 0.5, 0.3333333, -0.75}));
  options.count_include_pad = false;
  EXPECT_THAT(pooled(x, Pooling::average, options),
              testing::Pointwise(testing::DoubleNear(1e-6),
                                 {-1.25, -1.5, 0.5, 1.5, 1.3333333, -0.6666667, -1.0, 0.0, 0.5,
                                  1.2222222, -0.6666667, -2.0, -0.5, 1.0, 0.6666667, -3.0}));
  options.ceil_mode = false;
  options.dilations = {2, 2};
  EXPECT_EQ(pooled(x, Pooling::max, options), (std::vector<double>{2, 2, 2, 2}));
}

TEST(Pool, NotANumberWinsAndPaddingNever) {
  const Tensor x({1, 1, 4}, {NAN, -5.0F, -6.0F, -7.0F});
  const auto y = pooled(x, Pooling::max, {.kernel = {2}, .padding_low = {1}, .padding_high = {1}});
  ASSERT_EQ(y.size(), 5U);
  EXPECT_TRUE(std::isnan(y[0]) && std::isnan(y[1]));
  EXPECT_THAT(std::vector<double>(y.begin() + 2, y.end()), testing::ElementsAre(-5, -6, -7));
}

TEST(Pool, NamesWhatDoesNotFit) {
  Graph g;
  const Value x = g.input("x", {f32, {2, 6, 8, 8}});
  EXPECT_THROW((void)pool(x, Pooling::max, {.kernel = {2}}), InvalidArgument);
  EXPECT_THROW((void)pool(x, Pooling::max, {.kernel = {2, 0}}), InvalidArgument);
  EXPECT_THROW((void)pool(x, Pooling::max, {.kernel = {9, 2}}), ShapeError);
  EXPECT_THROW((void)pool(g.input("i", {i32, {1, 1, 4}}), Pooling::max, {.kernel = {2}}),
               InvalidArgument);
}

}  // namespace
}  // namespace rlx
