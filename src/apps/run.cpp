#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "apps/command.h"
#include "formats/npy.h"
#include "ops/host_array.h"

namespace rlx::apps {
namespace {

struct RunOptions : ModelOptions {
  std::string save;
};

// File names hold letters, digits, dots, dashes and underscores only, and no leading dot.
std::string file_name(const std::string& output) {
  std::string name = output;
  for (char& c : name) {
    const bool plain =
        std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '.' || c == '_' || c == '-';
    if (!plain) c = '_';
  }
  if (name.starts_with('.')) name[0] = '_';
  return name + ".npy";
}

void save_outputs(const NamedTensors& outputs, const std::string& folder) {
  std::map<std::string, std::string> names;
  for (const auto& [name, tensor] : outputs) {
    const auto [at, is_new] = names.emplace(file_name(name), name);
    if (!is_new)
      throw InvalidArgument(
          fmt::format("outputs {} and {} would both be saved as {}", at->second, name, at->first));
  }
  std::filesystem::create_directories(folder);
  for (const auto& [file, name] : names)
    save_npy((std::filesystem::path(folder) / file).string(), outputs.at(name));
}

struct Summary {
  double low = INFINITY, high = -INFINITY, mean = 0;
  std::size_t nans = 0;
};

Summary summary_of(const Tensor& t) {
  const HostArray a(t);
  Summary s;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const double v = a.real(i);
    s.nans += std::isnan(v);
    s.low = std::min(s.low, v);
    s.high = std::max(s.high, v);
    s.mean += v / static_cast<double>(a.size());
  }
  return s;
}

bool is_real(DType d) { return is_floating(d) || is_integer(d) || d == DType::boolean; }

void print_text(const NamedTensors& outputs) {
  for (const auto& [name, t] : outputs) {
    std::string line = fmt::format("{} {}{}", name, rlx::name(t.dtype()), to_string(t.dims()));
    if (is_real(t.dtype()) && t.size() > 0) {
      const Summary s = summary_of(t);
      line += fmt::format("  min {:.6g}  mean {:.6g}  max {:.6g}", s.low, s.mean, s.high);
      if (s.nans > 0) line += fmt::format("  NaN {}", s.nans);
    }
    fmt::print("{}\n", line);
  }
}

void print_json(const NamedTensors& outputs) {
  nlohmann::json object;
  for (const auto& [name, t] : outputs) {
    object["outputs"][name] = {{"dtype", rlx::name(t.dtype())}, {"shape", t.dims()}};
  }
  fmt::print("{}\n", object.dump());
}

void run(const RunOptions& options) {
  Graph graph = load(options.model, {.dims = dims_of(options), .keep_mapped = true});
  const NamedTensors inputs = make_inputs(ports_of(graph.inputs()), options, false);
  const Executable exe = compile(std::move(graph), compile_options(options));
  Context context(exe);
  const NamedTensors outputs = context.run(inputs);
  if (!options.save.empty()) save_outputs(outputs, options.save);
  options.json ? print_json(outputs) : print_text(outputs);
}

}  // namespace

void add_run(CLI::App& app) {
  auto options = std::make_shared<RunOptions>();
  CLI::App* sub = app.add_subcommand("run", "Runs a model once on the given inputs.");
  add_model_options(*sub, *options);
  add_input_options(*sub, *options);
  sub->add_option("--save", options->save, "folder for the outputs, <output name>.npy each");
  sub->callback([options] { run(*options); });
}

}  // namespace rlx::apps
