#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "apps/command.h"
#include "compiler/fused.h"
#include "compiler/pipeline.h"
#include "ops/evaluate.h"
#include "runtime/backend.h"

namespace rlx::apps {
namespace {

struct VerifyOptions : ModelOptions {
  bool check_passes = false;
  double tolerance = 1e-4;
};

// The largest difference relative to the largest magnitude; infinite where NaN or infinities do not
// match.
double difference(const Tensor& found, const Tensor& expected) {
  const HostArray x(found);
  const HostArray y(expected);
  if (x.dims() != y.dims() || x.dtype() != y.dtype()) return INFINITY;
  double worst = 0;
  double scale = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double a = x.real(i);
    const double b = y.real(i);
    if (std::isnan(a) && std::isnan(b)) continue;
    if (a == b) {
      if (std::isfinite(b)) scale = std::max(scale, std::fabs(b));
      continue;
    }
    if (!std::isfinite(a) || !std::isfinite(b)) return INFINITY;
    worst = std::max(worst, std::fabs(a - b));
    scale = std::max(scale, std::fabs(b));
  }
  return scale > 0 ? worst / scale : worst;
}

std::pair<std::string, double> worst_output(const NamedTensors& found,
                                            const NamedTensors& expected) {
  std::pair<std::string, double> worst{"", 0};
  for (const auto& [name, tensor] : expected) {
    const double d = difference(found.at(name), tensor);
    if (d >= worst.second) worst = {name, d};
  }
  return worst;
}

void report(const VerifyOptions& options, const std::string& what,
            const std::pair<std::string, double>& worst) {
  const bool good = worst.second <= options.tolerance;
  if (options.json) {
    fmt::print(
        "{}\n",
        nlohmann::json{
            {"ok", good}, {"what", what}, {"output", worst.first}, {"difference", worst.second}}
            .dump());
  } else {
    fmt::print("{}: largest difference {:.3g} in output {}{}\n", what, worst.second, worst.first,
               good ? "" : " — too large");
  }
  if (!good)
    throw InvalidArgument(fmt::format("{}: output {} differs by {:.3g}, allowed {:.3g}", what,
                                      worst.first, worst.second, options.tolerance));
}

// Values of the prepared params, from the weights of the graph as it was.
NamedTensors with_prepared(NamedTensors inputs, const std::vector<PreparedParam>& prepared,
                           const Graph& original) {
  for (const PreparedParam& p : prepared) {
    NamedTensors sources;
    for (const std::string& name : p.sources()) sources[name] = *original.data_of(name);
    inputs[p.name] = evaluate_graph(p.graph, sources).at("y");
  }
  return inputs;
}

// Evaluates the graph after each pass that changed it and names the first that changes the answer.
void check_passes(Graph graph, const VerifyOptions& options) {
  const NamedTensors inputs = make_inputs(ports_of(graph.inputs()), options, true);
  const NamedTensors expected = evaluate_graph(graph, inputs);
  CompileReport compiled;
  const CompileOptions compile = compile_options(options);
  std::string last = to_string(graph);
  const Graph original = graph.clone();
  std::vector<PreparedParam> prepared;
  run_passes(graph, {backend_for(options.device), compile, compiled, prepared},
             [&](const Pass& pass, const Graph& after) {
               const std::string text = to_string(after);
               if (text == last) return;
               last = text;
               report(options, fmt::format("pass {}", pass.name),
                      worst_output(evaluate_graph(after, with_prepared(inputs, prepared, original)),
                                   expected));
             });
}

void verify(const VerifyOptions& options) {
  Graph graph = load(options.model, {.dims = dims_of(options), .keep_mapped = true});
  if (options.check_passes) return check_passes(std::move(graph), options);
  const NamedTensors inputs = make_inputs(ports_of(graph.inputs()), options, true);
  const NamedTensors expected = evaluate_graph(graph, inputs);
  const Executable exe = compile(std::move(graph), compile_options(options));
  Context context(exe);
  report(options, options.device, worst_output(context.run(inputs), expected));
}

}  // namespace

void add_verify(CLI::App& app) {
  auto options = std::make_shared<VerifyOptions>();
  CLI::App* sub = app.add_subcommand("verify", "Compares a device with the reference evaluation.");
  add_model_options(*sub, *options);
  add_input_options(*sub, *options);
  sub->add_flag("--check-passes", options->check_passes,
                "evaluate the graph after each pass and name the first that changes the answer");
  sub->add_option("--tolerance", options->tolerance,
                  "largest difference, relative to the largest magnitude")
      ->capture_default_str();
  sub->callback([options] { verify(*options); });
}

}  // namespace rlx::apps
