#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>

#include "apps/command.h"

namespace rlx::apps {
namespace {

struct ProfileOptions : ModelOptions {
  int runs = 20;
  std::string trace;
};

// Chrome's trace format, which Perfetto reads.
void write_trace(const std::string& path, const std::vector<StepTime>& steps) {
  nlohmann::json events = nlohmann::json::array();
  double at = 0;
  for (const StepTime& s : steps) {
    events.push_back({{"name", s.kernel},
                      {"ph", "X"},
                      {"pid", 0},
                      {"tid", 0},
                      {"ts", at * 1e3},
                      {"dur", s.milliseconds * 1e3},
                      {"args", {{"node", s.node}, {"op", s.op}}}});
    at += s.milliseconds;
  }
  std::ofstream file(path);
  file << nlohmann::json{{"traceEvents", events}}.dump();
  if (!file.flush()) throw InvalidArgument(fmt::format("cannot write {}", path));
}

void profile(const ProfileOptions& options) {
  Graph graph = load(options.model, {.dims = dims_of(options), .keep_mapped = true});
  const NamedTensors inputs = make_inputs(ports_of(graph.inputs()), options, true);
  const Executable exe = compile(std::move(graph), compile_options(options));
  Context context(exe);
  Bound bound = context.bind(inputs);
  for (int i = 0; i < 3; ++i) bound.run();
  std::vector<std::vector<double>> times;
  std::vector<StepTime> steps;
  for (int i = 0; i < options.runs; ++i) {
    steps = bound.profile();
    times.resize(steps.size());
    for (std::size_t s = 0; s < steps.size(); ++s) times[s].push_back(steps[s].milliseconds);
  }
  std::map<std::string, std::pair<double, int>> kernels;
  double total = 0;
  for (std::size_t s = 0; s < steps.size(); ++s) {
    steps[s].milliseconds = percentile(times[s], 0.5);
    auto& [ms, count] = kernels[steps[s].kernel];
    ms += steps[s].milliseconds;
    ++count;
    total += steps[s].milliseconds;
  }
  if (!options.trace.empty()) write_trace(options.trace, steps);
  std::vector<std::pair<std::string, std::pair<double, int>>> rows(kernels.begin(), kernels.end());
  std::ranges::sort(rows, std::ranges::greater{}, [](const auto& row) { return row.second.first; });
  if (options.json) {
    nlohmann::json object{{"total_ms", total}, {"kernels", nlohmann::json::array()}};
    for (const auto& [kernel, row] : rows)
      object["kernels"].push_back(
          {{"kernel", kernel}, {"total_ms", row.first}, {"steps", row.second}});
    fmt::print("{}\n", object.dump());
    return;
  }
  fmt::print("{:<28} {:>6} {:>12} {:>7}\n", "kernel", "steps", "ms", "%");
  for (const auto& [kernel, row] : rows)
    fmt::print("{:<28} {:>6} {:>12.4f} {:>7.1f}\n", kernel, row.second, row.first,
               100 * row.first / total);
  fmt::print("{:<28} {:>6} {:>12.4f}\n", "all", steps.size(), total);
}

}  // namespace

void add_profile(CLI::App& app) {
  auto options = std::make_shared<ProfileOptions>();
  CLI::App* sub =
      app.add_subcommand("profile", "Times each kernel of a run; medians over several runs.");
  add_model_options(*sub, *options);
  add_input_options(*sub, *options);
  sub->add_option("--runs", options->runs, "timed runs, after 3 warm-ups")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  sub->add_option("--trace", options->trace, "file for a trace that Perfetto shows");
  sub->callback([options] { profile(*options); });
}

}  // namespace rlx::apps
