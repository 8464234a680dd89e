#include "backends/cpu/kernels/region.h"

#include <gtest/gtest.h>

#include <random>

#include "compiler/fused.h"
#include "ir/leaves.h"
#include "kernel_run.h"
#include "ops/elementwise.h"
#include "rlx/ops.h"
#include "rlx/runtime.h"

namespace rlx {
namespace {

// A graph whose only operator is a region with this body.
Graph region_of(Graph body) {
  Graph g;
  std::vector<Value> inputs;
  for (const Graph::Named& input : body.inputs())
    inputs.push_back(g.input(input.name, input.value.type()));
  const std::size_t outputs = body.outputs().size();
  const auto shared = std::make_shared<const Graph>(std::move(body));
  const std::vector<Value> results = g.add(make_op(region_def, Region{shared}), inputs);
  for (std::size_t i = 0; i < outputs; ++i) g.output(shared->outputs()[i].name, results[i]);
  return g;
}

OpCase region_case(std::string name, std::function<void(Graph&)> body, NamedTensors inputs) {
  return {.name = std::move(name),
          .build =
              [body = std::move(body)](Graph& g) {
                Graph inner;
                body(inner);
                g = region_of(std::move(inner));
              },
          .inputs = std::move(inputs)};
}

TEST(RegionKernel, GeluOfAScaledSum) {
  const auto body = [](const Shape& x_shape, const Shape& a_shape) {
    return [=](Graph& g) {
      const Value x = g.input("x", {f32, x_shape}), a = g.input("a", {f32, a_shape});
      const Value r = g.input("r", {f32, x_shape});
      g.output("y", gelu(x * a + 0.5) * 1.25 + r);
    };
  };
  for (const Tensor::Dims& dims :
       {Tensor::Dims{10000}, Tensor::Dims{4, 70}, Tensor::Dims{700, 384}, Tensor::Dims{2, 3, 5}}) {
    const Tensor::Dims row = {dims.back()};
    OpCase c = region_case("gelu", body(Shape::of(dims), Shape::of(row)),
                           {{"x", random_tensor(f32, dims, 1)},
                            {"a", random_tensor(f32, row, 2)},
                            {"r", random_tensor(f32, dims, 3)}});
    c.scale_ulps = 4;
    check_kernel(c);
  }
}

TEST(RegionKernel, OutputsThatShareValues) {
  const Tensor::Dims dims = {37, 21};
  check_kernel(
      region_case("outputs",
                  [=](Graph& g) {
                    const Value x = g.input("x", {f32, Shape::of(dims)}),
                                y = g.input("y", {f16, Shape::of(dims)});
                    const Value sum = x + cast(y, f32);
                    g.output("early", sum);  // may lie over x, which is read again
                    g.output("again", sum);
                    g.output("narrow", cast(sum * x, f16));
                    g.output("input", x);
                    g.output("less", less(x, sum));
                    g.output("constant_select", select(less(x, sum), scalar(g, f16, 1.5), y));
                  },
                  {{"x", random_tensor(f32, dims, 1)}, {"y", random_tensor(f16, dims, 2)}}));
}

TEST(RegionKernel, ResultsPastTheCaches) {
  const std::int64_t n = (8 << 20) + 37;
  Graph inner;
  const Value x = inner.input("x", {f32, {n}});
  inner.output("y", x * 2.0 + 1.0);
  const Graph g = region_of(std::move(inner));
  Tensor t(f32, {n});
  for (std::int64_t i = 0; i < n; ++i) t.values<float>()[i] = static_cast<float>(i % 1000);
  const Tensor y = run_kernel(g, {{"x", t}}, {.threads = 2}).at("y");
  for (std::int64_t i = 0; i < n; ++i) {
    ASSERT_EQ(y.values<float>()[i], t.values<float>()[i] * 2 + 1) << i;
  }
}

TEST(RegionKernel, RefusesWhatItCannotRun) {
  Graph inner;
  const Value x = inner.input("x", {f32, {4}});
  inner.output("y", x + inner.constant(Tensor({4}, {1.0F, 2.0F, 3.0F, 4.0F})));
  const Graph g = region_of(std::move(inner));
  const cpu::Match match = cpu::accepts_elementwise(*g.outputs()[0].value.node());
  EXPECT_FALSE(match.yes);
  EXPECT_EQ(match.why, "a constant that is no scalar");
}

// ---- a region gives the bits of its operators run one by one

class RandomBody {
 public:
  explicit RandomBody(std::uint64_t seed) : engine_(seed) {}

