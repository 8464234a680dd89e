#include "apps/command.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "formats/npy.h"
#include "ops/host_array.h"

namespace rlx::apps {
namespace {

std::pair<std::string, std::string> split_assignment(const std::string& text, const char* option) {
  const std::size_t at = text.find('=');
  if (at == std::string::npos || at == 0)
    throw UsageError(fmt::format("{} {}: expected NAME=VALUE", option, text));
  return {text.substr(0, at), text.substr(at + 1)};
}

std::optional<double> number(const std::string& text) {
  std::size_t used = 0;
  try {
    const double value = std::stod(text, &used);
    if (used == text.size()) return value;
  } catch (const std::exception&) {
  }
  return std::nullopt;
}

bool is_file(const std::string& value) { return value.ends_with(".npy"); }

template <class F>
Tensor filled(const Executable::Port& port, const DimBinding& sizes, F&& next) {
  HostArray a(port.type.dtype, port.type.shape.evaluate(sizes));
  visit_numbers(a, [&](auto zero) {
    using T = decltype(zero);
    for (T& v : a.as<T>()) v = static_cast<T>(next());
  });
  return a.to_tensor();
}

// "random", "random:LOW:HIGH"
Tensor random_input(const Executable::Port& port, const std::string& value,
                    const DimBinding& sizes) {
  double low = 0;
  double high = 1;
  if (value != "random") {
    const std::size_t middle = value.find(':', 7);
    const std::string first = value.substr(7, middle == std::string::npos ? middle : middle - 7);
    const std::string second = middle == std::string::npos ? "" : value.substr(middle + 1);
    const double nan = std::nan("");
    low = number(first).value_or(nan);
    high = number(second).value_or(nan);
    if (!(low <= high)) {
      throw UsageError(fmt::format("--input {}={}: expected random:LOW:HIGH", port.name, value));
    }
  }
  std::mt19937_64 engine(42);
  if (is_floating(port.type.dtype)) {
    std::uniform_real_distribution<double> draw(low, high);
    return filled(port, sizes, [&] { return draw(engine); });
  }
  std::uniform_int_distribution<std::int64_t> draw(static_cast<std::int64_t>(low),
                                                   static_cast<std::int64_t>(high));
  return filled(port, sizes, [&] { return static_cast<double>(draw(engine)); });
}

Tensor default_input(const Executable::Port& port, const DimBinding& sizes) {
  if (!is_floating(port.type.dtype)) return filled(port, sizes, [] { return 1.0; });
  std::mt19937_64 engine(42);
  std::normal_distribution<double> draw;
  return filled(port, sizes, [&] { return draw(engine); });
}

Tensor given_input(const Executable::Port& port, const std::string& value,
                   const DimBinding& sizes) {
  if (is_file(value)) return load_npy(value);
  if (value.starts_with("random")) return random_input(port, value, sizes);
  const auto scalar = number(value);
  if (!scalar)
    throw UsageError(fmt::format("--input {}={}: expected FILE.npy, random[:LOW:HIGH] or a number",
                                 port.name, value));
  return filled(port, sizes, [&] { return *scalar; });
}

const Executable::Port& port_named(const std::vector<Executable::Port>& ports,
                                   const std::string& name) {
  std::vector<std::string> known;
  for (const auto& port : ports) {
    if (port.name == name) return port;
    known.push_back(port.name);
  }
  throw InvalidArgument(
      fmt::format("there is no input {}; the inputs are {}", name, fmt::join(known, ", ")));
}

void require_sizes(const Executable::Port& port, const DimBinding& sizes) {
  std::vector<std::string> symbols;
  for (const Dim d : port.type.shape) d.collect_symbols(symbols);
  std::erase_if(symbols, [&](const std::string& s) { return sizes.find(s).has_value(); });
  if (symbols.empty()) return;
  throw InvalidArgument(fmt::format("input {} {} needs sizes: give --dim {}=N", port.name,
                                    to_string(port.type), fmt::join(symbols, "=N --dim ")));
}

}  // namespace

void add_model_options(CLI::App& app, ModelOptions& options) {
  app.add_option("MODEL", options.model, "model file (.onnx, .rlx)")->required();
  app.add_option("--device", options.device, "cpu")->capture_default_str();
  app.add_option("--threads", options.threads,
                 "threads of a run; 0: as many as this process may use")
      ->check(CLI::NonNegativeNumber);
  app.add_option("--dim", options.dims, "size of a symbolic dimension, NAME=VALUE (repeatable)");
  app.add_option("--optimization", options.optimization,
                 "0: only what the device needs, 1: simplify, 2: fuse")
      ->check(CLI::Range(0, 2));
  app.add_flag("--json", options.json, "print one JSON object");
}

void add_input_options(CLI::App& app, ModelOptions& options) {
  app.add_option("--input", options.inputs,
                 "NAME=FILE.npy, NAME=random[:LOW:HIGH] or NAME=VALUE (repeatable)");
}

DimBinding dims_of(const ModelOptions& options) {
  DimBinding sizes;
  for (const std::string& text : options.dims) {
    const auto [name, value] = split_assignment(text, "--dim");
    const auto size = number(value);
    if (!size || *size < 0 || *size != std::floor(*size))
      throw UsageError(fmt::format("--dim {}: expected a size", text));
    sizes.set(name, static_cast<std::int64_t>(*size));
  }
  return sizes;
}

CompileOptions compile_options(const ModelOptions& options) {
  return {.device = options.device,
          .optimization = options.optimization,
          .dims = dims_of(options),
          .threads = options.threads};
}

DimBinding sizes_of(const std::vector<Executable::Port>& ports, const ModelOptions& options) {
  DimBinding sizes = dims_of(options);
  for (const std::string& text : options.inputs) {
    const auto [name, value] = split_assignment(text, "--input");
    const Executable::Port& port = port_named(ports, name);
    if (!is_file(value)) continue;
    const Tensor tensor = load_npy(value);
    for (std::size_t axis = 0; axis < std::min(tensor.rank(), port.type.rank()); ++axis) {
      const Dim d = port.type.shape[axis];
      if (d.is_symbol() && !sizes.find(d.symbol_name()))
        sizes.set(d.symbol_name(), tensor.dims()[axis]);
    }
  }
  return sizes;
}

NamedTensors make_inputs(const std::vector<Executable::Port>& ports, const ModelOptions& options,
                         bool fill) {
  const DimBinding sizes = sizes_of(ports, options);
  NamedTensors inputs;
  for (const std::string& text : options.inputs) {
    const auto [name, value] = split_assignment(text, "--input");
    const Executable::Port& port = port_named(ports, name);
    if (inputs.contains(name)) throw UsageError(fmt::format("--input {} is given twice", name));
    if (!is_file(value)) require_sizes(port, sizes);
    inputs[name] = given_input(port, value, sizes);
  }
  for (const auto& port : ports) {
    if (inputs.contains(port.name)) continue;
    if (!fill)
      throw UsageError(fmt::format("input {} {} is missing: give --input {}=…", port.name,
                                   to_string(port.type), port.name));
    require_sizes(port, sizes);
    inputs[port.name] = default_input(port, sizes);
  }
  return inputs;
}

std::vector<Executable::Port> ports_of(const std::vector<Graph::Named>& named) {
  std::vector<Executable::Port> ports;
  for (const auto& n : named) ports.push_back({n.name, n.value.type()});
  return ports;
}

double percentile(std::vector<double> values, double p) {
  if (values.empty()) return NAN;
  std::ranges::sort(values);
  const double at = p * static_cast<double>(values.size() - 1);
  const auto low = static_cast<std::size_t>(at);
  const std::size_t high = std::min(low + 1, values.size() - 1);
  return values[low] + (at - static_cast<double>(low)) * (values[high] - values[low]);
}

}  // namespace rlx::apps
