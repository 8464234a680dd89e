#include "ops/control.h"

#include "conformance/op_case.h"

namespace rlx {
namespace {

// sum' = sum * decay + x; y = sum' * 2. Carries [2], xs [length, 2], capture decay.
Graph leaky_sum() {
  Graph g;
  const Value sum = g.input("sum", {f32, {2}});
  const Value x = g.input("x", {f32, {2}});
  const Value next = sum * g.input("decay", {f32, {}}) + x;
  g.output("next", next);
  g.output("y", next * 2.0);
  return g;
}

void build_leaky_scan(Graph& g, Dim length, bool reverse) {
  const Value x = g.input("x", {f32, {length, 2}});
  const Value initial = g.input("initial", {f32, {2}});
  const auto out =
      scan(leaky_sum(), {initial}, {x}, {g.input("decay", {f32, {}})}, std::nullopt, {reverse});
  g.output("last", out[0]);
  g.output("ys", out[1]);
}

Graph one_output(DType dtype, const Shape& shape, const std::function<Value(Value)>& f) {
  Graph g;
  g.output("y", f(g.input("x", {dtype, shape})));
  return g;
}

std::vector<OpCase> control_cases() {
  std::vector<OpCase> cases;
  for (const std::int64_t length : {0, 1, 5, 33}) {
    for (const bool reverse : {false, true}) {
      cases.push_back({.name = "scan_" + std::to_string(length) + (reverse ? "_reverse" : ""),
                       .build = [=](Graph& g) { build_leaky_scan(g, "length", reverse); },
                       .inputs = {{"x", random_tensor(f32, {length, 2}, 1)},
                                  {"initial", random_tensor(f32, {2}, 2)},
                                  {"decay", tensor_of(f32, {}, {0.5})}},
                       .scale_ulps = 16});
    }
  }
  for (const bool taken : {false, true}) {
    cases.push_back({.name = taken ? "if_true" : "if_false",
                     .build =
                         [](Graph& g) {
                           const Value p = g.input("p", {boolean, {}});
                           const Value x = g.input("x", {f32, {"n"}});
                           const auto twice = [](Value v) { return v + v; };
                           g.output("y", if_else(p, one_output(f32, {"n"}, twice),
                                                 one_output(f32, {"n"}, [](Value v) { return -v; }),
                                                 {x})[0]);
                         },
                     .inputs = {{"p", tensor_of(boolean, {}, {taken ? 1.0 : 0.0})},
                                {"x", special_tensor(f32, {7}, 3)}}});
  }
  return cases;
}
INSTANTIATE_TEST_SUITE_P(Control, OpConformance, testing::ValuesIn(control_cases()), case_name);

NamedTensors leaky(std::int64_t length, bool reverse, std::vector<float> x) {
  Graph g;
  build_leaky_scan(g, "length", reverse);
  return evaluate_graph(g, {{"x", Tensor({length, 2}, std::span<const float>(x))},
                            {"initial", Tensor({2}, {8.0F, 16.0F})},
                            {"decay", tensor_of(f32, {}, {0.5})}});
}

// By hand: 8 -> 4 + 1 = 5 -> 2.5 + 3 = 5.5; 16 -> 8 + 2 = 10 -> 5 + 4 = 9.
TEST(Scan, KnownValues) {
  const NamedTensors out = leaky(2, false, {1, 2, 3, 4});
  EXPECT_THAT(out.at("last").values<float>(), testing::ElementsAre(5.5F, 9));
  EXPECT_THAT(out.at("ys").values<float>(), testing::ElementsAre(10, 20, 11, 18));
}

// By hand: 8 -> 4 + 3 = 7 -> 3.5 + 1 = 4.5; 16 -> 8 + 4 = 12 -> 6 + 2 = 8.
TEST(Scan, ReverseKeepsEachStepInItsPlace) {
  const NamedTensors out = leaky(2, true, {1, 2, 3, 4});
  EXPECT_THAT(out.at("last").values<float>(), testing::ElementsAre(4.5F, 8));
  EXPECT_THAT(out.at("ys").values<float>(), testing::ElementsAre(9, 16, 14, 24));
}

TEST(Scan, NoStepsGiveTheInitialValues) {
  const NamedTensors out = leaky(0, false, {});
  EXPECT_THAT(out.at("last").values<float>(), testing::ElementsAre(8, 16));
  EXPECT_THAT(out.at("ys").dims(), testing::ElementsAre(0, 2));
}

// Fibonacci: two carries that change places, a length without xs.
TEST(Scan, SeveralCarriesAndALengthAlone) {
  Graph body;
  const Value a = body.input("a", {i64, {}});
  const Value b = body.input("b", {i64, {}});
  body.output("a", b);
  body.output("b", a + b);
  body.output("seen", a);
  Graph g;
  const Value first = g.input("first", {i64, {}});
  const auto out = scan(std::move(body), {first, g.input("second", {i64, {}})}, {}, {}, Dim(8));
  g.output("seen", out[2]);
  const NamedTensors found =
      evaluate_graph(g, {{"first", tensor_of(i64, {}, {0})}, {"second", tensor_of(i64, {}, {1})}});
  EXPECT_THAT(found.at("seen").values<std::int64_t>(),
              testing::ElementsAre(0, 1, 1, 2, 3, 5, 8, 13));
}

TEST(If, TakesTheBranchOfThePredicate) {
  for (const bool taken : {false, true}) {
    Graph g;
    const Value p = g.input("p", {boolean, {}});
    const Value x = g.input("x", {f32, {2}});
    g.output("y", if_else(p, one_output(f32, {2}, [](Value v) { return v * 3.0; }),
                          one_output(f32, {2}, [](Value v) { return v - 1.0; }), {x})[0]);
    const Tensor y = evaluate_graph(g, {{"p", tensor_of(boolean, {}, {taken ? 1.0 : 0.0})},
                                        {"x", Tensor({2}, {1.0F, 5.0F})}})
                         .at("y");
    if (taken) {
      EXPECT_THAT(y.values<float>(), testing::ElementsAre(3, 15));
    } else {
      EXPECT_THAT(y.values<float>(), testing::ElementsAre(0, 4));
    }
  }
}

std::string message_of(const std::function<void()>& f) {
  try {
    f();
  } catch (const Error& e) {
    return e.what();
  }
  return "nothing was thrown";
}

TEST(If, NamesWhatDiffersBetweenBranches) {
  Graph g;
  const Value p = g.input("p", {boolean, {}});
  const Value x = g.input("x", {f32, {4}});
  const auto same = [](Value v) { return v; };
  const auto half = [](Value v) { return slice_axis(v, 0, 0, 2); };
  EXPECT_EQ(message_of([&] {
              (void)if_else(p, one_output(f32, {4}, same), one_output(f32, {4}, half), {x});
            }),
            "if (if): output 0 is f32[4] in then_branch and f32[2] in else_branch");
  EXPECT_THAT(message_of([&] {
                (void)if_else(p, one_output(f64, {4}, same), one_output(f64, {4}, same), {x});
              }),
              testing::HasSubstr("input 0 of then_branch is f32[4], expected f64[4]"));
  EXPECT_THAT(message_of([&] {
                (void)if_else(p, one_output(f32, {4}, same), one_output(f32, {4}, same), {});
              }),
              testing::HasSubstr("then_branch takes 1 inputs, found 0"));
  EXPECT_THROW((void)if_else(x, one_output(f32, {4}, same), one_output(f32, {4}, same), {x}),
               InvalidArgument);
}

TEST(Scan, NamesWhatDoesNotFitTheBody) {
  Graph g;
  const Value carry = g.input("carry", {f32, {2}});
  const Value x = g.input("x", {f32, {5, 2}});
  const Value decay = g.input("decay", {f32, {}});
  EXPECT_THAT(message_of([&] { (void)scan(leaky_sum(), {carry}, {x}, {decay}, Dim(4)); }),
              testing::HasSubstr("length of sequence 0: 5 and 4 differ"));
  EXPECT_THAT(message_of([&] { (void)scan(leaky_sum(), {decay}, {x}, {decay}); }),
              testing::HasSubstr("carry 0 is f32[], expected f32[2]"));
  EXPECT_THAT(message_of([&] {
                (void)scan(one_output(f32, {2}, [](Value v) { return sum(v, {0}); }), {carry}, {},
                           {}, Dim(3));
              }),
              testing::HasSubstr("next carry 0 is f32[], expected f32[2]"));
  EXPECT_THAT(message_of([&] {
                (void)scan(leaky_sum(), {carry}, {}, {x, decay});
              }),
              testing::HasSubstr("scan without sequences needs a length"));
  EXPECT_THROW((void)scan(leaky_sum(), {carry}, {x}, {decay}, Dim(-1)), ShapeError);
  Graph open = leaky_sum();
  (void)open.param("w", Tensor({2}, {1.0F, 2.0F}));
  EXPECT_THAT(message_of([&] { (void)scan(std::move(open), {carry}, {x}, {decay}); }),
              testing::HasSubstr("body has params or states of its own"));
}

}  // namespace
}  // namespace rlx
