#include <gtest/gtest.h>

#include <algorithm>

#include "compiler/fused.h"
#include "kernel_run.h"
#include "rlx/ops.h"

namespace rlx {
namespace {

using Build = std::function<Value(Value x, Value scale, Value bias)>;

OpCase norm_case(DType dtype, const Tensor::Dims& dims, std::int64_t weights, const Build& build,
                 double mean = 0) {
  return {.name = fmt::format("{}{}", name(dtype), to_string(dims)),
          .build =
              [=](Graph& g) {
                const Value x = g.input("x", {dtype, Shape::of(dims)});
                const Value scale = g.input("scale", {dtype, {weights}});
                const Value bias = g.input("bias", {dtype, {weights}});
                g.output("y", build(x, scale, bias));
              },
          .inputs = {{"x", random_tensor(dtype, dims, 1, mean - 2, mean + 2)},
                     {"scale", random_tensor(dtype, {weights}, 2)},
                     {"bias", random_tensor(dtype, {weights}, 3)}},
          .ulps = 8,
          .scale_ulps = 8};
}

Value layer(Value x, Value scale, Value bias) { return layer_norm(x, scale, bias); }
Value group(Value x, Value scale, Value bias) { return group_norm(x, scale, bias, 3); }

TEST(NormKernel, LayerNormOfEveryWidth) {
  for (std::int64_t cols = 1; cols <= 67; ++cols)
    check_kernel(norm_case(f32, {3, cols}, cols, layer));
}

TEST(NormKernel, EveryDtypeLargeEnoughForThreads) {
  for (const DType dtype : {f32, f64, f16, bf16}) {
    check_kernel(norm_case(dtype, {64, 384}, 384, layer));
    check_kernel(norm_case(dtype, {3, 9001}, 9001, layer));
    check_kernel(norm_case(dtype, {2, 6, 20, 21}, 6, group));
    check_kernel(norm_case(dtype, {5, 6, 1}, 6, group));
  }
}

// E[x^2] - E[x]^2 would have no correct digit here.
TEST(NormKernel, LargeMean) { check_kernel(norm_case(f32, {4, 1000}, 1000, layer, 1e4)); }

TEST(NormKernel, FusedAddNorm) {
  for (const bool rms : {false, true}) {
    const auto build = [=](Graph& g) {
      const Value x = g.input("x", {f32, {40, 500}}), r = g.input("r", {f32, {40, 500}});
      const Value scale = g.input("scale", {f32, {500}});
      const auto outputs =
          g.add(make_op(fused_add_norm_def, FusedAddNorm{.rms = rms}), {x, r, scale, {}});
      g.output("y", outputs[0]);
      g.output("sum", outputs[1]);
    };
    check_kernel({.name = rms ? "rms" : "layer",
                  .build = build,
                  .inputs = {{"x", random_tensor(f32, {40, 500}, 1)},
                             {"r", random_tensor(f32, {40, 500}, 2)},
                             {"scale", random_tensor(f32, {500}, 3)}},
                  .ulps = 8,
                  .scale_ulps = 8});
  }
}

TEST(NormKernel, RowAloneHasTheBitsOfTheBatch) {
  const OpCase batch = norm_case(f32, {30, 700}, 700, layer);
  const OpCase single = norm_case(f32, {1, 700}, 700, layer);
  Graph g, one;
  batch.build(g);
  single.build(one);
  const Tensor y = run_kernel(g, batch.inputs, {.threads = 4}).at("y");
  for (const std::int64_t row : {0, 13, 29}) {
    NamedTensors inputs = batch.inputs;
    inputs["x"] = rows_of(batch.inputs.at("x"), row, row + 1);
    EXPECT_TRUE(std::ranges::equal(run_kernel(one, inputs).at("y").bytes(),
                                   rows_of(y, row, row + 1).bytes()));
  }
}

}  // namespace
}  // namespace rlx
