#include "compiler/passes/legalise.h"

#include "conformance/op_case.h"
#include "pass_run.h"

namespace rlx {
namespace {

constexpr std::string_view kSoftmax = R"(graph {
    %0 = input{name="x", type=f32[a, 8]}()
    %1 = softmax{axis=1}(%0)
    output "y" = %1
  })";

TEST(Legalise, DecomposesWhatTheTargetLacks) {
  const PassRun run = run_pass(legalise, kSoftmax, AnyTarget({"softmax"}));
  EXPECT_TRUE(run.changed);
  EXPECT_FALSE(has_op(run.after, "softmax"));
  EXPECT_TRUE(has_op(run.after, "exp"));
  EXPECT_TRUE(keeps_answers(run));
}

TEST(Legalise, KeepsWhatTheTargetHas) { EXPECT_TRUE(leaves_alone(legalise, kSoftmax)); }

TEST(Legalise, TheErrorListsAllNodes) {
  const std::string error = error_of([] {
    run_pass(legalise, R"(graph {
      %0 = input{name="x", type=f32[8]}()
      %1 = exp(%0) @"first"
      %2 = tanh(%1)
      %3 = exp(%2) @"second"
      output "y" = %3
    })",
             AnyTarget({"exp"}));
  });
  EXPECT_EQ(error,
            "any has no kernel for:\n  first (exp f32[8]): lacks it\n  second (exp f32[8]): lacks "
            "it");
}

}  // namespace
}  // namespace rlx
