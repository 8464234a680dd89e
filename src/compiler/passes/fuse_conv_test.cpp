#include "compiler/passes/fuse_conv.h"

#include "conformance/op_case.h"
#include "rlx/runtime.h"

namespace rlx {
namespace {

using Chain = std::function<Value(Value y, Value other)>;

struct Compiled {
  int fused = 0;
  std::string text;
  Tensor y;
};

// A convolution of x, what `chain` makes of it, and another value of the same shape.
Compiled compiled(const Chain& chain, bool biased, int optimization) {
  Graph g;
  const Value x = g.input("x", {f32, {2, 3, 6, 7}});
  const Value w = g.input("w", {f32, {4, 3, 3, 3}});
  const Value bias = g.input("bias", {f32, {4}});
  const Value other = g.input("other", {f32, {2, 4, 4, 5}});
  g.output("y", chain(conv(x, w, biased ? bias : Value()), other));
  const Executable exe = compile(std::move(g), {.optimization = optimization});
  Context context(exe);
  Compiled result{0, exe.text(), {}};
  const auto& counts = exe.report().counts;
  if (const auto at = counts.find("fused conv"); at != counts.end())
    result.fused = static_cast<int>(at->second);
  result.y = context
                 .run({{"x", random_tensor(f32, {2, 3, 6, 7}, 1)},
                       {"w", random_tensor(f32, {4, 3, 3, 3}, 2)},
                       {"bias", random_tensor(f32, {4}, 3)},
                       {"other", random_tensor(f32, {2, 4, 4, 5}, 4)}})
                 .at("y");
  return result;
}

// Fuses into one node that computes the same.
void expect_fused(const Chain& chain, bool biased = true) {
  const Compiled fused = compiled(chain, biased, 2);
  EXPECT_EQ(fused.fused, 1) << fused.text;
  for (const char* left : {"relu", "clamp", "add", "silu", "region"})
    EXPECT_EQ(fused.text.find(std::string("= ") + left), std::string::npos) << fused.text;
  const Compiled plain = compiled(chain, biased, 0);
  EXPECT_EQ(plain.fused, 0);
  EXPECT_THAT(doubles(fused.y), testing::Pointwise(testing::DoubleNear(1e-4), doubles(plain.y)));
}

Value six(Value y) { return clamp(y, scalar(y, 0), scalar(y, 6)); }

TEST(FuseConv, TakesActivationClampAndResidual) {
  expect_fused([](Value y, Value) { return relu(y); });
  expect_fused([](Value y, Value) { return silu(y); });
  expect_fused([](Value y, Value) { return six(y); });
  expect_fused([](Value y, Value other) { return y + other; });
  expect_fused([](Value y, Value other) { return relu(y + other); });
  expect_fused([](Value y, Value other) { return other + relu(y); });
  expect_fused([](Value y, Value other) { return six(other + y); });
  expect_fused([](Value y, Value other) { return six(y) + other; });
}

TEST(FuseConv, TakesAnAddedNumberOfEachChannelAsBias) {
  const auto column = [](Value y) {
    return y.graph().constant(Tensor({4, 1, 1}, {1.0F, 2.0F, 3.0F, 4.0F}));
  };
  expect_fused([&](Value y, Value) { return relu(y + column(y)); }, false);
  expect_fused([&](Value y, Value) { return y + reshape(column(y), {1, 4, 1, 1}); }, false);
}

TEST(FuseConv, LeavesWhatHasOtherReaders) {
  const auto fused = [](const Chain& chain) { return compiled(chain, true, 2).fused; };
  EXPECT_EQ(fused([](Value y, Value) { return y; }), 0);
  EXPECT_EQ(fused([](Value y, Value) { return relu(y) * y; }), 0);
  EXPECT_EQ(fused([](Value y, Value) { return y + y; }), 0);
  EXPECT_EQ(fused([](Value y, Value other) { return y * other; }), 0);
  EXPECT_EQ(fused([](Value y, Value other) {
              other.graph().output("too", y);
              return relu(y);
            }),
            0);
  // Limits that are no numbers, and a row where a residual would have the result's shape.
  EXPECT_EQ(fused([](Value y, Value other) { return clamp(y, other, scalar(y, 6)); }), 0);
  EXPECT_EQ(fused([](Value y, Value) {
              return y + y.graph().constant(Tensor({5}, {1.0F, 2.0F, 3.0F, 4.0F, 5.0F}));
            }),
            0);
}

}  // namespace
}  // namespace rlx
