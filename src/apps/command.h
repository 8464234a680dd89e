#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "rlx/load.h"
#include "rlx/runtime.h"

namespace rlx::apps {

/// Options that most subcommands share.
struct ModelOptions {
  std::string model;
  std::string device = "cpu";
  int threads = 0;
  int optimization = 2;
  std::vector<std::string> dims;    ///< NAME=VALUE
  std::vector<std::string> inputs;  ///< NAME=FILE.npy, NAME=random[:LOW:HIGH], NAME=VALUE
  bool json = false;
};

/// Wrong usage: exit code 2.
class UsageError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

void add_model_options(CLI::App& app, ModelOptions& options);
void add_input_options(CLI::App& app, ModelOptions& options);

/// Sizes given by --dim.
DimBinding dims_of(const ModelOptions& options);
CompileOptions compile_options(const ModelOptions& options);
/// What --input gives, with extents from files or --dim. Inputs not given are filled where `fill`
/// is set: floats N(0,1), integers 1, bools true; else they are an error. Symbols without a size
/// are a usage error that lists them.
NamedTensors make_inputs(const std::vector<Executable::Port>& ports, const ModelOptions& options,
                         bool fill);
/// Sizes of all symbols that files given by --input determine, and those of --dim.
DimBinding sizes_of(const std::vector<Executable::Port>& ports, const ModelOptions& options);
std::vector<Executable::Port> ports_of(const std::vector<Graph::Named>& named);

/// Median, quartiles and other percentiles of times in milliseconds.
double percentile(std::vector<double> values, double p);

void add_run(CLI::App& app);
void add_inspect(CLI::App& app);
void add_explain(CLI::App& app);
void add_bench(CLI::App& app);
void add_profile(CLI::App& app);
void add_verify(CLI::App& app);
void add_embed(CLI::App& app);

}  // namespace rlx::apps
