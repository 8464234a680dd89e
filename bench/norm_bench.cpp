// Softmax, layer norm and sums along the last and the first axis, from L1 to memory, through the
// public interface. Bytes are those of inputs and outputs; beside them, in the same run, those of a
// plain copy of the same size (read once, written once) on one thread.

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstring>
#include <functional>
#include <utility>

#include "measure.h"
#include "rlx/ops.h"
#include "rlx/runtime.h"

namespace rlx::bench {
namespace {

struct Subject {
  const char* name;
  std::function<Value(Value x, Graph& g)> build;
};

const Subject kSubjects[] = {
    {"softmax", [](Value x, Graph&) { return softmax(x, -1); }},
    {"layer_norm",
     [](Value x, Graph& g) {
       const Dim cols = x.shape().back();
       return layer_norm(x, g.input("scale", {f32, {cols}}), g.input("bias", {f32, {cols}}));
     }},
    {"sum of rows", [](Value x, Graph&) { return sum(x, {1}); }},
    {"sum of columns", [](Value x, Graph&) { return sum(x, {0}); }},
    {"max of rows", [](Value x, Graph&) { return reduce(x, Reduction::max, {1}); }},
};

Tensor ramp(Tensor::Dims dims) {
  Tensor t(f32, std::move(dims));
  float next = 0;
  for (float& v : t.values<float>()) v = next = next > 3 ? -3 : next + 0.01F;
  return t;
}

double copy_seconds(std::size_t bytes, double seconds) {
  std::vector<char> from(bytes, 1), to(bytes);
  const auto copy = [&] {
    std::memcpy(to.data(), from.data(), bytes);
    asm volatile("" : : "r"(to.data()) : "memory");
  };
  return seconds_per_call(copy, calls_for(copy, seconds));
}

void measure(const Subject& subject, std::int64_t rows, std::int64_t cols, int threads,
             double seconds) {
  Graph g;
  const Value y = subject.build(g.input("x", {f32, {rows, cols}}), g);
  g.output("y", y);
  NamedTensors inputs;
  for (const auto& input : g.inputs())
    inputs[input.name] = ramp(input.value.shape().static_extents().value());
  const auto result = static_cast<std::size_t>(y.shape().element_count().constant().value());
  const std::size_t bytes = sizeof(float) * (inputs.at("x").size() + result);

  const Executable exe = compile(std::move(g), {.threads = threads});
  Context context(exe);
  Bound bound = context.bind(inputs);
  const auto run = [&] { bound.run(); };
  const double each = seconds_per_call(run, calls_for(run, seconds));
  const double copy = copy_seconds(inputs.at("x").bytes().size(), seconds);
  fmt::print("{:<15} {:>6} x {:<6} {:>9.2f} us {:>7.1f} GB/s, copy {:>7.1f} GB/s\n", subject.name,
             rows, cols, each * 1e6, static_cast<double>(bytes) / each / 1e9,
             2 * static_cast<double>(inputs.at("x").bytes().size()) / copy / 1e9);
}

}  // namespace
}  // namespace rlx::bench

int main(int argc, char** argv) {
  CLI::App app("Bandwidth of normalisations and reductions");
  int threads = 1;
  double seconds = 0.1;
  app.add_option("--threads", threads);
  app.add_option("--seconds", seconds, "for each measurement");
  CLI11_PARSE(app, argc, argv);
  constexpr std::int64_t kShapes[][2] = {{16, 128}, {128, 384}, {512, 768}, {4096, 4096}};
  for (const auto& subject : rlx::bench::kSubjects) {
    for (const auto& [rows, cols] : kShapes)
      rlx::bench::measure(subject, rows, cols, threads, seconds);
  }
  return 0;
}
