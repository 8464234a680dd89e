#include <fmt/format.h>
#include <fmt/ranges.h>

#include <atomic>
#include <list>
#include <mutex>
#include <set>

#include "compiler/pipeline.h"
#include "ir/binding.h"
#include "ir/node.h"
#include "ir/verify.h"
#include "rlx/runtime.h"
#include "runtime/backend.h"

namespace rlx {

/// A weight that is computed from others, and those of them that are set so far. They are let go
/// once it is computed, so that no weight stays in memory twice; to compute it anew all of them
/// have to be set again.
struct Prepared {
  PreparedParam param;
  NamedTensors sources;
};

/// What Contexts share: the program and its plans.
class ExecutableState {
 public:
  std::shared_ptr<const Graph> graph;
  std::shared_ptr<Program> program;
  CompileReport report;
  CompileOptions options;
  std::vector<Executable::Port> inputs, outputs, params;
  std::set<std::string> missing_params;
  std::vector<Prepared> prepared;
  std::atomic<bool> has_contexts = false;
  int compilations = 0;

  /// The plan for these sizes, from the cache of the last few or new. Thread-safe.
  std::shared_ptr<const BoundProgram> plan_for(const DimBinding& sizes) {
    const std::lock_guard lock(mutex_);
    std::vector<std::int64_t> key;
    for (const auto& [symbol, size] : sizes.entries()) key.push_back(size);
    for (auto at = plans_.begin(); at != plans_.end(); ++at) {
      if (at->first != key) continue;
      plans_.splice(plans_.begin(), plans_, at);
      return plans_.front().second;
    }
    plans_.emplace_front(std::move(key), program->bind(sizes));
    if (plans_.size() > kMaxPlans) plans_.pop_back();
    return plans_.front().second;
  }

