#include <fmt/format.h>

#include <map>
#include <nlohmann/json.hpp>

#include "apps/command.h"

namespace rlx::apps {
namespace {

// How many steps compute each operator: the same for models that spell a norm out and models that
// name it.
std::map<std::string, int> operators_of(const CompileReport& report) {
  std::map<std::string, int> counts;
  for (const StepReport& s : report.steps) ++counts[s.op];
  return counts;
}

void print_json(const CompileReport& report) {
  nlohmann::json object{
      {"device", report.device}, {"counts", report.counts}, {"param_bytes", report.param_bytes}};
  object["operators"] = operators_of(report);
  object["steps"] = nlohmann::json::array();
  for (const StepReport& s : report.steps) {
    object["steps"].push_back(
        {{"node", s.node}, {"op", s.op}, {"kernel", s.kernel}, {"note", s.note}});
  }
  object["passes"] = nlohmann::json::array();
  for (const auto& p : report.passes)
    object["passes"].push_back({{"name", p.name}, {"ms", p.milliseconds}, {"changed", p.changed}});
  fmt::print("{}\n", object.dump());
}

void explain(const ModelOptions& options) {
  const Executable exe =
      compile(load(options.model, {.dims = dims_of(options), .keep_mapped = true}),
              compile_options(options));
  const CompileReport& report = exe.report();
  if (options.json) return print_json(report);
  fmt::print("device {}\n", report.device);
  for (const auto& p : report.passes)
    fmt::print("pass {:<20} {:8.3f} ms{}\n", p.name, p.milliseconds,
               p.changed ? "" : "  no change");
  for (const auto& [what, count] : report.counts) fmt::print("{} {}\n", what, count);
  for (const auto& [op, count] : operators_of(report)) fmt::print("operator {} {}\n", op, count);
  fmt::print("weights {:.1f} MB\n", static_cast<double>(report.param_bytes) / 1e6);
  for (const StepReport& s : report.steps)
    fmt::print("{:<24} {:<20} {}{}\n", s.kernel, s.op, s.node, s.note.empty() ? "" : "  " + s.note);
}

}  // namespace

void add_explain(CLI::App& app) {
  auto options = std::make_shared<ModelOptions>();
  CLI::App* sub = app.add_subcommand(
      "explain", "Prints what the compiler made of a model: passes, fusions, kernels, memory.");
  add_model_options(*sub, *options);
  sub->callback([options] { explain(*options); });
}

}  // namespace rlx::apps
