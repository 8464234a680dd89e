#include <fmt/format.h>

#include <chrono>
#include <nlohmann/json.hpp>

#include "apps/command.h"

namespace rlx::apps {
namespace {

struct BenchOptions : ModelOptions {
  int runs = 50;
  bool cold = false;
};

using Clock = std::chrono::steady_clock;
double since(Clock::time_point start) {
  return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
}

constexpr int kWarmUps = 3;

void bench(const BenchOptions& options) {
  nlohmann::json object;
  auto start = Clock::now();
  Graph graph = load(options.model, {.dims = dims_of(options), .keep_mapped = true});
  const NamedTensors inputs = make_inputs(ports_of(graph.inputs()), options, true);
  object["load_ms"] = since(start);
  start = Clock::now();
  const Executable exe = compile(std::move(graph), compile_options(options));
  object["compile_ms"] = since(start);
  start = Clock::now();
  Context context(exe);
  Bound bound = context.bind(inputs);
  object["bind_ms"] = since(start);
  start = Clock::now();
  bound.run();
  object["first_run_ms"] = since(start);
  for (int i = 1; i < kWarmUps; ++i) bound.run();
  std::vector<double> times;
  for (int i = 0; i < options.runs; ++i) {
    start = Clock::now();
    bound.run();
    times.push_back(since(start));
  }
  object["median_ms"] = percentile(times, 0.5);
  object["p25_ms"] = percentile(times, 0.25);
  object["p75_ms"] = percentile(times, 0.75);
  object["p99_ms"] = percentile(times, 0.99);
  object["min_ms"] = percentile(times, 0);
  object["runs"] = options.runs;
  object["arena_bytes"] = bound.arena_bytes();
  object["param_bytes"] = exe.report().param_bytes;
  if (options.json) {
    fmt::print("{}\n", object.dump());
    return;
  }
  for (const char* key : {"load_ms", "compile_ms", "bind_ms", "first_run_ms"}) {
    if (options.cold) fmt::print("{:<14} {:10.3f}\n", key, object[key].get<double>());
  }
  for (const char* key : {"min_ms", "p25_ms", "median_ms", "p75_ms", "p99_ms"})
    fmt::print("{:<14} {:10.3f}\n", key, object[key].get<double>());
}

}  // namespace

void add_bench(CLI::App& app) {
  auto options = std::make_shared<BenchOptions>();
  CLI::App* sub = app.add_subcommand("bench", "Times runs of a model, after 3 warm-ups.");
  add_model_options(*sub, *options);
  add_input_options(*sub, *options);
  sub->add_option("--runs", options->runs, "timed runs")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  sub->add_flag("--cold", options->cold,
                "print milliseconds of each stage before the first run too");
  sub->callback([options] { bench(*options); });
}

}  // namespace rlx::apps