 private:
  static constexpr std::size_t kMaxPlans = 16;
  std::mutex mutex_;
  std::list<std::pair<std::vector<std::int64_t>, std::shared_ptr<const BoundProgram>>> plans_;
};

class ContextState {
 public:
  std::shared_ptr<ExecutableState> executable;
  std::unique_ptr<DeviceContext> device;
};

/// What a `Bound` holds: a plan, the inputs, and views of the outputs.
struct Binding {
  std::shared_ptr<const BoundProgram> plan;
  std::vector<Tensor> inputs;
  std::vector<std::pair<std::string, Tensor>> outputs;
  std::uint64_t memory = 0;  ///< the context's memory that `outputs` view
};

inline namespace v0 {

// ---------------------------------------------------------------- compile

namespace {

std::vector<Executable::Port> ports_of(const std::vector<Graph::Named>& list) {
  std::vector<Executable::Port> ports;
  ports.reserve(list.size());
  for (const auto& named : list) ports.push_back({named.name, named.value.type()});
  return ports;
}

void require_valid(const Graph& graph) {
  const auto findings = verify(graph);
  if (!findings.empty())
    throw InvalidArgument(fmt::format("the graph is not valid: {}", fmt::join(findings, "; ")));
}

Tensor computed(const Prepared& p, const CompileOptions& options) {
  CompileOptions plain = options;
  plain.optimization = 0;
  Executable executable = compile(p.param.graph.clone(), plain);
  for (const auto& [name, value] : p.sources) executable.set_param(name, value);
  return Context(executable).run({}).at("y");
}

// Gives a weight to the programs that read it, and computes what it was the last missing source of.
void take_param(ExecutableState& state, const std::string& name, const Tensor& value) {
  state.missing_params.erase(name);
  const auto is_it = [&](const Graph::Named& param) { return param.name == name; };
  if (std::ranges::any_of(state.graph->params(), is_it)) state.program->set_param(name, value);
  for (Prepared& p : state.prepared) {
    const std::vector<std::string> sources = p.param.sources();
    if (std::ranges::find(sources, name) == sources.end()) continue;
    p.sources[name] = value;
    if (p.sources.size() < sources.size()) {
      state.missing_params.insert(p.param.name);
      continue;
    }
    state.program->set_param(p.param.name, computed(p, state.options));
    state.missing_params.erase(p.param.name);
    p.sources.clear();
  }
  state.report.param_bytes = state.program->param_bytes();
}

// Hands the graph's own weights over one by one, so that no more than one exists twice.
void load_params(std::map<std::string, std::optional<Tensor>> data, ExecutableState& state) {
  for (auto& [name, tensor] : data) {
    if (!tensor) {
      state.missing_params.insert(name);
      continue;
    }
    take_param(state, name, *tensor);
    tensor.reset();
  }
}

}  // namespace

Executable compile(Graph graph, const CompileOptions& options) {
  require_valid(graph);
  auto state = std::make_shared<ExecutableState>();
  state->inputs = ports_of(graph.inputs());
  state->outputs = ports_of(graph.outputs());
  state->params = ports_of(graph.params());
  Backend& backend = backend_for(options.device);
  state->report.device = options.device;
  state->options = options;
  // The weights stay out of the passes: what these drop is not needed, and what they add is
  // computed later.
  std::map<std::string, std::optional<Tensor>> data;
  for (const auto& param : graph.params()) {
    const Tensor* tensor = graph.data_of(param.name);
    data[param.name] = tensor ? std::optional(*tensor) : std::nullopt;
    graph.drop_data(param.name);
  }
  std::vector<PreparedParam> prepared;
  run_passes(graph, {backend, options, state->report, prepared});
  auto shared = std::make_shared<Graph>(std::move(graph));
  state->graph = shared;
  state->program = backend.build(shared, options, state->report);
  for (PreparedParam& p : prepared) state->prepared.push_back({std::move(p), {}});
  load_params(std::move(data), *state);
  state->report.param_bytes = state->program->param_bytes();
  state->compilations = 1;
  return Executable(std::move(state));
}

Executable::Executable(std::shared_ptr<ExecutableState> state) : state_(std::move(state)) {}
Executable::Executable(Executable&&) noexcept = default;
Executable& Executable::operator=(Executable&&) noexcept = default;
Executable::~Executable() = default;

void Executable::set_param(std::string_view name, Tensor value) {
  if (state_->has_contexts) {
    throw InvalidArgument(
        fmt::format("param {} is set after a context was made, expected before the first", name));
  }
  for (const auto& param : state_->params) {
    if (param.name != name) continue;
    const TensorType found{value.dtype(), Shape::of(value.dims())};
    if (found != param.type) {
      throw ShapeError(
          fmt::format("param {} is {}, found {}", name, to_string(param.type), to_string(found)));
    }
    return take_param(*state_, param.name, value);
  }
  throw InvalidArgument(fmt::format("there is no param {}", name));
}

const std::vector<Executable::Port>& Executable::params() const { return state_->params; }
const std::vector<Executable::Port>& Executable::inputs() const { return state_->inputs; }
const std::vector<Executable::Port>& Executable::outputs() const { return state_->outputs; }
const CompileReport& Executable::report() const { return state_->report; }
int Executable::compilations() const { return state_->compilations; }
std::string Executable::text() const { return to_string(*state_->graph); }

// ---------------------------------------------------------------- context

namespace {

void view_outputs(DeviceContext& device, Binding& binding) {
  for (std::size_t i = 0; i < binding.outputs.size(); ++i)
    binding.outputs[i].second = device.output(*binding.plan, i);
  binding.memory = device.memory();
}

// A binding of other sizes may have moved the context's memory since this one was made.
void run_binding(DeviceContext& device, Binding& binding, std::vector<StepTime>* times) {
  device.run(*binding.plan, binding.inputs, times);
  if (binding.memory != device.memory()) view_outputs(device, binding);
}

}  // namespace

Context::Context(const Executable& executable) : state_(std::make_unique<ContextState>()) {
  if (!executable.state_->missing_params.empty()) {
    throw InvalidArgument(
        fmt::format("params without data: {}", fmt::join(executable.state_->missing_params, ", ")));
  }
  executable.state_->has_contexts = true;
  state_->executable = executable.state_;
  state_->device = executable.state_->program->make_context();
}

Context::Context(Context&&) noexcept = default;
Context& Context::operator=(Context&&) noexcept = default;
Context::~Context() = default;

Bound Context::bind(const NamedTensors& inputs) {
  const ExecutableState& exe = *state_->executable;
  std::map<std::string, Tensor::Dims> dims;
  for (const auto& [name, tensor] : inputs) dims[name] = tensor.dims();
  const DimBinding sizes = bind_sizes(*exe.graph, dims, exe.options.dims);
  auto binding = std::make_shared<Binding>();
  for (const auto& port : exe.inputs) {
    const Tensor& tensor = inputs.at(port.name);
    if (tensor.dtype() != port.type.dtype) {
      throw InvalidArgument(fmt::format("input {} is {}, expected {}", port.name,
                                        name(tensor.dtype()), name(port.type.dtype)));
    }
    binding->inputs.push_back(tensor);
  }
  binding->plan = state_->executable->plan_for(sizes);
  state_->device->prepare(*binding->plan);
  for (const auto& port : exe.outputs) binding->outputs.emplace_back(port.name, Tensor());
  view_outputs(*state_->device, *binding);
  return {state_.get(), std::move(binding)};
}

NamedTensors Context::run(const NamedTensors& inputs) {
  Bound bound = bind(inputs);
  bound.run();
  NamedTensors results;
  for (const auto& port : state_->executable->outputs) {
    const Tensor& view = bound.output(port.name);
    Tensor copy(view.dtype(), view.dims());
    std::ranges::copy(view.bytes(), copy.bytes_mutable().begin());
    results[port.name] = std::move(copy);
  }
  return results;
}

Tensor Context::state(std::string_view name) const { return state_->device->state(name); }
void Context::set_state(std::string_view name, const Tensor& value) {
  state_->device->set_state(name, value);
}
void Context::reset() { state_->device->reset(); }

// ---------------------------------------------------------------- bound

Bound::Bound(ContextState* context, std::shared_ptr<Binding> binding)
    : context_(context), binding_(std::move(binding)) {}

void Bound::run() { run_binding(*context_->device, *binding_, nullptr); }

std::vector<StepTime> Bound::profile() {
  std::vector<StepTime> times;
  run_binding(*context_->device, *binding_, &times);
  return times;
}

const Tensor& Bound::output(std::string_view name) const {
  for (const auto& [known, tensor] : binding_->outputs) {
    if (known == name) return tensor;
  }
  throw InvalidArgument(fmt::format("there is no output {}", name));
}

std::size_t Bound::arena_bytes() const { return binding_->plan->arena_bytes(); }

}  // namespace v0
}  // namespace rlx
