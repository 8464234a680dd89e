#include "backends/cpu/context.h"

#include <fmt/format.h>

#include <chrono>
#include <cstring>

#include "base/denormals.h"

namespace rlx::cpu {
namespace {

std::size_t position(const std::vector<Graph::Named>& states, std::string_view name) {
  for (std::size_t i = 0; i < states.size(); ++i) {
    if (states[i].name == name) return i;
  }
  throw InvalidArgument(fmt::format("there is no state {}", name));
}

// Whether some sizes give the shape these extents, as far as its constants tell.
bool may_have(const Shape& shape, const Tensor::Dims& dims) {
  if (shape.rank() != dims.size()) return false;
  for (std::size_t axis = 0; axis < dims.size(); ++axis) {
    if (shape[axis].is_constant() && shape[axis].constant() != dims[axis]) return false;
  }
  return true;
}

class CpuContext : public DeviceContext {
 public:
  explicit CpuContext(const CpuProgram& program) : program_(program) {
    states_.resize(program.graph().states().size());
    ready_.resize(states_.size(), false);
  }

  void prepare(const BoundProgram& bound) override {
    const auto& plan = static_cast<const Plan&>(bound);
    if (arena_ == nullptr || arena_->bytes() < plan.arena_bytes()) {
      arena_.reset();
      arena_ = std::make_shared<Weights>(plan.arena_bytes());
      ++memory_;
    }
    bind_states(plan);
    bases_.resize(plan.slots.size());
    for (std::size_t i = 0; i < bases_.size(); ++i) bases_[i] = base_of(plan.slots[i]);
    prepared_ = &plan;
  }

  void run(const BoundProgram& bound, std::span<const Tensor> inputs,
           std::vector<StepTime>* times) override {
    const auto& plan = static_cast<const Plan&>(bound);
    if (prepared_ != &plan) prepare(plan);
    for (std::size_t i = 0; i < plan.slots.size(); ++i) {
      if (plan.slots[i].kind != Slot::Kind::input) continue;
      bases_[i] = const_cast<std::byte*>(
          inputs[plan.slots[i].index].bytes().data());  // kernels only read inputs
    }
    const ThreadLimit limit(program_.options().threads);
    const FlushDenormals flush(program_.options().keep_denormals);
    faults_.clear();
    Run run{bases_.data(), ThreadPool::process(), faults_, 0};
    if (times == nullptr) {
      for (const Step& step : plan.steps) {
        step.function(step.params, run);
        ++run.step;
      }
    } else {
      run_timed(plan, run, *times);
    }
    if (faults_.any()) throw_fault(plan);
  }

  Tensor output(const BoundProgram& bound, std::size_t index) override {
    const auto& plan = static_cast<const Plan&>(bound);
    const ValueView& view = plan.outputs[index];
    const DType dtype = program_.graph().outputs()[index].value.dtype();
    const std::size_t bytes = byte_size(dtype, static_cast<std::size_t>(view.size()));
    const std::byte* base = arena_->data() + plan.slots[view.buffer].offset;
    return Tensor::view(dtype, view.dims,
                        {base + byte_size(dtype, static_cast<std::size_t>(view.offset)), bytes},
                        arena_);
  }

  std::uint64_t memory() const override { return memory_; }

  Tensor state(std::string_view name) override {
    const Tensor& t = states_[position(program_.graph().states(), name)];
    Tensor copy(t.dtype(), t.dims());
    std::memcpy(copy.bytes_mutable().data(), t.bytes().data(), t.bytes().size());
    return copy;
  }

  void set_state(std::string_view name, const Tensor& value) override {
    const std::size_t i = position(program_.graph().states(), name);
    const TensorType& type = program_.graph().states()[i].value.type();
    if (value.dtype() != type.dtype || !may_have(type.shape, value.dims())) {
      throw ShapeError(fmt::format("state {} is {}, found {}{}", name, to_string(type),
                                   rlx::name(value.dtype()), to_string(value.dims())));
    }
    states_[i] = Tensor(value.dtype(), value.dims());
    std::memcpy(states_[i].bytes_mutable().data(), value.bytes().data(), value.bytes().size());
    ready_[i] = true;
    prepared_ = nullptr;
  }

  void reset() override {
    states_.assign(states_.size(), Tensor());
    ready_.assign(ready_.size(), false);
    prepared_ = nullptr;
  }

 private:
  std::byte* base_of(const Slot& slot) {
    switch (slot.kind) {
      case Slot::Kind::arena:
        return arena_->data() + slot.offset;
      case Slot::Kind::fixed:
        return const_cast<std::byte*>(slot.fixed);  // kernels only read weights
      case Slot::Kind::state:
        return states_[slot.index].bytes_mutable().data();
      case Slot::Kind::input:
        return nullptr;
    }
    return nullptr;
  }

  // A state has the extents of the first binding that meets it.
  void bind_states(const Plan& plan) {
    const auto& states = program_.graph().states();
    for (std::size_t i = 0; i < states.size(); ++i) {
      const Tensor::Dims dims = states[i].value.shape().evaluate(plan.sizes);
      const bool fits = states_[i].dims() == dims && states_[i].dtype() == states[i].value.dtype();
      if (fits && ready_[i]) continue;
      if (ready_[i]) {
        throw ShapeError(fmt::format("state {} is {}, this binding makes it {}", states[i].name,
                                     to_string(states_[i].dims()), to_string(dims)));
      }
      states_[i] = Tensor(states[i].value.dtype(), dims);
      if (const Tensor* initial = program_.graph().data_of(states[i].name)) {
        std::memcpy(states_[i].bytes_mutable().data(), initial->bytes().data(),
                    initial->bytes().size());
      }
      ready_[i] = true;
    }
  }

  static void run_timed(const Plan& plan, Run& run, std::vector<StepTime>& times) {
    using Clock = std::chrono::steady_clock;
    for (const Step& step : plan.steps) {
      const auto start = Clock::now();
      step.function(step.params, run);
      ++run.step;
      const std::chrono::duration<double, std::milli> elapsed = Clock::now() - start;
      times.push_back({step.node->name(), std::string(step.node->op().name()),
                       std::string(step.kernel), elapsed.count()});
    }
  }

  [[noreturn]] void throw_fault(const Plan& plan) const {
    const Fault& f = faults_.fault();
    const Node& node = *plan.steps[f.step].node;
    const bool division = f.kind == static_cast<std::uint32_t>(FaultKind::division_by_zero);
    IndexError error(division ? fmt::format("integer division by zero at element {}", f.element)
                              : fmt::format("index {} at element {} is out of range for extent {}",
                                            f.value, f.element, f.limit));
    error.at(node.name(), node.op().name());
    throw error;
  }

  const CpuProgram& program_;
  std::shared_ptr<Weights> arena_;
  std::uint64_t memory_ = 0;
  std::vector<Tensor> states_;
  std::vector<bool> ready_;
  std::vector<std::byte*> bases_;
  const Plan* prepared_ = nullptr;
  FaultSlot faults_;
};

}  // namespace

std::unique_ptr<DeviceContext> make_cpu_context(const CpuProgram& program) {
  return std::make_unique<CpuContext>(program);
}

}  // namespace rlx::cpu
