#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "rlx/graph.h"
#include "rlx/tensor.h"

namespace rlx {

class ExecutableState;
class ContextState;
struct Binding;

inline namespace v0 {

using NamedTensors = std::map<std::string, Tensor>;

struct CompileOptions {
  std::string device = "cpu";
  /// 0: only what the device needs; 1: simplification; 2: fusion too. Answers agree within the
  /// documented tolerance.
  int optimization = 2;
  /// Sizes of symbols that are the same in every run; also decide predicates on shapes.
  DimBinding dims = {};
  /// Threads of a run; 0: as many as the process may use.
  int threads = 0;
  /// Keeps subnormal numbers, which are flushed to zero otherwise (a run can be 50 times slower
  /// with them).
  bool keep_denormals = false;
  /// Names of passes to leave out.
  std::vector<std::string> skip_passes = {};
};

/// What one node became.
struct StepReport {
  std::string node, op, kernel;
  std::string note;  ///< what was fused into it, or why a faster kernel declined
};

struct CompileReport {
  struct Pass {
    std::string name;
    double milliseconds = 0;
    bool changed = false;
  };
  std::string device;
  std::vector<StepReport> steps;
  std::vector<Pass> passes;
  std::map<std::string, int> counts;  ///< "raised attention", "fused region", …
  std::size_t param_bytes = 0;        ///< weights in the form the kernels read
};

/// Device time of one step of one run.
struct StepTime {
  std::string node, op, kernel;
  double milliseconds = 0;
};

/// A compiled graph. Immutable once its params are set, and then shareable between threads.
class RLX_EXPORT Executable {
 public:
  Executable(Executable&&) noexcept;
  Executable& operator=(Executable&&) noexcept;
  ~Executable();

  /// Sets a weight, before the first Context. Throws for an unknown name, a wrong dtype or wrong
  /// extents.
  void set_param(std::string_view name, Tensor value);

  struct Port {
    std::string name;
    TensorType type;
  };
  const std::vector<Port>& inputs() const;
  const std::vector<Port>& outputs() const;
  /// The weights of the graph as it was given.
  const std::vector<Port>& params() const;
  const CompileReport& report() const;
  /// How many times a graph was compiled for this executable: 1, and one more for each broken
  /// guard.
  int compilations() const;
  /// The compiled graph in text form.
  std::string text() const;

 private:
  friend class Context;
  friend Executable compile(Graph graph, const CompileOptions& options);
  explicit Executable(std::shared_ptr<ExecutableState> state);
  std::shared_ptr<ExecutableState> state_;
};

/// Compiles for one device. The graph's own weights are taken over (moved where `graph` is). Throws
/// `Unsupported` listing every node that the device cannot run.
RLX_EXPORT Executable compile(Graph graph, const CompileOptions& options = {});

/// Inputs that were checked and planned once; runs allocate nothing. Valid as long as its Context.
class RLX_EXPORT Bound {
 public:
  /// Reads the tensors given to `bind`. Outputs stay valid until the Context's next run or bind.
  /// Throws `IndexError` for faults in the data; then no output is valid and states that the run
  /// wrote are undefined until reset.
  void run();
  /// A view of the output in the Context's memory.
  const Tensor& output(std::string_view name) const;
  /// As `run`, timing each step.
  std::vector<StepTime> profile();
  /// Bytes of activations at their peak.
  std::size_t arena_bytes() const;

 private:
  friend class Context;
  Bound(ContextState* context, std::shared_ptr<Binding> binding);
  ContextState* context_;
  std::shared_ptr<Binding> binding_;
};

/// Memory and states for runs of an Executable, one at a time. Any number of Contexts may share an
/// Executable.
class RLX_EXPORT Context {
 public:
  explicit Context(const Executable& executable);
  Context(Context&&) noexcept;
  Context& operator=(Context&&) noexcept;
  ~Context();

  /// Runs on tensors by input name; the results are copies.
  NamedTensors run(const NamedTensors& inputs);
  /// Checks extents, plans memory and keeps the plan for the next binding of the same extents.
  Bound bind(const NamedTensors& inputs);

  Tensor state(std::string_view name) const;
  void set_state(std::string_view name, const Tensor& value);
  /// Puts all states back to their initial values.
  void reset();

 private:
  std::unique_ptr<ContextState> state_;
};

}  // namespace v0
}  // namespace rlx
