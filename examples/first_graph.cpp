// A small classifier from a graph to its numbers, then a counter that keeps a state between runs.
// Explained in docs/guide.md; built and run with the tests.

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <utility>

#include "rlx/error.h"
#include "rlx/graph.h"
#include "rlx/ops.h"
#include "rlx/runtime.h"

namespace {

rlx::Executable make_classifier() {
  rlx::Graph graph;
  const rlx::Value x = graph.input("x", {rlx::f32, {"batch", 3}});
  const rlx::Value w = graph.param("w", {rlx::f32, {3, 2}});
  graph.output("y", rlx::softmax(rlx::matmul(x, w), -1));

  rlx::Executable classifier = rlx::compile(std::move(graph), {.device = "cpu"});
  classifier.set_param("w", rlx::Tensor({3, 2}, {1.0F, -1.0F, 0.5F, 0.0F, 2.0F, 1.0F}));
  return classifier;
}

/// One graph and two batch sizes: both are runs of the same compilation.
bool run_any_batch(const rlx::Executable& classifier) {
  rlx::Context context(classifier);
  for (const std::int64_t batch : {1, 4}) {
    const rlx::NamedTensors results = context.run({{"x", rlx::Tensor(rlx::f32, {batch, 3})}});
    const rlx::Tensor& y = results.at("y");
    // Zeros give every class the same share.
    if (y.dims() != rlx::Tensor::Dims{batch, 2}) return false;
    for (const float share : y.values<float>()) {
      if (share != 0.5F) return false;
    }
  }
  return classifier.compilations() == 1;
}

/// Binds once and runs without allocating: new numbers go into the tensor that was bound.
bool run_bound(const rlx::Executable& classifier) {
  rlx::Context context(classifier);
  rlx::Tensor x({1, 3}, {0.0F, 0.0F, 0.0F});
  rlx::Bound bound = context.bind({{"x", x}});
  bound.run();
  std::printf("before: %.3f %.3f\n", bound.output("y").values<float>()[0],
              bound.output("y").values<float>()[1]);

  x.values<float>()[0] = 1.0F;
  bound.run();
  const float share = bound.output("y").values<float>()[0];
  std::printf("after:  %.3f %.3f\n", share, bound.output("y").values<float>()[1]);
  return std::abs(share - 1 / (1 + std::exp(-2.0F))) < 1e-6F;
}

/// total' = total + x: the run reads the old total and leaves the new one for the next run.
bool count_up() {
  rlx::Graph graph;
  const rlx::Value x = graph.input("x", {rlx::f32, {2}});
  const rlx::Value total = graph.state("total", {rlx::f32, {2}});
  const rlx::Value next = total + x;
  graph.update(total, next);
  graph.output("sum", next);

  const rlx::Executable counter = rlx::compile(std::move(graph));
  rlx::Context context(counter);
  const rlx::NamedTensors inputs = {{"x", rlx::Tensor({2}, {1.0F, 10.0F})}};
  context.run(inputs);
  const rlx::Tensor sum = context.run(inputs).at("sum");
  std::printf("sum:    %.0f %.0f\n", sum.values<float>()[0], sum.values<float>()[1]);
  const bool kept = context.state("total").values<float>()[1] == 20.0F;
  context.reset();
  return kept && context.run(inputs).at("sum").values<float>()[1] == 10.0F;
}

/// What a wrong extent gives: an exception that names the input and both values.
bool refuses_wrong_extents(const rlx::Executable& classifier) {
  rlx::Context context(classifier);
  try {
    context.run({{"x", rlx::Tensor(rlx::f32, {1, 4})}});
  } catch (const rlx::ShapeError& error) {
    std::printf("error:  %s\n", error.what());
    return true;
  }
  return false;
}

}  // namespace

int main() {
  const rlx::Executable classifier = make_classifier();
  const bool right = run_any_batch(classifier) && run_bound(classifier) && count_up() &&
                     refuses_wrong_extents(classifier);
  return right ? 0 : 1;
}
