#include "compiler/passes/merge_duplicates.h"

#include "pass_run.h"

namespace rlx {
namespace {

TEST(MergeDuplicates, TheFirstOfEqualNodesStays) {
  const PassRun run = run_pass(merge_duplicates, R"(graph {
    %0 = input{name="x", type=f32[a, 8]}()
    %1 = constant{value=f32[](2)}()
    %2 = constant{value=f32[](2)}()
    %3 = mul(%0, %1)
    %4 = mul(%0, %2)
    %5 = exp(%3)
    %6 = exp(%4)
    %7 = add(%5, %6)
    output "y" = %7
  })");
  EXPECT_TRUE(is_graph(run.after, R"(graph {
    %0 = input{name="x", type=f32[a, 8]}()
    %1 = constant{value=f32[](2)}()
    %2 = mul(%0, %1)
    %3 = exp(%2)
    %4 = add(%3, %3)
    output "y" = %4
  })"));
  EXPECT_TRUE(keeps_answers(run, 0));
}

TEST(MergeDuplicates, OtherAttributesInputsAndConstantsStayApart) {
  EXPECT_TRUE(leaves_alone(merge_duplicates, R"(graph {
    %0 = input{name="x", type=f32[4, 4]}()
    %1 = input{name="z", type=f32[4, 4]}()
    %2 = softmax{axis=0}(%0)
    %3 = softmax{axis=1}(%0)
    %4 = softmax{axis=1}(%1)
    %5 = constant{value=f32[](2)}()
    %6 = constant{value=f32[](3)}()
    %7 = mul(%2, %5)
    %8 = mul(%3, %6)
    %9 = sub(%7, %8)
    %10 = sub(%8, %7)
    output "a" = %9
    output "b" = %10
    output "c" = %4
  })"));
}

}  // namespace
}  // namespace rlx
