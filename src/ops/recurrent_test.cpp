#include "ops/recurrent.h"

#include <cmath>

#include "conformance/op_case.h"

namespace rlx {
namespace {

constexpr auto kForward = RecurrentDirection::forward;
constexpr auto kReverse = RecurrentDirection::reverse;
constexpr auto kBoth = RecurrentDirection::bidirectional;

/// A cell by its builder, so that one list of cases covers all of them.
struct Cell {
  std::string name;
  std::int64_t gates;
  bool has_c;
  std::function<RecurrentResult(Value x, Value w, Value r, Value bias, Value lengths, Value h0,
                                Value c0, RecurrentDirection direction)>
      build;
};

std::vector<Cell> cells() {
  const auto gru_cell = [](bool after) {
    return [=](Value x, Value w, Value r, Value bias, Value lengths, Value h0, Value,
               RecurrentDirection direction) {
      return gru(x, w, r, bias, lengths, h0, direction, after);
    };
  };
  const auto rnn_cell = [](bool is_relu) {
    return [=](Value x, Value w, Value r, Value bias, Value lengths, Value h0, Value,
               RecurrentDirection direction) {
      return rnn(x, w, r, bias, lengths, h0, direction, is_relu);
    };
  };
  return {{"lstm", 4, true, lstm},
          {"gru_after", 3, false, gru_cell(true)},
          {"gru_before", 3, false, gru_cell(false)},
          {"rnn_tanh", 1, false, rnn_cell(false)},
          {"rnn_relu", 1, false, rnn_cell(true)}};
}

struct Sizes {
  std::int64_t steps, batch, inputs, hidden;
};

// The graph of a cell whose optional inputs are those that `given` holds.
void build_cell(Graph& g, const Cell& cell, const NamedTensors& given,
                RecurrentDirection direction) {
  std::map<std::string, Value> in;
  for (const auto& [name, tensor] : given)
    in[name] = g.input(name, {tensor.dtype(), Shape::of(tensor.dims())});
  const RecurrentResult out = cell.build(in["x"], in["w"], in["r"], in["bias"], in["lengths"],
                                         in["h0"], in["c0"], direction);
  g.output("y", out.y);
  g.output("h", out.h);
  if (out.c) g.output("c", out.c);
}

OpCase cell_case(const std::string& name, const Cell& cell, DType dtype, Sizes s,
                 RecurrentDirection direction, bool optional) {
  const std::int64_t dirs = direction == kBoth ? 2 : 1;
  const std::int64_t rows = cell.gates * s.hidden;
  NamedTensors in{{"x", random_tensor(dtype, {s.steps, s.batch, s.inputs}, 1)},
                  {"w", random_tensor(dtype, {dirs, rows, s.inputs}, 2, -0.5, 0.5)},
                  {"r", random_tensor(dtype, {dirs, rows, s.hidden}, 3, -0.5, 0.5)}};
  if (optional) {
    in["bias"] = random_tensor(dtype, {dirs, 2 * rows}, 4, -0.5, 0.5);
    in["lengths"] = random_tensor(i64, {s.batch}, 5, 0, static_cast<double>(s.steps));
    in["h0"] = random_tensor(dtype, {dirs, s.batch, s.hidden}, 6, -1, 1);
    if (cell.has_c) in["c0"] = random_tensor(dtype, {dirs, s.batch, s.hidden}, 7, -1, 1);
  }
  return {.name = cell.name + "_" + name,
          .build = [=](Graph& g) { build_cell(g, cell, in, direction); },
          .inputs = in,
          .scale_ulps = 64};
}

std::vector<OpCase> recurrent_cases() {
  std::vector<OpCase> cases;
  for (const Cell& cell : cells()) {
    cases.push_back(cell_case("plain", cell, f32, {5, 3, 4, 7}, kForward, false));
    cases.push_back(cell_case("full", cell, f32, {5, 3, 4, 7}, kForward, true));
    cases.push_back(cell_case("reverse", cell, f32, {5, 3, 4, 7}, kReverse, true));
    cases.push_back(cell_case("both", cell, f32, {5, 3, 4, 7}, kBoth, true));
    cases.push_back(cell_case("one", cell, f32, {1, 1, 1, 1}, kForward, false));
    cases.push_back(cell_case("no_steps", cell, f32, {0, 2, 3, 4}, kBoth, true));
    cases.push_back(cell_case("no_batch", cell, f32, {3, 0, 3, 4}, kForward, true));
    cases.push_back(cell_case("f64", cell, f64, {4, 2, 3, 5}, kBoth, true));
  }
  return cases;
}
INSTANTIATE_TEST_SUITE_P(Recurrent, OpConformance, testing::ValuesIn(recurrent_cases()), case_name);

// 0.8 sin(0.7 i + phase): values that another program can make again.
Tensor wave(Tensor::Dims dims, double phase) {
  std::int64_t count = 1;
  for (const std::int64_t d : dims) count *= d;
  std::vector<double> values;
  for (std::int64_t i = 0; i < count; ++i)
    values.push_back(0.8 * std::sin(0.7 * static_cast<double>(i) + phase));
  return tensor_of(f32, std::move(dims), values);
}

// Two directions, three steps, two sequences of lengths 3 and 2, two inputs, two hidden units.
NamedTensors known(const Cell& cell) {
  const std::int64_t rows = cell.gates * 2;
  NamedTensors in{{"x", wave({3, 2, 2}, 1)},    {"w", wave({2, rows, 2}, 2)},
                  {"r", wave({2, rows, 2}, 3)}, {"bias", wave({2, 2 * rows}, 4)},
                  {"h0", wave({2, 2, 2}, 5)},   {"lengths", tensor_of(i32, {2}, {3, 2})}};
  if (cell.has_c) in["c0"] = wave({2, 2, 2}, 6);
  Graph g;
  build_cell(g, cell, in, kBoth);
  return evaluate_graph(g, in);
}

void expect_near(const Tensor& found, const std::vector<float>& expected) {
  EXPECT_THAT(found.values<float>(), testing::Pointwise(testing::FloatNear(2e-6F), expected));
}

// The expected values of the next four tests are those of ONNX Runtime 1.32.0 (CPU, opset 17) for
// the same inputs, its gate rows reordered from i, o, f, c and z, r, h.
TEST(Recurrent, KnownValuesOfLstm) {
  const NamedTensors out = known(cells()[0]);
  expect_near(out.at("y"),
              {0.253285F,   0.16712F,    0.2316841F,    0.3064661F,  -0.466624F,  0.07145292F,
               -0.568989F,  -0.3103199F, 0.02314964F,   0.2221332F,  0.04565959F, 0.2253313F,
               -0.2846731F, -0.2406999F, -0.3993132F,   -0.4907407F, 0.1959812F,  0.1472301F,
               0,           0,           -0.002955321F, 0.1055487F,  0,           0});
  expect_near(out.at("h"), {0.1959812F, 0.1472301F, 0.04565959F, 0.2253313F, -0.466624F,
                            0.07145292F, -0.568989F, -0.3103199F});
  expect_near(out.at("c"), {0.3017256F, 0.1977347F, 0.05231519F, 0.2690077F, -0.8919845F,
                            0.1203213F, -1.024959F, -0.4226344F});
}

TEST(Recurrent, KnownValuesOfGruResetAfter) {
  const NamedTensors out = known(cells()[1]);
  expect_near(
      out.at("y"),
      {0.2695775F,   0.4352656F,  0.3363945F, 0.5704789F,   0.5619385F, 0.2537208F, 0.453964F,
       -0.01540536F, -0.1735549F, 0.3501514F, -0.09386197F, 0.3651983F, 0.6872628F, 0.5457056F,
       0.5440455F,   0.1092272F,  0.3530357F, 0.4017186F,   0,          0,          0.6605221F,
       0.3195413F,   0,           0});
  expect_near(out.at("h"), {0.3530357F, 0.4017186F, -0.09386197F, 0.3651983F, 0.5619385F,
                            0.2537208F, 0.453964F, -0.01540536F});
}

TEST(Recurrent, KnownValuesOfGruResetBefore) {
  const NamedTensors out = known(cells()[2]);
  expect_near(out.at("y"),
              {0.1320219F, 0.3189023F, 0.08656132F, 0.3501362F, 0.6328692F,  0.4412434F,
               0.5619992F, 0.1695255F, -0.3457809F, 0.1121639F, -0.3626591F, 0.03818009F,
               0.7301374F, 0.6856677F, 0.5881338F,  0.1808181F, 0.03953233F, 0.1292747F,
               0,          0,          0.6870844F,  0.4648069F, 0,           0});
  expect_near(out.at("h"), {0.03953233F, 0.1292747F, -0.3626591F, 0.03818009F, 0.6328692F,
                            0.4412434F, 0.5619992F, 0.1695255F});
}

TEST(Recurrent, KnownValuesOfReluRnn) {
  const NamedTensors out = known(cells()[4]);
  expect_near(out.at("y"), {0, 0, 0, 0, 0,          5.33506F,  0.1992968F, 2.945899F,
                            0, 0, 0, 0, 2.26336F,   3.033698F, 1.750673F,  0.8804901F,
                            0, 0, 0, 0, 0.3782631F, 2.467181F, 0,          0});
  expect_near(out.at("h"), {0, 0, 0, 0, 0, 5.33506F, 0.1992968F, 2.945899F});
}

TEST(Recurrent, EmptySequenceKeepsItsInitialState) {
  const Cell cell = cells()[0];
  NamedTensors in = cell_case("", cell, f32, {3, 1, 2, 2}, kForward, true).inputs;
  in["lengths"] = tensor_of(i64, {1}, {0});
  Graph g;
  build_cell(g, cell, in, kForward);
  const NamedTensors out = evaluate_graph(g, in);
  EXPECT_THAT(out.at("y").values<float>(), testing::Each(0));
  EXPECT_EQ(doubles(out.at("h")), doubles(in.at("h0")));
  EXPECT_EQ(doubles(out.at("c")), doubles(in.at("c0")));
}

TEST(Recurrent, NanStaysInItsSequence) {
  const Cell cell = cells()[4];  // relu(NaN) is NaN
  NamedTensors in = cell_case("", cell, f32, {2, 2, 1, 1}, kForward, false).inputs;
  in["x"] = tensor_of(f32, {2, 2, 1}, {NAN, 1, 1, 1});
  Graph g;
  build_cell(g, cell, in, kForward);
  const std::vector<double> h = doubles(evaluate_graph(g, in).at("h"));
  EXPECT_TRUE(std::isnan(h[0]));
  EXPECT_FALSE(std::isnan(h[1]));
}

TEST(Recurrent, NamesWhatDoesNotFit) {
  const Cell cell = cells()[0];
  NamedTensors in = cell_case("", cell, f32, {3, 1, 2, 2}, kForward, true).inputs;
  in["lengths"] = tensor_of(i64, {1}, {4});
  Graph g;
  build_cell(g, cell, in, kForward);
  try {
    (void)evaluate_graph(g, in);
    FAIL();
  } catch (const IndexError& e) {
    EXPECT_STREQ(e.what(), "lstm (lstm): length 4 of sequence 0 is out of range for 3 steps");
  }
  const Value x = g.input("x2", {f32, {3, 1, 2}});
  const Value r = g.input("r2", {f32, {1, 8, 2}});
  EXPECT_THROW((void)lstm(x, g.input("w2", {f32, {1, 8, 3}}), r), ShapeError);
  EXPECT_THROW((void)gru(x, g.input("w3", {f32, {1, 8, 2}}), r), ShapeError);
  EXPECT_THROW((void)lstm(x, g.input("w4", {f32, {1, 8, 2}}), r, {}, {}, {}, {}, kBoth),
               ShapeError);
  EXPECT_THROW((void)rnn(x, g.input("w5", {f64, {1, 2, 2}}), g.input("r5", {f32, {1, 2, 2}})),
               InvalidArgument);
}

}  // namespace
}  // namespace rlx
