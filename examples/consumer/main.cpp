// A linear classifier, compiled once and run for two batch sizes; also shows what an error says.

#include <cstdint>
#include <cstdio>
#include <utility>

#include "rlx/graph.h"
#include "rlx/ops.h"
#include "rlx/runtime.h"

namespace {

constexpr std::int64_t kFeatures = 3;
constexpr std::int64_t kClasses = 2;

rlx::Executable make_classifier() {
  rlx::Graph graph;
  const rlx::Value x = graph.input("x", {rlx::f32, {"batch", kFeatures}});
  const rlx::Value w = graph.param("w", {rlx::f32, {kFeatures, kClasses}});
  graph.output("y", rlx::softmax(rlx::matmul(x, w), -1));
  rlx::Executable classifier = rlx::compile(std::move(graph));
  classifier.set_param("w",
                       rlx::Tensor({kFeatures, kClasses}, {1.0F, -1.0F, 0.5F, 0.0F, 2.0F, 1.0F}));
  return classifier;
}

/// Whether `rows` inputs give as many rows of probabilities that sum to 1.
bool gives_probabilities(rlx::Context& context, std::int64_t rows) {
  rlx::Tensor x(rlx::f32, {rows, kFeatures});
  float next = 0;
  for (float& value : x.values<float>()) value = next += 0.25F;

  const rlx::Tensor y = context.run({{"x", x}}).at("y");
  bool sums_to_one = y.dims() == rlx::Tensor::Dims{rows, kClasses};
  for (std::int64_t row = 0; sums_to_one && row < rows; ++row) {
    const auto shares = y.values<float>().subspan(row * kClasses, kClasses);
    std::printf("row %d: %.3f %.3f\n", static_cast<int>(row), shares[0], shares[1]);
    const float sum = shares[0] + shares[1];
    sums_to_one = sum > 0.9999F && sum < 1.0001F;
  }
  return sums_to_one;
}

bool refuses_wrong_extents(rlx::Context& context) {
  try {
    context.run({{"x", rlx::Tensor(rlx::f32, {1, kFeatures + 1})}});
  } catch (const rlx::Error& error) {
    std::printf("refused, as it should be: %s\n", error.what());
    return true;
  }
  return false;
}

}  // namespace

int main() {
  const rlx::Executable classifier = make_classifier();
  rlx::Context context(classifier);
  const bool right = gives_probabilities(context, 1) && gives_probabilities(context, 4) &&
                     refuses_wrong_extents(context) && classifier.compilations() == 1;
  return right ? 0 : 1;
}
