#include <gtest/gtest.h>

#include "compiler/fused.h"
#include "ir/node.h"
#include "kernel_run.h"
#include "rlx/ops.h"

namespace rlx {
namespace {

/// A convolution of float32 with everything that a fused one can have.
struct FusedCase {
  Tensor::Dims x, w, y;
  FusedConv op;
  bool biased = true, residual = false;
};

OpCase fused_case(const FusedCase& c) {
  std::vector<Tensor> inputs{random_tensor(f32, c.x, 1), random_tensor(f32, c.w, 2)};
  if (c.biased) inputs.push_back(random_tensor(f32, {c.w[0]}, 3));
  if (c.residual) inputs.push_back(random_tensor(f32, c.y, 4));
  OpCase result = op_case("fused_conv", inputs, [=](const std::vector<Value>& in) {
    return in[0].graph().add1(
        make_op(fused_conv_def, c.op),
        {in[0], in[1], c.biased ? in[2] : Value(), c.residual ? in.back() : Value()});
  });
  result.ulps = 16;
  result.terms = 8;
  for (std::size_t axis = 1; axis < c.w.size(); ++axis)
    result.terms *= static_cast<double>(c.w[axis]);
  return result;
}

FusedConv square(std::int64_t padding, std::int64_t groups = 1) {
  FusedConv op;
  op.strides = op.dilations = {1, 1};
  op.padding_low = op.padding_high = {padding, padding};
  op.groups = groups;
  return op;
}

const FusedCase kDense{{2, 9, 7, 9}, {20, 9, 3, 3}, {2, 20, 7, 9}, square(1)};
const FusedCase kLongSum{{1, 512, 6, 7}, {15, 512, 1, 1}, {1, 15, 6, 7}, square(0)};
const FusedCase kDepthwise{{2, 5, 7, 40}, {5, 1, 3, 3}, {2, 5, 7, 40}, square(1, 5)};

TEST(ConvKernel, Epilogues) {
  for (FusedCase c : {kDense, kLongSum, kDepthwise}) {
    for (int i = 0; i < 16; ++i) {
      c.biased = (i & 1) != 0;
      c.residual = (i & 2) != 0;
      c.op.activation_last = (i & 4) != 0;
      c.op.activation = (i & 8) != 0 ? FusedActivation::relu : FusedActivation::none;
      SCOPED_TRACE(i);
      check_kernel(fused_case(c), "");
      c.op.clamp_low = -1;
      c.op.clamp_high = 2;
      check_kernel(fused_case(c), "");
      c.op.clamp_low = -INFINITY;
      c.op.clamp_high = INFINITY;
    }
  }
}

TEST(ConvKernel, RowsComputeDenseToo) {
  FusedCase dense = kDense;
  dense.residual = true;
  dense.op.activation = FusedActivation::relu;
  check_kernel(fused_case(dense), "fused_conv_rows");
}

// Tiles, slices of the sum and parts of rows are cut differently for each size; bits must not show.
TEST(ConvKernel, SampleAloneHasTheBitsOfTheBatch) {
  const auto convolved = [](const Tensor& x, const Tensor& w, int threads) {
    Graph g;
    g.output(
        "y",
        conv(g.input("x", {f32, Shape::of(x.dims())}), g.input("w", {f32, Shape::of(w.dims())}), {},
             {.padding_low = {1, 1}, .padding_high = {1, 1}, .groups = x.dims()[1] / w.dims()[1]}));
    return run_kernel(g, {{"x", x}, {"w", w}}, {.threads = threads}).at("y");
  };
  for (const std::int64_t channels : {1, 60}) {
    const Tensor x = random_tensor(f32, {5, 60, 17, 19}, 5);
    const Tensor w = random_tensor(f32, {60, channels, 3, 3}, 6);
    const Tensor all = convolved(x, w, 4);
    for (std::int64_t i = 0; i < 5; ++i) {
      const Tensor one = convolved(rows_of(x, i, i + 1), w, 3);
      EXPECT_TRUE(std::ranges::equal(one.bytes(), rows_of(all, i, i + 1).bytes())) << i;
    }
  }
}

// Sizes around panels, tiles and slices of the sum.
TEST(ConvKernel, ManySizes) {
  for (const std::int64_t pixels : {1, 7, 15, 16, 17, 31, 32, 33, 63, 65, 300}) {
    for (const std::int64_t channels : {2, 3, 383, 385, 800}) {
      FusedCase c{{1, channels, 1, pixels}, {3, channels, 1, 1}, {}, square(0)};
      c.w[0] = pixels % 2 == 0 ? 29 : 3;
      check_kernel(fused_case(c), "fused_conv_gemm_f32");
    }
  }
}

}  // namespace
}  // namespace rlx
