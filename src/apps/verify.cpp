#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "apps/command.h"
#include "compiler/check_passes.h"
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

// Names the first pass that changes the answer, and where.
void check_passes_of(Graph graph, const VerifyOptions& options) {
  const auto ports = ports_of(graph.inputs());
  PassCheckOptions check{.sizes = sizes_of(ports, options),
                         .given = make_inputs(ports, options, true),
                         .tolerance = options.tolerance};
  CompileReport compiled;
  std::vector<PreparedParam> prepared;
  const CompileOptions compile = compile_options(options);
  const auto show = [&](const PassCheck& c) {
    std::string what = fmt::format("pass {}, {}", c.pass, name(c.inputs));
    if (!c.node.empty()) what += fmt::format(", from node {}", c.node);
    report(options, what, {c.output, c.difference});
  };
  check_passes(std::move(graph), {backend_for(options.device), compile, compiled, prepared}, check,
               show);
}

void verify(const VerifyOptions& options) {
  Graph graph = load(options.model, {.dims = dims_of(options), .keep_mapped = true});
  if (options.check_passes) return check_passes_of(std::move(graph), options);
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