  // Inputs of extents that broadcast to `dims`, operators on any of the values so far, and outputs.
  Graph make(const Tensor::Dims& dims) {
    Graph g;
    for (int i = 0; i < 4; ++i) {
      Tensor::Dims own = dims;
      for (std::int64_t& d : own) d = i > 0 && pick(4) == 0 ? 1 : d;
      const DType dtype = kDTypes[pick(std::size(kDTypes))];
      values_.push_back(g.input(fmt::format("x{}", i), {dtype, Shape::of(own)}));
    }
    values_.push_back(scalar(g, f32, 0.75));
    values_.push_back(scalar(g, f16, -1.5));
    const Value full = cast(values_[0], f32);
    for (int i = 0; i < 12; ++i) add_operator();
    for (int i = 0; i < 3; ++i) {
      Value v = values_[values_.size() - 1 - pick(5)];
      if (v.dtype() != f32) v = cast(v, f32);
      g.output(fmt::format("y{}", i), i == 1 ? cast(v + full, f16) : v + full);
    }
    g.prune();
    return g;
  }

 private:
  static constexpr DType kDTypes[] = {f32, f32, f16, bf16, DType::i32, DType::u8, DType::boolean};

  std::size_t pick(std::size_t n) { return engine_() % n; }
  Value any() { return values_[pick(values_.size())]; }
  Value as(Value v, DType dtype) { return cast(v, dtype); }

  void add_operator() {
    static const OpDef* const kUnary[] = {&neg_def,  &abs_def,   &exp_def,
                                          &tanh_def, &floor_def, &relu_def};
    static const OpDef* const kBinary[] = {&add_def, &sub_def, &mul_def,
                                           &max_def, &add_def, &less_def};
    const DType dtype = kDTypes[pick(4)];  // floats
    switch (pick(5)) {
      case 0:
        values_.push_back(elementwise(*kUnary[pick(std::size(kUnary))], {as(any(), dtype)}));
        return;
      case 1:
        values_.push_back(select(as(any(), DType::boolean), as(any(), dtype), as(any(), dtype)));
        return;
      case 2:
        values_.push_back(cast(any(), kDTypes[pick(std::size(kDTypes))]));
        return;
      case 3:
        values_.push_back(
            elementwise(*kBinary[pick(3)], {as(any(), DType::i32), as(any(), DType::i32)}));
        return;
      default:
        values_.push_back(
            elementwise(*kBinary[pick(std::size(kBinary))], {as(any(), dtype), as(any(), dtype)}));
    }
  }

