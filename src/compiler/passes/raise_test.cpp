#include "compiler/passes/raise.h"

#include "pass_run.h"

namespace rlx {
namespace {

/// A graph over x [a, 8] whose `body` defines %9, the output; constants are written as `$0.5`.
std::string text_of(std::string_view body) {
  std::string text = "graph {\n%0 = input{name=\"x\", type=f32[a, 8]}()\n";
  std::size_t constants = 100;
  for (std::size_t at = 0; at < body.size();) {
    const std::size_t end = std::min(body.find('\n', at), body.size());
    std::string line(body.substr(at, end - at));
    for (std::size_t dollar; (dollar = line.find('$')) != std::string::npos;) {
      const std::size_t stop = line.find_first_of(",)", dollar);
      text += fmt::format("%{} = constant{{value=f32[]({})}}()\n", constants,
                          line.substr(dollar + 1, stop - dollar - 1));
      line.replace(dollar, stop - dollar, fmt::format("%{}", constants++));
    }
    text += line + '\n';
    at = end + 1;
  }
  return text + "output \"y\" = %9\n}";
}

struct Spelling {
  const char* name;
  const char* raised;  ///< the operator that it becomes; null: a near miss, which stays as it is
  const char* body;
};

std::ostream& operator<<(std::ostream& out, const Spelling& s) { return out << s.name; }

class RaiseCompositions : public testing::TestWithParam<Spelling> {};

TEST_P(RaiseCompositions, FindsSpellingsAndLeavesNearMisses) {
  const Spelling& s = GetParam();
  const std::string text = text_of(s.body);
  if (s.raised == nullptr) {
    EXPECT_TRUE(leaves_alone(raise_compositions, text));
    return;
  }
  const PassRun run = run_pass(raise_compositions, text);
  EXPECT_EQ(run.count(fmt::format("raised {}", s.raised)), 1) << to_string(run.after);
  EXPECT_EQ(run.after.node_count(), 2U) << to_string(run.after);
  EXPECT_TRUE(has_op(run.after, s.raised));
  EXPECT_TRUE(keeps_answers(run, 2e-6));
}

constexpr Spelling kGelu[] = {
    {"erf_div_half_last", "gelu",
     "%1 = div(%0, $1.4142135)\n%2 = erf(%1)\n%3 = add(%2, $1)\n%4 = mul(%0, %3)\n"
     "%9 = mul(%4, $0.5)"},
    {"erf_mul_half_first", "gelu",
     "%1 = mul(%0, $0.70710677)\n%2 = erf(%1)\n%3 = add($1, %2)\n%4 = mul($0.5, %0)\n"
     "%9 = mul(%4, %3)"},
    {"erf_half_on_gate", "gelu",
     "%1 = div(%0, $1.4142135)\n%2 = erf(%1)\n%3 = add(%2, $1)\n%4 = mul(%3, $0.5)\n"
     "%9 = mul(%0, %4)"},
    {"erf_divided_by_two", "gelu",
     "%1 = div(%0, $1.4142135)\n%2 = erf(%1)\n%3 = add(%2, $1)\n%4 = mul(%0, %3)\n"
     "%9 = div(%4, $2)"},
    {"erf_wrong_constant", nullptr,
     "%1 = div(%0, $1.5)\n%2 = erf(%1)\n%3 = add(%2, $1)\n%4 = mul(%0, %3)\n%9 = mul(%4, $0.5)"},
    {"erf_wrong_half", nullptr,
     "%1 = div(%0, $1.4142135)\n%2 = erf(%1)\n%3 = add(%2, $1)\n%4 = mul(%0, %3)\n"
     "%9 = mul(%4, $0.6)"},
    {"erf_of_another_value", nullptr,
     "%5 = neg(%0)\n%1 = div(%5, $1.4142135)\n%2 = erf(%1)\n%3 = add(%2, $1)\n%4 = mul(%0, %3)\n"
     "%9 = mul(%4, $0.5)"},
    {"tanh_pow", "gelu_tanh",
     "%1 = pow(%0, $3)\n%2 = mul(%1, $0.044715)\n%3 = add(%0, %2)\n%4 = mul(%3, $0.7978846)\n"
     "%5 = tanh(%4)\n%6 = add(%5, $1)\n%7 = mul(%0, $0.5)\n%9 = mul(%7, %6)"},
    {"tanh_products", "gelu_tanh",
     "%1 = mul(%0, %0)\n%2 = mul(%1, %0)\n%3 = mul($0.044715, %2)\n%4 = add(%0, %3)\n"
     "%5 = mul($0.7978846, %4)\n%6 = tanh(%5)\n%7 = add($1, %6)\n%8 = mul(%0, %7)\n"
     "%9 = mul(%8, $0.5)"},
    {"tanh_factored", "gelu_tanh",
     "%1 = mul(%0, %0)\n%2 = mul(%1, $0.044715)\n%3 = add(%2, $1)\n%4 = mul(%0, $0.7978846)\n"
     "%5 = mul(%4, %3)\n%6 = tanh(%5)\n%7 = add(%6, $1)\n%8 = mul(%7, $0.5)\n%9 = mul(%0, %8)"},
    {"tanh_wrong_constant", nullptr,
     "%1 = pow(%0, $3)\n%2 = mul(%1, $0.044)\n%3 = add(%0, %2)\n%4 = mul(%3, $0.7978846)\n"
     "%5 = tanh(%4)\n%6 = add(%5, $1)\n%7 = mul(%0, $0.5)\n%9 = mul(%7, %6)"},
    {"tanh_wrong_power", nullptr,
     "%1 = pow(%0, $2)\n%2 = mul(%1, $0.044715)\n%3 = add(%0, %2)\n%4 = mul(%3, $0.7978846)\n"
     "%5 = tanh(%4)\n%6 = add(%5, $1)\n%7 = mul(%0, $0.5)\n%9 = mul(%7, %6)"},
};

constexpr Spelling kSilu[] = {
    {"sigmoid", "silu", "%1 = sigmoid(%0)\n%9 = mul(%0, %1)"},
    {"sigmoid_first", "silu", "%1 = sigmoid(%0)\n%9 = mul(%1, %0)"},
    {"exponential", "silu", "%1 = neg(%0)\n%2 = exp(%1)\n%3 = add(%2, $1)\n%9 = div(%0, %3)"},
    {"of_another_value", nullptr, "%1 = neg(%0)\n%2 = sigmoid(%1)\n%9 = mul(%0, %2)"},
    {"without_sign", nullptr, "%2 = exp(%0)\n%3 = add(%2, $1)\n%9 = div(%0, %3)"},
    {"wrong_constant", nullptr, "%1 = neg(%0)\n%2 = exp(%1)\n%3 = add(%2, $2)\n%9 = div(%0, %3)"},
};

#define MEAN "reduce{kind=mean, axes=[1], keep_dims=true}"
constexpr Spelling kNorms[] = {
    {"layer_pow_sqrt", "layer_norm",
     "%1 = " MEAN "(%0)\n%2 = sub(%0, %1)\n%3 = pow(%2, $2)\n%4 = " MEAN "(%3)\n"
     "%5 = add(%4, $1e-5)\n%6 = sqrt(%5)\n%9 = div(%2, %6)"},
    {"layer_mul_rsqrt", "layer_norm",
     "%1 = " MEAN "(%0)\n%2 = sub(%0, %1)\n%3 = mul(%2, %2)\n%4 = " MEAN "(%3)\n"
     "%5 = add($1e-5, %4)\n%6 = rsqrt(%5)\n%9 = mul(%2, %6)"},
    {"layer_reciprocal", "layer_norm",
     "%1 = " MEAN "(%0)\n%2 = sub(%0, %1)\n%3 = mul(%2, %2)\n%4 = " MEAN "(%3)\n"
     "%5 = add(%4, $1e-5)\n%6 = sqrt(%5)\n%7 = reciprocal(%6)\n%9 = mul(%7, %2)"},
    {"layer_subtracted_twice", "layer_norm",
     "%1 = " MEAN "(%0)\n%2 = sub(%0, %1)\n%8 = sub(%0, %1)\n%3 = pow(%2, $2)\n%4 = " MEAN "(%3)\n"
     "%5 = add(%4, $1e-5)\n%6 = sqrt(%5)\n%9 = div(%8, %6)"},
    {"layer_wrong_axis", nullptr,
     "%1 = reduce{kind=mean, axes=[0], keep_dims=true}(%0)\n%2 = sub(%0, %1)\n%3 = pow(%2, $2)\n"
     "%4 = reduce{kind=mean, axes=[0], keep_dims=true}(%3)\n%5 = add(%4, $1e-5)\n%6 = sqrt(%5)\n"
     "%9 = div(%2, %6)"},
    {"layer_two_different_axes", nullptr,
     "%1 = " MEAN "(%0)\n%2 = sub(%0, %1)\n%3 = pow(%2, $2)\n"
     "%4 = reduce{kind=mean, axes=[0], keep_dims=true}(%3)\n%5 = add(%4, $1e-5)\n"
     "%6 = sqrt(%5)\n%9 = div(%2, %6)"},
    {"layer_sum", nullptr,
     "%1 = " MEAN "(%0)\n%2 = sub(%0, %1)\n%3 = pow(%2, $2)\n"
     "%4 = reduce{kind=sum, axes=[1], keep_dims=true}(%3)\n%5 = add(%4, $1e-5)\n%6 = sqrt(%5)\n"
     "%9 = div(%2, %6)"},
    {"layer_variance_of_another_value", nullptr,
     "%1 = " MEAN "(%0)\n%2 = sub(%0, %1)\n%7 = exp(%0)\n%8 = " MEAN "(%7)\n%10 = sub(%7, %8)\n"
     "%3 = mul(%10, %10)\n%4 = " MEAN "(%3)\n%5 = add(%4, $1e-5)\n%6 = sqrt(%5)\n"
     "%9 = div(%2, %6)"},
    {"rms_rsqrt", "rms_norm",
     "%1 = mul(%0, %0)\n%2 = " MEAN "(%1)\n%3 = add(%2, $1e-6)\n%4 = rsqrt(%3)\n"
     "%9 = mul(%0, %4)"},
    {"rms_pow_sqrt", "rms_norm",
     "%1 = pow(%0, $2)\n%2 = " MEAN "(%1)\n%3 = add(%2, $1e-6)\n%4 = sqrt(%3)\n%9 = div(%0, %4)"},
    {"rms_one_over_sqrt", "rms_norm",
     "%1 = pow(%0, $2)\n%2 = " MEAN "(%1)\n%3 = add(%2, $1e-6)\n%4 = sqrt(%3)\n%5 = div($1, %4)\n"
     "%9 = mul(%5, %0)"},
    {"rms_wrong_axis", nullptr,
     "%1 = mul(%0, %0)\n%2 = reduce{kind=mean, axes=[0], keep_dims=true}(%1)\n"
     "%3 = add(%2, $1e-6)\n%4 = rsqrt(%3)\n%9 = mul(%0, %4)"},
    {"rms_wrong_power", nullptr,
     "%1 = pow(%0, $3)\n%2 = " MEAN "(%1)\n%3 = add(%2, $1e-6)\n%4 = sqrt(%3)\n%9 = div(%0, %4)"},
    {"rms_of_another_value", nullptr,
     "%5 = exp(%0)\n%1 = mul(%5, %5)\n%2 = " MEAN "(%1)\n%3 = add(%2, $1e-6)\n%4 = rsqrt(%3)\n"
     "%9 = mul(%0, %4)"},
};
#undef MEAN

std::string name_of(const testing::TestParamInfo<Spelling>& info) { return info.param.name; }
INSTANTIATE_TEST_SUITE_P(Gelu, RaiseCompositions, testing::ValuesIn(kGelu), name_of);
INSTANTIATE_TEST_SUITE_P(Silu, RaiseCompositions, testing::ValuesIn(kSilu), name_of);
INSTANTIATE_TEST_SUITE_P(Norms, RaiseCompositions, testing::ValuesIn(kNorms), name_of);

TEST(RaiseCompositions, ScaleAndBiasJoinInEitherOrder) {
  const PassRun run = run_pass(raise_compositions, R"(graph {
    %0 = input{name="x", type=f32[a, 8]}()
    %1 = input{name="w", type=f32[8]}()
    %2 = input{name="b", type=f32[8]}()
    %3 = layer_norm{axis=1, epsilon=1e-5}(%0)
    %4 = mul(%1, %3)
    %5 = add(%2, %4)
    output "y" = %5
  })");
  EXPECT_TRUE(is_graph(run.after, R"(graph {
    %0 = input{name="x", type=f32[a, 8]}()
    %1 = input{name="w", type=f32[8]}()
    %2 = input{name="b", type=f32[8]}()
    %3 = layer_norm{axis=1, epsilon=1e-5}(%0, %1, %2)
    output "y" = %3
  })"));
  EXPECT_TRUE(keeps_answers(run));
}

// A scale after the bias scales the bias too.
TEST(RaiseCompositions, AScaleAfterTheBiasStays) {
  const PassRun run = run_pass(raise_compositions, R"(graph {
    %0 = input{name="x", type=f32[a, 8]}()
    %1 = input{name="w", type=f32[8]}()
    %2 = input{name="b", type=f32[8]}()
    %3 = layer_norm{axis=1, epsilon=1e-5}(%0)
    %4 = add(%3, %2)
    %5 = mul(%4, %1)
    output "y" = %5
  })");
  EXPECT_TRUE(has_op(run.after, "mul"));
  EXPECT_FALSE(has_op(run.after, "add"));
  EXPECT_TRUE(keeps_answers(run));
}

TEST(RaiseCompositions, AScaleOfAnotherShapeStays) {
  EXPECT_TRUE(leaves_alone(raise_compositions, R"(graph {
    %0 = input{name="x", type=f32[a, 8]}()
    %1 = input{name="w", type=f32[1]}()
    %2 = layer_norm{axis=1, epsilon=1e-5}(%0)
    %3 = mul(%2, %1)
    output "y" = %3
  })"));
}

}  // namespace
}  // namespace rlx
