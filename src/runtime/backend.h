#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "compiler/target.h"
#include "rlx/runtime.h"

namespace rlx {

/// A program planned for one set of sizes. Immutable; shared by contexts.
class BoundProgram {
 public:
  virtual ~BoundProgram() = default;
  virtual std::size_t arena_bytes() const = 0;
};

/// The memory of one Context on its device.
class DeviceContext {
 public:
  virtual ~DeviceContext() = default;
  /// Makes room for runs of `bound`; outputs of earlier runs are gone.
  virtual void prepare(const BoundProgram& bound) = 0;
  /// Inputs in the graph's order, of the sizes that `bound` was planned for. Throws `IndexError`.
  /// Allocates nothing where `times` is null.
  virtual void run(const BoundProgram& bound, std::span<const Tensor> inputs,
                   std::vector<StepTime>* times) = 0;
  /// A view of what the last run of `bound` wrote, valid while `memory` stays the same.
  virtual Tensor output(const BoundProgram& bound, std::size_t index) = 0;
  /// Another number whenever `prepare` moved the memory that outputs lie in.
  virtual std::uint64_t memory() const = 0;
  virtual Tensor state(std::string_view name) = 0;
  virtual void set_state(std::string_view name, const Tensor& value) = 0;
  virtual void reset() = 0;
};

/// A compiled graph on a device: its weights, and the plans made of it.
class Program {
 public:
  virtual ~Program() = default;
  /// Takes one weight in the form its kernels read.
  virtual void set_param(std::string_view name, const Tensor& value) = 0;
  virtual std::shared_ptr<const BoundProgram> bind(const DimBinding& sizes) = 0;
  virtual std::unique_ptr<DeviceContext> make_context() = 0;
  virtual std::size_t param_bytes() const = 0;
};

/// A kind of device.
class Backend : public Target {
 public:
  /// `graph` is legal for this target. Fills the report's steps.
  virtual std::shared_ptr<Program> build(std::shared_ptr<const Graph> graph,
                                         const CompileOptions& options, CompileReport& report) = 0;
};

/// Throws `InvalidArgument` listing the devices there are.
Backend& backend_for(std::string_view device);

}  // namespace rlx