  std::mt19937_64 engine_;
  std::vector<Value> values_;
};

NamedTensors one_by_one(const Graph& body, const NamedTensors& inputs) {
  std::map<const Node*, Tensor> results;
  for (const Graph::Named& input : body.inputs())
    results[input.value.node()] = inputs.at(input.name);
  for (Node* node : body.topological_order()) {
    if (results.contains(node)) continue;
    if (const Tensor* constant = constant_of(node->output())) {
      results[node] = *constant;
      continue;
    }
    Graph single;
    NamedTensors operands;
    std::vector<Value> values;
    for (const Value v : node->inputs()) {
      const std::string name = fmt::format("x{}", values.size());
      values.push_back(single.input(name, v.type()));
      operands[name] = results.at(v.node());
    }
    single.output("y", single.add1(node->op(), values));
    results[node] = run_kernel(single, operands).at("y");
  }
  NamedTensors outputs;
  for (const Graph::Named& output : body.outputs())
    outputs[output.name] = results.at(output.value.node());
  return outputs;
}

TEST(RegionKernel, HasTheBitsOfItsOperators) {
  const Tensor::Dims shapes[] = {{1000}, {3, 70}, {5, 4, 3}, {40, 300}};
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    const Tensor::Dims& dims = shapes[seed % std::size(shapes)];
    Graph body = RandomBody(seed).make(dims);
    NamedTensors inputs;
    for (const Graph::Named& input : body.inputs()) {
      const TensorType& type = input.value.type();
      const double low = is_unsigned_integer(type.dtype) ? 0 : -3;
      inputs[input.name] = random_tensor(type.dtype, type.shape.evaluate({}), seed + 1, low, 3);
    }
    const NamedTensors expected = one_by_one(body, inputs);
    const Graph g = region_of(std::move(body));
    for (const bool in_place : {false, true}) {
      const NamedTensors found = run_kernel(g, inputs, {.threads = 2, .in_place = in_place});
      for (const auto& [name, tensor] : expected) {
        ASSERT_TRUE(std::ranges::equal(found.at(name).bytes(), tensor.bytes())) << name << " of\n"
                                                                                << to_string(g);
      }
    }
  }
}

// ---- through the executor: strided operands and copies

void check_compiled(const std::function<void(Graph&)>& build, const NamedTensors& inputs) {
  Graph g;
  build(g);
  const NamedTensors expected = evaluate_graph(g, inputs);
  for (const int threads : {1, 2}) {
    const Executable executable = compile(g.clone(), {.optimization = 0, .threads = threads});
    Context context(executable);
    const NamedTensors found = context.run(inputs);
    for (const auto& [name, tensor] : expected) {
      const OpCase exact{.name = name, .build = {}, .inputs = {}, .ulps = 2};
      EXPECT_TRUE(agrees(found.at(name), tensor, exact)) << name << " of\n" << to_string(g);
    }
  }
}

TEST(StridedOperands, TransposedSlicedAndReversed) {
  for (const DType dtype : {f32, f64, f16, DType::i8, DType::c128}) {
    const auto build = [=](Graph& g) {
      const Value x = g.input("x", {dtype, {70, 90}}), y = g.input("y", {dtype, {90, 70}});
      g.output("transposed", transpose(x, {1, 0}) + y);
      g.output("both", transpose(x, {1, 0}) * transpose(y, {0, 1}));
      g.output("sliced", slice_axis(x, 1, 3, 80) + slice_axis(x, 1, 7, 80));
      g.output("stepped", slice(x, {60, 1}, {30, 40}, {-2, 2}) - slice(x, {0, 0}, {30, 40}));
    };
    check_compiled(build, {{"x", random_tensor(dtype, {70, 90}, 1, -5, 5)},
                           {"y", random_tensor(dtype, {90, 70}, 2, -5, 5)}});
  }
}

TEST(CopyKernel, PermutationsOfEveryWidth) {
  const std::vector<std::vector<std::int64_t>> permutations = {
      {0, 2, 1, 3}, {0, 1, 3, 2}, {3, 2, 1, 0}, {1, 0, 2, 3}, {0, 2, 3, 1}, {2, 3, 0, 1}};
  for (const DType dtype : {DType::u8, f16, f32, f64, DType::c128}) {
    for (const Tensor::Dims& dims : {Tensor::Dims{2, 3, 5, 7}, Tensor::Dims{3, 34, 2, 66}}) {
      const auto build = [&](Graph& g) {
        const Value x = g.input("x", {dtype, Shape::of(dims)});
        for (std::size_t i = 0; i < permutations.size(); ++i)
          g.output(fmt::format("y{}", i), transpose(x, permutations[i]));
        g.output("broadcast", broadcast(slice_axis(x, 0, 0, 1), Shape::of(dims)));
      };
      check_compiled(build, {{"x", random_tensor(dtype, dims, 1, 0, 7)}});
    }
  }
}

}  // namespace
}  // namespace rlx
