#include "compiler/passes/raise.h"
#include "pass_run.h"

namespace rlx {
namespace {

#define QK "dot_general{a_batch=[0, 1], b_batch=[0, 1], a_contracting=[3], b_contracting=[3]}"
#define PV "dot_general{a_batch=[0, 1], b_batch=[0, 1], a_contracting=[3], b_contracting=[2]}"

std::string text_of(std::string_view body) {
  return fmt::format(R"(graph {{
    %0 = input{{name="q", type=f32[b, 2, s, 4]}}()
    %1 = input{{name="k", type=f32[b, 2, t, 4]}}()
    %2 = input{{name="v", type=f32[b, 2, t, 4]}}()
    %3 = input{{name="m", type=f32[b, 1, 1, t]}}()
    %5 = constant{{value=f32[](0.5)}}()
    %6 = constant{{value=f32[](2)}}()
    %7 = constant{{value=f32[](-3.4e38)}}()
    %8 = constant{{value=f32[](-1)}}()
    %4 = input{{name="keep", type=bool[b, 1, 1, t]}}()
    {}
    output "y" = %20
  }})",
                     body);
}

struct Spelling {
  const char* name;
  bool raised;
  const char* body;
};
std::ostream& operator<<(std::ostream& out, const Spelling& s) { return out << s.name; }

class RaiseAttention : public testing::TestWithParam<Spelling> {};

TEST_P(RaiseAttention, FindsSpellingsAndLeavesNearMisses) {
  const Spelling& s = GetParam();
  const PassRun run = run_pass(raise_attention, text_of(s.body));
  EXPECT_EQ(run.count("raised attention"), s.raised ? 1 : 0) << to_string(run.after);
  EXPECT_EQ(has_op(run.after, "attention"), s.raised);
  EXPECT_EQ(has_op(run.after, "softmax"), !s.raised);
  EXPECT_TRUE(keeps_answers(run, 2e-6));
}

constexpr Spelling kSpellings[] = {
    {"plain", true, "%9 = " QK "(%0, %1)\n%10 = softmax{axis=3}(%9)\n%20 = " PV "(%10, %2)"},
    {"scale_by_mul_on_scores_mask_by_add", true,
     "%9 = " QK "(%0, %1)\n%10 = mul(%9, %5)\n%11 = add(%10, %3)\n%12 = softmax{axis=3}(%11)\n"
     "%20 = " PV "(%12, %2)"},
    {"scale_by_div_on_scores", true,
     "%9 = " QK "(%0, %1)\n%10 = div(%9, %6)\n%11 = add(%3, %10)\n%12 = softmax{axis=3}(%11)\n"
     "%20 = " PV "(%12, %2)"},
    {"scale_on_q", true,
     "%9 = mul(%0, %5)\n%10 = " QK "(%9, %1)\n%11 = softmax{axis=3}(%10)\n%20 = " PV "(%11, %2)"},
    {"scale_on_q_and_k", true,
     "%9 = mul(%0, %5)\n%10 = div(%1, %6)\n%11 = " QK "(%9, %10)\n%12 = softmax{axis=3}(%11)\n"
     "%20 = " PV "(%12, %2)"},
    {"mask_by_where", true,
     "%9 = " QK "(%0, %1)\n%10 = select(%4, %9, %7)\n%11 = softmax{axis=3}(%10)\n"
     "%20 = " PV "(%11, %2)"},
    {"k_transposed", true,
     "%9 = transpose{permutation=[0, 1, 3, 2]}(%1)\n"
     "%10 = dot_general{a_batch=[0, 1], b_batch=[0, 1], a_contracting=[3], b_contracting=[2]}"
     "(%0, %9)\n%11 = softmax{axis=3}(%10)\n%20 = " PV "(%11, %2)"},
    {"token_major_output", true,
     "%9 = " QK "(%0, %1)\n%10 = softmax{axis=3}(%9)\n%11 = " PV "(%10, %2)\n"
     "%20 = transpose{permutation=[0, 2, 1, 3]}(%11)"},
    {"softmax_over_queries", false,
     "%9 = " QK "(%0, %1)\n%10 = softmax{axis=2}(%9)\n%20 = " PV "(%10, %2)"},
    {"fill_not_low_enough", false,
     "%9 = " QK "(%0, %1)\n%10 = select(%4, %9, %8)\n%11 = softmax{axis=3}(%10)\n"
     "%20 = " PV "(%11, %2)"},
};
#undef QK
#undef PV

INSTANTIATE_TEST_SUITE_P(Spellings, RaiseAttention, testing::ValuesIn(kSpellings),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace rlx
