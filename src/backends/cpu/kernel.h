#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "base/thread_pool.h"
#include "ir/node.h"
#include "runtime/fault.h"

namespace rlx::cpu {

/// Where bytes lie: an entry of the run's table of base addresses, and an offset from it.
struct Buffer {
  std::uint32_t slot = 0;
  std::uint64_t offset = 0;
};

/// What a kernel is given at run time.
struct Run {
  std::byte* const* slots;
  ThreadPool& pool;
  FaultSlot& faults;
  std::uint32_t step = 0;  ///< index of the step, for the fault slot

  template <class T>
  T* at(Buffer b) const noexcept {
    return reinterpret_cast<T*>(slots[b.slot] + b.offset);
  }
};

/// A value as a kernel sees it when it plans: extents and strides (both in elements) are known,
/// addresses are not.
struct Operand {
  DType dtype = DType::f32;
  std::vector<std::int64_t> dims;
  std::vector<std::int64_t> strides;
  Buffer at;

  std::size_t rank() const { return dims.size(); }
  std::int64_t size() const {
    std::int64_t count = 1;
    for (const std::int64_t d : dims) count *= d;
    return count;
  }
  /// Row-major without gaps.
  bool is_dense() const;
};

using StepFunction = void (*)(const void* params, const Run& run) noexcept;

/// Collects what one node does at run time. Kernels call `launch` once or more, in order.
class StepBuilder {
 public:
  virtual ~StepBuilder() = default;

  const Node& node() const { return *node_; }
  bool has(std::size_t i) const { return i < inputs_.size() && inputs_[i].has_value(); }
  /// Dense unless the kernel declares that input as strided.
  const Operand& in(std::size_t i) const { return *inputs_[i]; }
  std::size_t input_count() const { return inputs_.size(); }
  /// Always dense.
  const Operand& out(std::size_t i = 0) const { return outputs_[i]; }
  const DimBinding& sizes() const { return *sizes_; }
  int threads() const { return threads_; }

  /// Bytes that only this node's steps use, aligned to 64.
  virtual Buffer scratch(std::size_t bytes) = 0;
  /// The form of param input i that the kernel's `packing` made; none where that input is not a
  /// packed param.
  virtual std::optional<Buffer> packed(std::size_t i) const = 0;
  /// The value of input i where it is a constant of the graph.
  const Tensor* constant(std::size_t i) const;

  /// Adds a step. `Params` is copied; it is trivially copyable and refers to memory by `Buffer` or
  /// by `keep`.
  template <class Params>
  void launch(void (*function)(const Params&, const Run&) noexcept, const Params& params) {
    static_assert(std::is_trivially_copyable_v<Params>);
    auto copy = std::make_shared<std::pair<void (*)(const Params&, const Run&) noexcept, Params>>(
        function, params);
    const void* bound = copy.get();
    keep_alive(std::move(copy));
    add_step(
        [](const void* p, const Run& run) noexcept {
          const auto& [f, values] =
              *static_cast<const std::pair<void (*)(const Params&, const Run&) noexcept, Params>*>(
                  p);
          f(values, run);
        },
        bound);
  }

  /// A copy of `values` that lives as long as the plan.
  template <class T>
  std::span<const T> keep(std::span<const T> values) {
    auto copy = std::make_shared<std::vector<T>>(values.begin(), values.end());
    const std::span<const T> kept(*copy);
    keep_alive(std::move(copy));
    return kept;
  }
  template <class T>
  std::span<const T> keep(const std::vector<T>& values) {
    return keep(std::span<const T>(values));
  }
  /// Any object that the steps refer to.
  virtual void keep_alive(std::shared_ptr<const void> object) = 0;

 protected:
  virtual void add_step(StepFunction function, const void* params) = 0;

  const Node* node_ = nullptr;
  std::vector<std::optional<Operand>> inputs_;
  std::vector<Operand> outputs_;
  const DimBinding* sizes_ = nullptr;
  int threads_ = 1;
};

/// Whether a kernel can compute a node, from what is known when it is compiled; `why` says why not.
struct Match {
  bool yes = true;
  std::string why;
  static Match no(std::string why) { return {false, std::move(why)}; }
};

/// One weight in the form a kernel reads. Nodes that name the same param and layout share it.
struct PackedParam {
  std::size_t input = 0;
  std::string layout;
  std::size_t bytes = 0;
  std::function<void(const Tensor& param, std::byte* to)> pack;
};

/// A kernel: how one operator, for the dtypes and attributes that `accepts` names, is planned.
struct Kernel {
  std::string_view name;
  const OpDef* op;
  Match (*accepts)(const Node& node);
  void (*plan)(StepBuilder& step);
  /// Bit i: input i may come with any strides, else it is made dense first.
  std::uint32_t strided_inputs = 0;
  /// Bit i: output 0 may lie in the bytes of input i (dense, same bytes), which dies there.
  std::uint32_t in_place = 0;
  /// Weights that this node wants in another form; empty for most.
  std::vector<PackedParam> (*packing)(const Node& node) = nullptr;
};

/// The kernels of one file, fastest first. The build makes the table of all files from their names:
/// a file kernels/<stem>.cpp that defines `KernelList <stem>_kernels()` is in it.
using KernelList = std::span<const Kernel>;

/// Kernels for the operator, fastest first.
std::span<const Kernel* const> kernels_for(const OpDef& op);
std::span<const Kernel* const> all_kernels();
/// The first kernel that accepts the node; else null, and `why` gathers the refusals.
const Kernel* choose_kernel(const Node& node, std::string* why = nullptr);

/// Copies `from` (any strides, including 0) to a dense `to` of the same dtype and extents.
void plan_copy(StepBuilder& step, const Operand& from, const Operand& to);

}  // namespace rlx::cpu
