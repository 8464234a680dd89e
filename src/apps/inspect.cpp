#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "apps/command.h"
#include "ir/node.h"

namespace rlx::apps {
namespace {

std::size_t param_bytes(const Graph& graph) {
  std::size_t total = 0;
  for (const auto& p : graph.params())
    total += byte_size(p.value.dtype(),
                       static_cast<std::size_t>(*p.value.shape().element_count().constant()));
  return total;
}

std::map<std::string, int> histogram(const Graph& graph) {
  std::map<std::string, int> counts;
  for (const Node* node : graph.topological_order()) ++counts[std::string(node->op().name())];
  return counts;
}

void print_json(const Graph& graph) {
  nlohmann::json object;
  const auto list = [](const std::vector<Graph::Named>& named) {
    nlohmann::json array = nlohmann::json::array();
    for (const auto& n : named)
      array.push_back({{"name", n.name}, {"type", to_string(n.value.type())}});
    return array;
  };
  object["inputs"] = list(graph.inputs());
  object["outputs"] = list(graph.outputs());
  object["params"] = list(graph.params());
  object["param_bytes"] = param_bytes(graph);
  object["operators"] = histogram(graph);
  object["metadata"] = graph.metadata;
  fmt::print("{}\n", object.dump());
}

struct InspectOptions : ModelOptions {
  bool budget = false;
};

// What binding the sizes of --dim will take, before anything runs.
void print_budget(Graph graph, const InspectOptions& options) {
  const NamedTensors inputs = make_inputs(ports_of(graph.inputs()), options, true);
  const Executable exe = compile(std::move(graph), compile_options(options));
  Context context(exe);
  fmt::print("weights {:.1f} MB\narena {:.1f} MB\n",
             static_cast<double>(exe.report().param_bytes) / 1e6,
             static_cast<double>(context.bind(inputs).arena_bytes()) / 1e6);
}

void inspect(const InspectOptions& options) {
  Graph graph = load(options.model, {.dims = dims_of(options), .keep_mapped = true});
  if (options.json) return print_json(graph);
  if (options.budget) return print_budget(std::move(graph), options);
  fmt::print("{}", to_string(graph));
  fmt::print("// {} nodes, {} params, {:.1f} MB of weights\n", graph.topological_order().size(),
             graph.params().size(), static_cast<double>(param_bytes(graph)) / 1e6);
  for (const auto& [key, value] : graph.metadata) fmt::print("// {}: {}\n", key, value);
}

}  // namespace

void add_inspect(CLI::App& app) {
  auto options = std::make_shared<InspectOptions>();
  CLI::App* sub =
      app.add_subcommand("inspect", "Prints the graph, its inputs, outputs and weights.");
  add_model_options(*sub, *options);
  sub->add_flag("--budget", options->budget, "print the memory that the sizes of --dim take");
  sub->callback([options] { inspect(*options); });
}

}  // namespace rlx::apps
