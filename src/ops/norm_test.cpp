#include "ops/norm.h"

#include "conformance/op_case.h"

namespace rlx {
namespace {

using Builder = std::function<Value(Value x, Value scale, Value bias)>;

// One norm with weights of the shape `weights`, and without.
void add_cases(std::vector<OpCase>& cases, const std::string& name, DType dtype, Tensor::Dims dims,
               Tensor::Dims weights, const Builder& norm, bool special = false) {
  for (const bool affine : {false, true}) {
    OpCase c{.name = name + (affine ? "_affine" : "_plain"),
             .build = {},
             .inputs = {},
             .ulps = 16,
             .scale_ulps = 16};
    c.inputs["x"] = special ? special_tensor(dtype, dims, 3) : random_tensor(dtype, dims, 3, -3, 5);
    if (affine) {
      c.inputs["scale"] = random_tensor(dtype, weights, 4);
      c.inputs["bias"] = random_tensor(dtype, weights, 5);
    }
    c.build = [=](Graph& g) {
      const Value x = g.input("x", {dtype, Shape::of(dims)});
      Value scale;
      Value bias;
      if (affine) {
        scale = g.input("scale", {dtype, Shape::of(weights)});
        bias = g.input("bias", {dtype, Shape::of(weights)});
      }
      g.output("y", norm(x, scale, bias));
    };
    cases.push_back(std::move(c));
  }
}

std::vector<OpCase> norm_cases() {
  std::vector<OpCase> cases;
  const auto layer = [](std::int64_t axis) {
    return [=](Value x, Value scale, Value bias) { return layer_norm(x, scale, bias, 1e-5, axis); };
  };
  for (const std::int64_t n : {1, 3, 8, 17, 64, 131, 768, 3000})
    add_cases(cases, "layer_" + std::to_string(n), f32, {4, n}, {n}, layer(-1));
  add_cases(cases, "layer_two_axes", f32, {3, 4, 5}, {4, 5}, layer(1));
  add_cases(cases, "layer_no_rows", f32, {0, 8}, {8}, layer(-1));
  add_cases(cases, "layer_f64", f64, {3, 21}, {21}, layer(-1));
  add_cases(cases, "layer_f16", f16, {3, 21}, {21}, layer(-1));
  add_cases(cases, "layer_bf16", bf16, {3, 21}, {21}, layer(-1));
  const Builder group = [](Value x, Value scale, Value bias) {
    return group_norm(x, scale, bias, 2);
  };
  add_cases(cases, "group_2d", f32, {2, 6, 3, 5}, {6}, group);
  add_cases(cases, "group_flat", f32, {3, 4}, {4}, group);
  // RMS norm takes no bias: that input stays unused.
  for (const std::int64_t n : {1, 5, 16, 67, 768}) {
    add_cases(cases, "rms_" + std::to_string(n), f32, {4, n}, {n},
              [](Value x, Value scale, Value) { return rms_norm(x, scale, 1e-6); });
  }
  return cases;
}
INSTANTIATE_TEST_SUITE_P(Norm, OpConformance, testing::ValuesIn(norm_cases()), case_name);

std::vector<OpCase> batch_norm_cases() {
  std::vector<OpCase> cases;
  for (const std::int64_t axis : {1, 3}) {
    const Tensor::Dims dims{2, 5, 3, 7};
    const Tensor::Dims channels{dims[static_cast<std::size_t>(axis)]};
    OpCase c{.name = "batch_axis_" + std::to_string(axis),
             .build = {},
             .inputs = {{"x", random_tensor(f32, dims, 1)}},
             .ulps = 16,
             .scale_ulps = 8};
    for (const char* name : {"scale", "bias", "mean"})
      c.inputs[name] = random_tensor(f32, channels, 2);
    c.inputs["variance"] = random_tensor(f32, channels, 3, 0.1, 2);
    c.build = [=](Graph& g) {
      const TensorType type{f32, Shape::of(channels)};
      const Value x = g.input("x", {f32, Shape::of(dims)});
      const Value scale = g.input("scale", type);
      const Value bias = g.input("bias", type);
      const Value mean = g.input("mean", type);
      g.output("y", batch_norm(x, scale, bias, mean, g.input("variance", type), 1e-5, axis));
    };
    cases.push_back(std::move(c));
  }
  return cases;
}
INSTANTIATE_TEST_SUITE_P(BatchNorm, OpConformance, testing::ValuesIn(batch_norm_cases()),
                         case_name);

// (x - 2.5) / sqrt(1.25), by hand.
TEST(Norm, KnownValues) {
  Graph g;
  g.output("y", layer_norm(g.input("x", {f32, {1, 4}}), {}, {}, 0));
  const Tensor y = evaluate_graph(g, {{"x", Tensor({1, 4}, {1.0F, 2.0F, 3.0F, 4.0F})}}).at("y");
  EXPECT_THAT(y.values<float>(),
              testing::Pointwise(testing::FloatNear(1e-6F),
                                 {-1.34164079F, -0.44721360F, 0.44721360F, 1.34164079F}));
}

// The difference of squares would cancel completely here.
TEST(Norm, LargeMeanKeepsItsVariance) {
  Graph g;
  g.output("y", layer_norm(g.input("x", {f32, {1, 2}}), {}, {}, 0));
  const Tensor y = evaluate_graph(g, {{"x", Tensor({1, 2}, {1e6F, 1e6F + 1})}}).at("y");
  EXPECT_THAT(y.values<float>(), testing::ElementsAre(-1, 1));
}

TEST(Norm, NamesWhatDoesNotFit) {
  Graph g;
  const Value x = g.input("x", {f32, {2, 6, 4}});
  EXPECT_THROW((void)layer_norm(x, g.input("w", {f32, {5}}), {}), ShapeError);
  EXPECT_THROW((void)group_norm(x, {}, {}, 4), ShapeError);
  EXPECT_THROW((void)layer_norm(x, {}, {}, -1.0), InvalidArgument);
  EXPECT_THROW((void)rms_norm(g.input("i", {i32, {3}}), {}), InvalidArgument);
}

}  // namespace
}  // namespace rlx
