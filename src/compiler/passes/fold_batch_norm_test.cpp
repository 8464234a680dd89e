#include "compiler/passes/fold_batch_norm.h"

#include "conformance/op_case.h"
#include "rlx/runtime.h"

namespace rlx {
namespace {

struct Result {
  int folded = 0;
  Tensor y;
};

Result run(bool biased, bool affine, bool as_params, int optimization) {
  Graph g;
  NamedTensors inputs{{"x", random_tensor(f32, {2, 3, 6, 7}, 1)}};
  const auto weight = [&](const char* name, Tensor::Dims dims, double low, double high) {
    const Tensor t = random_tensor(f32, dims, 2, low, high);
    if (as_params) return g.param(name, t);
    inputs[name] = t;
    return g.input(name, {f32, Shape::of(dims)});
  };
  const Value x = g.input("x", {f32, {2, 3, 6, 7}});
  const Value w = weight("w", {4, 3, 3, 3}, -1, 1);
  const Value y = conv(x, w, biased ? weight("b", {4}, -1, 1) : Value());
  const Value scale = affine ? weight("scale", {4}, 1, 2) : Value();
  const Value bias = affine ? weight("bias", {4}, -1, 1) : Value();
  g.output("y", relu(batch_norm(y, scale, bias, weight("mean", {4}, -1, 1),
                                weight("variance", {4}, 0.5, 2), 1e-3)));
  const Executable exe = compile(std::move(g), {.optimization = optimization});
  const auto& counts = exe.report().counts;
  const auto at = counts.find("folded batch norm");
  Context context(exe);
  return {at == counts.end() ? 0 : at->second, context.run(inputs).at("y")};
}

TEST(FoldBatchNorm, GivesTheSameResults) {
  for (const bool biased : {false, true}) {
    for (const bool affine : {false, true}) {
      const Result folded = run(biased, affine, true, 2);
      EXPECT_EQ(folded.folded, 1);
      const Result plain = run(biased, affine, true, 0);
      EXPECT_EQ(plain.folded, 0);
      EXPECT_THAT(doubles(folded.y),
                  testing::Pointwise(testing::DoubleNear(1e-4), doubles(plain.y)));
    }
  }
}

TEST(FoldBatchNorm, LeavesWeightsThatChangeBetweenRuns) {
  EXPECT_EQ(run(true, true, false, 2).folded, 0);
}

}  // namespace
}  // namespace rlx
