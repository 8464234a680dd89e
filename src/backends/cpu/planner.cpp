#include "backends/cpu/planner.h"

#include "base/check.h"
#include "compiler/memory_plan.h"
#include "ir/leaves.h"

namespace rlx::cpu {
namespace {

bool bit(std::uint32_t mask, std::size_t i) { return i < 32 && ((mask >> i) & 1U) != 0; }

/// Collects one node's steps into the plan.
class NodePlanner : public StepBuilder {
 public:
  NodePlanner(const CpuProgram& program, Plan& plan, BoundGraph& bound)
      : program_(program), plan_(plan), bound_(bound) {
    sizes_ = &bound.sizes();
    threads_ =
        program.options().threads > 0 ? program.options().threads : ThreadPool::process().threads();
  }

  void plan_node(const BoundStep& step, std::size_t index) {
    start(*step.node, index, program_.kernel_of(step.node)->name);
    for (const Value v : step.node->inputs()) {
      inputs_.push_back(v ? std::optional(operand(bound_.view(v), v.dtype())) : std::nullopt);
    }
    for (std::size_t i = 0; i < step.node->output_count(); ++i) {
      outputs_.push_back(
          operand(bound_.view({const_cast<Node*>(step.node), i}), step.node->type(i).dtype));
    }
    program_.kernel_of(step.node)->plan(*this);
  }

  void plan_copy_step(const BoundStep& step, std::size_t index) {
    start(*step.node, index, "copy");
    const DType dtype = step.node->type().dtype;
    plan_copy(*this, operand(step.from, dtype), operand(step.to, dtype));
  }

  Buffer scratch(std::size_t bytes) override { return slot(bound_.add_scratch(index_, bytes)); }

  std::optional<Buffer> packed(std::size_t i) const override {
    const auto index = program_.packed_index(node_, i);
    if (!index) return std::nullopt;
    return Buffer{static_cast<std::uint32_t>(*index), 0};
  }

  void keep_alive(std::shared_ptr<const void> object) override {
    plan_.owned.push_back(std::move(object));
  }

 protected:
  void add_step(StepFunction function, const void* params) override {
    plan_.steps.push_back({function, params, node_, kernel_});
  }

 private:
  void start(const Node& node, std::size_t index, std::string_view kernel) {
    node_ = &node;
    index_ = index;
    kernel_ = kernel;
    inputs_.clear();
    outputs_.clear();
  }

  // Packed weights have the first slots, then each buffer has one.
  Buffer slot(std::size_t buffer, std::uint64_t offset = 0) const {
    return {static_cast<std::uint32_t>(program_.packed_weights().size() + buffer), offset};
  }

  Operand operand(const ValueView& view, DType dtype) const {
    const std::uint64_t offset =
        view.offset == 0 ? 0 : byte_size(dtype, static_cast<std::size_t>(view.offset));
    return {dtype, view.dims, view.strides, slot(view.buffer, offset)};
  }

  const CpuProgram& program_;
  Plan& plan_;
  BoundGraph& bound_;
  std::size_t index_ = 0;
  std::string_view kernel_;
};

// A constant's bytes; an extent becomes a constant of the plan.
const std::byte* constant_bytes(const Node& leaf, const DimBinding& sizes, Plan& plan) {
  if (const Tensor* value = constant_of({const_cast<Node*>(&leaf), 0}))
    return value->bytes().data();
  auto size = std::make_shared<Tensor>(
      Tensor::Dims{}, std::initializer_list<std::int64_t>{leaf.as<Size>()->extent.evaluate(sizes)});
  const std::byte* bytes = size->bytes().data();
  plan.owned.push_back(std::move(size));
  return bytes;
}

std::size_t position(const std::vector<Graph::Named>& list, const Node* leaf) {
  const auto at =
      std::ranges::find_if(list, [&](const auto& named) { return named.value.node() == leaf; });
  return static_cast<std::size_t>(at - list.begin());
}

Slot slot_of(const BoundBuffer& buffer, const CpuProgram& program, Plan& plan) {
  using Kind = BoundBuffer::Kind;
  switch (buffer.kind) {
    case Kind::arena:
      return {};
    case Kind::input:
      return {.kind = Slot::Kind::input, .index = position(program.graph().inputs(), buffer.leaf)};
    case Kind::state:
      return {.kind = Slot::Kind::state, .index = position(program.graph().states(), buffer.leaf)};
    case Kind::param:
      return {.kind = Slot::Kind::fixed, .fixed = program.param(buffer.leaf->as<Param>()->name)};
    case Kind::constant:
      return {.kind = Slot::Kind::fixed, .fixed = constant_bytes(*buffer.leaf, plan.sizes, plan)};
  }
  return {};
}

void place_arena(const BoundGraph& bound, std::size_t first_slot, Plan& plan) {
  std::vector<Lifetime> lifetimes;
  std::vector<std::size_t> ids;
  for (std::size_t i = 0; i < bound.buffers().size(); ++i) {
    const BoundBuffer& b = bound.buffers()[i];
    if (b.kind != BoundBuffer::Kind::arena) continue;
    lifetimes.push_back({b.bytes, b.first, b.last});
    ids.push_back(i);
  }
  const MemoryPlan memory = plan_memory(lifetimes);
  for (std::size_t i = 0; i < ids.size(); ++i)
    plan.slots[first_slot + ids[i]].offset = memory.offsets[i];
  plan.arena_bytes_ = memory.bytes;
}

}  // namespace

std::shared_ptr<const Plan> make_plan(const CpuProgram& program, const DimBinding& sizes) {
  const BufferPolicy policy{
      [&](const Node& user, std::size_t input) {
        return bit(program.kernel_of(&user)->strided_inputs, input);
      },
      [&](const Node& node, std::size_t input) {
        return bit(program.kernel_of(&node)->in_place, input);
      },
  };
  BoundGraph bound(program.graph(), sizes, policy);
  auto plan = std::make_shared<Plan>();
  plan->sizes = sizes;
  NodePlanner planner(program, *plan, bound);
  for (std::size_t i = 0; i < bound.steps().size(); ++i) {
    const BoundStep& step = bound.steps()[i];
    if (step.is_copy) {
      planner.plan_copy_step(step, i);
    } else {
      planner.plan_node(step, i);
    }
  }
  for (const Weights* weights : program.packed_weights()) {
    plan->slots.push_back({.kind = Slot::Kind::fixed, .fixed = weights->data()});
  }
  const std::size_t first_buffer = plan->slots.size();
  for (const BoundBuffer& buffer : bound.buffers())
    plan->slots.push_back(slot_of(buffer, program, *plan));
  place_arena(bound, first_buffer, *plan);
  for (ValueView view : bound.outputs()) {
    view.buffer += first_buffer;
    plan->outputs.push_back(std::move(view));
  }
  return plan;
}

}  // namespace rlx::cpu
