#include "kernel_run.h"

#include <fmt/format.h>

#include <cstring>

#include "base/cpu_features.h"
#include "base/denormals.h"
#include "base/thread_pool.h"
#include "ir/binding.h"
#include "ir/leaves.h"

namespace rlx {
namespace {

using cpu::Buffer;
using cpu::Kernel;
using cpu::Operand;
using cpu::Run;

struct Free {
  void operator()(std::byte* p) const { std::free(p); }
};
using Memory = std::unique_ptr<std::byte, Free>;

Memory allocate(std::size_t bytes) {
  const std::size_t rounded = (bytes + 64) / 64 * 64;
  Memory memory(static_cast<std::byte*>(std::aligned_alloc(64, rounded)));
  std::memset(memory.get(), 0xff, rounded);
  return memory;
}

// One slot of the table of addresses for each operand and each scratch.
class OneStep : public cpu::StepBuilder {
 public:
  OneStep(const Node& node, const DimBinding& sizes, int threads) {
    node_ = &node;
    sizes_ = &sizes;
    threads_ = threads;
  }

  void add_input(const Tensor* value) {
    if (value == nullptr) {
      inputs_.emplace_back();
      return;
    }
    inputs_.emplace_back(operand(value->dtype(), value->dims()));
    std::memcpy(memory_.back().get(), value->bytes().data(), value->bytes().size());
  }
  void add_output(const TensorType& type, std::optional<std::size_t> in_place) {
    outputs_.push_back(operand(type.dtype, type.shape.evaluate(*sizes_)));
    if (in_place) outputs_.back().at = inputs_[*in_place]->at;
  }

  /// As executors decide it: the same extents, and elements of one width.
  bool may_overwrite(std::size_t input, const TensorType& output) const {
    const std::optional<Operand>& x = inputs_[input];
    return x && x->dims == output.shape.evaluate(*sizes_) &&
           traits(x->dtype).bits == traits(output.dtype).bits;
  }

  Buffer scratch(std::size_t bytes) override {
    memory_.push_back(allocate(bytes));
    return {static_cast<std::uint32_t>(memory_.size() - 1), 0};
  }
  std::optional<Buffer> packed(std::size_t) const override { return std::nullopt; }
  void keep_alive(std::shared_ptr<const void> object) override { kept_.push_back(object); }

  void run(ThreadPool& pool, FaultSlot& faults) const {
    std::vector<std::byte*> slots;
    for (const Memory& m : memory_) slots.push_back(m.get());
    const Run run{slots.data(), pool, faults, 0};
    for (const auto& [function, params] : steps_) function(params, run);
  }

  Tensor output(std::size_t i) const {
    const Operand& y = outputs_[i];
    Tensor t(y.dtype, y.dims);
    std::memcpy(t.bytes_mutable().data(), memory_[y.at.slot].get(), t.bytes().size());
    return t;
  }

 protected:
  void add_step(cpu::StepFunction function, const void* params) override {
    steps_.emplace_back(function, params);
  }

 private:
  Operand operand(DType dtype, Tensor::Dims dims) {
    const std::vector<std::int64_t> strides = row_major_strides(dims);
    Operand x{dtype, std::move(dims), strides, {}};
    x.at = scratch(byte_size(dtype, static_cast<std::size_t>(x.size())));
    return x;
  }

