#include "compiler/passes/fuse_regions.h"

#include "pass_run.h"

namespace rlx {
namespace {

TEST(FuseRegions, AChainWithBroadcastAndConstants) {
  const PassRun run = run_pass(fuse_regions, R"(graph {
    %0 = input{name="x", type=f32[a, 8]}()
    %1 = input{name="b", type=f32[8]}()
    %2 = add(%0, %1)
    %3 = constant{value=f32[](0.5)}()
    %4 = mul(%2, %3)
    %5 = exp(%4)
    output "y" = %5
  })");
  EXPECT_TRUE(is_graph(run.after, R"(graph {
    %0 = input{name="x", type=f32[a, 8]}()
    %1 = input{name="b", type=f32[8]}()
    %2 = region{body=graph {
      %0 = input{name="x0", type=f32[a, 8]}()
      %1 = input{name="x1", type=f32[8]}()
      %2 = add(%0, %1)
      %3 = constant{value=f32[](0.5)}()
      %4 = mul(%2, %3)
      %5 = exp(%4)
      output "y0" = %5
    }}(%0, %1)
    output "y" = %2
  })"));
  EXPECT_EQ(run.count("fused region"), 1);
  EXPECT_TRUE(keeps_answers(run, 0));
}

TEST(FuseRegions, ADiamondIsOneRegion) {
  const PassRun run = run_pass(fuse_regions, R"(graph {
    %0 = input{name="x", type=f32[a, 8]}()
    %1 = neg(%0)
    %2 = exp(%1)
    %3 = tanh(%1)
    %4 = mul(%2, %3)
    output "y" = %4
  })");
  EXPECT_EQ(run.count("fused region"), 1);
  EXPECT_FALSE(has_op(run.after, "neg"));
  EXPECT_TRUE(keeps_answers(run, 0));
}

TEST(FuseRegions, CastsJoin) {
  const PassRun run = run_pass(fuse_regions, R"(graph {
    %0 = input{name="x", type=f16[a, 8]}()
    %1 = cast{to=f32}(%0)
    %2 = exp(%1)
    %3 = cast{to=f16}(%2)
    output "y" = %3
  })");
  EXPECT_EQ(run.count("fused region"), 1);
  EXPECT_FALSE(has_op(run.after, "cast"));
  EXPECT_TRUE(keeps_answers(run, 0));
}

TEST(FuseRegions, AnInnerOutputIsASecondOutput) {
  const PassRun run = run_pass(fuse_regions, R"(graph {
    %0 = input{name="x", type=f32[a, 8]}()
    %1 = neg(%0)
    %2 = exp(%1)
    output "inner" = %1
    output "y" = %2
  })");
  EXPECT_TRUE(is_graph(run.after, R"(graph {
    %0 = input{name="x", type=f32[a, 8]}()
    %1, %2 = region{body=graph {
      %0 = input{name="x0", type=f32[a, 8]}()
      %1 = neg(%0)
      %2 = exp(%1)
      output "y0" = %1
      output "y1" = %2
    }}(%0)
    output "inner" = %1
    output "y" = %2
  })"));
  EXPECT_TRUE(keeps_answers(run, 0));
}

TEST(FuseRegions, AStateIsUpdatedByAnOutput) {
  const PassRun run = run_pass(fuse_regions, R"(graph {
    %0 = input{name="x", type=f32[4]}()
    %1 = state{name="c", type=f32[4]}()
    %2 = add(%0, %1)
    %3 = tanh(%2)
    output "y" = %3
    update %1 = %2
  })");
  EXPECT_EQ(run.count("fused region"), 1);
  EXPECT_FALSE(has_op(run.after, "add"));
  EXPECT_EQ(run.after.updates()[0].next, Value(run.after.outputs()[0].value.node(), 0));
  EXPECT_TRUE(keeps_answers(run, 0));
}

