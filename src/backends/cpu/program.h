#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "backends/cpu/kernel.h"
#include "base/os_memory.h"
#include "compiler/bound_graph.h"
#include "runtime/backend.h"

namespace rlx::cpu {

struct Step {
  StepFunction function;
  const void* params;
  const Node* node;
  std::string_view kernel;
};

/// One entry of the table of base addresses that steps refer to.
struct Slot {
  enum class Kind : std::uint8_t { arena, input, fixed, state };
  Kind kind = Kind::arena;
  std::size_t index = 0;             ///< of the input or state
  std::size_t offset = 0;            ///< in the arena
  const std::byte* fixed = nullptr;  ///< weights and constants
};

/// A plan for one set of sizes: steps with their parameters, and where each slot lies.
class Plan : public BoundProgram {
 public:
  std::size_t arena_bytes() const override { return arena_bytes_; }

  std::vector<Step> steps;
  std::vector<Slot> slots;
  std::vector<ValueView> outputs;
  std::vector<std::shared_ptr<const void>> owned;
  DimBinding sizes;
  std::size_t arena_bytes_ = 0;
};

/// Weights as bytes, aligned to 64 and in large pages where they are large.
class Weights {
 public:
  explicit Weights(std::size_t bytes) : memory_(allocate_zeroed(bytes)), bytes_(bytes) {}
  std::byte* data() const { return memory_.get(); }
  std::size_t bytes() const { return bytes_; }

 private:
  std::shared_ptr<std::byte> memory_;
  std::size_t bytes_;
};

/// A graph compiled for the CPU.
class CpuProgram : public Program {
 public:
  CpuProgram(std::shared_ptr<const Graph> graph, const CompileOptions& options,
             CompileReport& report);

  void set_param(std::string_view name, const Tensor& value) override;
  std::shared_ptr<const BoundProgram> bind(const DimBinding& sizes) override;
  std::unique_ptr<DeviceContext> make_context() override;
  std::size_t param_bytes() const override;

  const Graph& graph() const { return *graph_; }
  const CompileOptions& options() const { return options_; }
  const Kernel* kernel_of(const Node* node) const;
  /// Weights in packed form; set once all params are.
  const std::vector<const Weights*>& packed_weights() const { return packed_; }
  /// Which of them `node` reads for its input.
  std::optional<std::size_t> packed_index(const Node* node, std::size_t input) const;
  const std::byte* param(std::string_view name) const;

 private:
  struct ParamUse {
    bool read_plain = false;
    /// Forms that kernels want, each once, with its index among all packed weights.
    std::vector<std::pair<std::size_t, PackedParam>> packings;
  };

  void choose_kernels(CompileReport& report);
  void collect_packings(const Node& node, const Kernel& kernel);
  void read_plainly(Value value);

  std::shared_ptr<const Graph> graph_;
  CompileOptions options_;
  std::unordered_map<const Node*, const Kernel*> kernels_;
  std::map<std::pair<const Node*, std::size_t>, std::size_t> packed_inputs_;
  std::map<std::string, ParamUse, std::less<>> params_;
  std::vector<std::unique_ptr<Weights>> packed_storage_;
  std::vector<const Weights*> packed_;
  std::map<std::string, Tensor, std::less<>> plain_;
};

}  // namespace rlx::cpu