  std::vector<Memory> memory_;
  std::vector<std::shared_ptr<const void>> kept_;
  std::vector<std::pair<cpu::StepFunction, const void*>> steps_;
};

Node& only_operator(const Graph& graph) {
  Node* found = nullptr;
  for (Node* node : graph.topological_order()) {
    if (node->is(input_def) || node->is(constant_def)) continue;
    if (found != nullptr) throw InvalidArgument("the graph has more than one operator");
    found = node;
  }
  if (found == nullptr) throw InvalidArgument("the graph has no operator");
  return *found;
}

const Kernel& kernel_for(const Node& node, const std::string& name) {
  std::string why;
  for (const Kernel* kernel : cpu::kernels_for(node.op().def())) {
    if (!name.empty() && kernel->name != name) continue;
    const cpu::Match match = kernel->accepts(node);
    if (match.yes) return *kernel;
    why += fmt::format(" {}: {}", kernel->name, match.why);
  }
  throw Unsupported(fmt::format("no kernel for {}:{}", node.op().name(), why));
}

const Tensor* value_of(const Graph& graph, Value value, const NamedTensors& inputs) {
  if (!value) return nullptr;
  if (const Tensor* constant = constant_of(value)) return constant;
  for (const auto& input : graph.inputs()) {
    if (input.value == value) return &inputs.at(input.name);
  }
  throw InvalidArgument("an operand is neither input nor constant");
}

}  // namespace

NamedTensors run_kernel(const Graph& graph, const NamedTensors& inputs, const KernelRun& how,
                        Fault* fault) {
  Node& node = only_operator(graph);
  const Kernel& kernel = kernel_for(node, how.kernel);
  std::map<std::string, Tensor::Dims> dims;
  for (const auto& input : graph.inputs()) dims[input.name] = inputs.at(input.name).dims();
  const DimBinding sizes = bind_sizes(graph, dims);

  OneStep step(node, sizes, how.threads);
  for (const Value value : node.inputs()) step.add_input(value_of(graph, value, inputs));
  std::optional<std::size_t> in_place;
  for (std::size_t i = 0; how.in_place && !in_place && i < node.inputs().size(); ++i) {
    if ((kernel.in_place >> i & 1U) != 0 && step.may_overwrite(i, node.type())) in_place = i;
  }
  for (std::size_t i = 0; i < node.output_count(); ++i) {
    step.add_output(node.type(i), i == 0 ? in_place : std::nullopt);
  }
  kernel.plan(step);

  ThreadPool pool(how.threads);
  FaultSlot faults;
  {
    const FlushDenormals flush;
    step.run(pool, faults);
  }
  if (fault != nullptr) *fault = faults.fault();
  NamedTensors outputs;
  for (const auto& output : graph.outputs()) {
    outputs[output.name] = step.output(output.value.index());
  }
  return outputs;
}

namespace {

bool same_bits(const Tensor& a, const Tensor& b) {
  return std::ranges::equal(a.bytes(), b.bytes());
}

void check_at_level(const OpCase& c, const Graph& g, const std::string& kernel,
                    const NamedTensors& expected, const NamedTensors& magnitudes) {
  const NamedTensors first = run_kernel(g, c.inputs, {.kernel = kernel});
  for (const auto& [name, tensor] : expected) {
    EXPECT_TRUE(agrees(first.at(name), tensor, c, c.terms > 0 ? &magnitudes.at(name) : nullptr))
        << c.name << ", output " << name;
  }
  for (const int threads : {1, 2, 4}) {
    for (const bool in_place : {false, true}) {
      const NamedTensors again = run_kernel(g, c.inputs, {kernel, threads, in_place});
      for (const auto& [name, tensor] : first) {
        EXPECT_TRUE(same_bits(again.at(name), tensor))
            << c.name << ", output " << name << ": " << threads << " threads"
            << (in_place ? ", in place" : "");
      }
    }
  }
}

}  // namespace

void check_kernel(const OpCase& c, const std::string& kernel) {
  Graph g;
  c.build(g);
  const NamedTensors expected = evaluate_graph(g, c.inputs);
  NamedTensors magnitudes;
  if (c.terms > 0) magnitudes = evaluate_magnitudes(g, c.inputs);
  for (const CpuLevel level : kCpuLevels) {
    if (level > detected_cpu_level()) continue;
    SCOPED_TRACE(name(level));
    force_cpu_level(level);
    check_at_level(c, g, kernel, expected, magnitudes);
  }
  force_cpu_level(std::nullopt);
}

Tensor rows_of(const Tensor& t, std::int64_t begin, std::int64_t end) {
  Tensor::Dims dims = t.dims();
  const std::size_t row_bytes = t.bytes().size() / static_cast<std::size_t>(dims[0]);
  dims[0] = end - begin;
  Tensor rows(t.dtype(), dims);
  std::memcpy(rows.bytes_mutable().data(), t.bytes().data() + begin * row_bytes,
              rows.bytes().size());
  return rows;
}

}  // namespace rlx