// `exp` is read by the sum, whose result the region would read: joined, they would wait for each
// other.
TEST(FuseRegions, NoRegionIsLeftAndEnteredAgain) {
  const PassRun run = run_pass(fuse_regions, R"(graph {
    %0 = input{name="x", type=f32[a, 8]}()
    %1 = exp(%0)
    %2 = reduce{kind=sum, axes=[1], keep_dims=true}(%1)
    %3 = div(%1, %2)
    %4 = neg(%3)
    output "y" = %4
  })");
  EXPECT_EQ(run.count("fused region"), 1);
  EXPECT_TRUE(has_op(run.after, "exp"));
  EXPECT_FALSE(has_op(run.after, "div"));
  EXPECT_TRUE(keeps_answers(run, 0));
}

TEST(FuseRegions, OneOperatorStaysAsItIs) {
  EXPECT_TRUE(leaves_alone(fuse_regions, R"(graph {
    %0 = input{name="x", type=f32[a, 8]}()
    %1 = exp(%0)
    output "y" = %1
  })"));
}

// In one region the exponential of [8] would be computed for each row again.
TEST(FuseRegions, ASmallerValueStaysOutside) {
  EXPECT_TRUE(leaves_alone(fuse_regions, R"(graph {
    %0 = input{name="x", type=f32[a, 8]}()
    %1 = input{name="b", type=f32[8]}()
    %2 = exp(%1)
    %3 = add(%0, %2)
    output "y" = %3
  })"));
}

TEST(FuseRegions, LeadingOnesDoNotMakeAValueSmaller) {
  const PassRun run = run_pass(fuse_regions, R"(graph {
    %0 = input{name="x", type=f32[1, 8]}()
    %1 = input{name="b", type=f32[8]}()
    %2 = exp(%1)
    %3 = add(%0, %2)
    output "y" = %3
  })");
  EXPECT_EQ(run.count("fused region"), 1);
  EXPECT_FALSE(has_op(run.after, "exp"));
  EXPECT_TRUE(keeps_answers(run, 0));
}

TEST(FuseRegions, TablesAreInputs) {
  const PassRun run = run_pass(fuse_regions, R"(graph {
    %0 = input{name="x", type=f32[a, 2]}()
    %1 = constant{value=f32[2](1, 2)}()
    %2 = add(%0, %1)
    %3 = exp(%2)
    output "y" = %3
  })");
  EXPECT_TRUE(is_graph(run.after, R"(graph {
    %0 = input{name="x", type=f32[a, 2]}()
    %1 = constant{value=f32[2](1, 2)}()
    %2 = region{body=graph {
      %0 = input{name="x0", type=f32[a, 2]}()
      %1 = input{name="x1", type=f32[2]}()
      %2 = add(%0, %1)
      %3 = exp(%2)
      output "y0" = %3
    }}(%0, %1)
    output "y" = %2
  })"));
  EXPECT_TRUE(keeps_answers(run, 0));
}

TEST(FuseRegions, LongChainsAreCut) {
  std::string text = "graph { %0 = input{name=\"x\", type=f32[a, 8]}()\n";
  for (int i = 1; i <= 50; ++i) text += fmt::format("%{} = tanh(%{})\n", i, i - 1);
  const PassRun run = run_pass(fuse_regions, text + "output \"y\" = %50 }");
  EXPECT_EQ(run.count("fused region"), 3);
  EXPECT_TRUE(keeps_answers(run, 0));
}

TEST(FuseRegions, NothingChangesWhereTheTargetHasNoRegions) {
  const PassRun run = run_pass(fuse_regions, R"(graph {
    %0 = input{name="x", type=f32[8]}()
    %1 = neg(%0)
    %2 = exp(%1)
    output "y" = %2
  })",
                               AnyTarget({"region"}));
  EXPECT_FALSE(run.changed);
  EXPECT_TRUE(has_op(run.after, "exp"));
}

}  // namespace
}  // namespace rlx
