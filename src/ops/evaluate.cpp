#include "ops/evaluate.h"

#include <fmt/format.h>

#include <unordered_map>

#include "base/check.h"
#include "ir/binding.h"
#include "ir/leaves.h"

namespace rlx {
namespace {

std::vector<HostArray> zero_outputs(const Node& node, const DimBinding& sizes) {
  std::vector<HostArray> outputs;
  for (std::size_t i = 0; i < node.output_count(); ++i) {
    outputs.emplace_back(node.type(i).dtype, node.type(i).shape.evaluate(sizes));
  }
  return outputs;
}

std::vector<HostArray> run_subgraph(const Graph& graph, const std::vector<HostArray>& inputs,
                                    const DimBinding& outer);

/// Evaluates nodes in order and keeps their results.
class Evaluator {
 public:
  Evaluator(const Graph& graph, DimBinding sizes) : graph_(graph), sizes_(std::move(sizes)) {}

  void set(const Node* node, HostArray value) { results_[node] = {std::move(value)}; }
  const HostArray& value(Value v) const { return results_.at(v.node())[v.index()]; }

  void run(const std::function<void(const Node&, std::span<const HostArray>)>& on_node) {
    for (Node* node : graph_.topological_order()) {
      if (results_.count(node) == 0) results_[node] = evaluate(*node);
      if (on_node) on_node(*node, results_[node]);
    }
  }

 private:
  std::vector<HostArray> evaluate(Node& node) const {
    try {
      return evaluate_unchecked(node);
    } catch (Error& error) {
      error.at(node.name(), node.op().name());
      throw;
    }
  }

  std::vector<HostArray> evaluate_unchecked(Node& node) const {
    if (const auto* x = node.as<Constant>()) return {HostArray(x->value)};
    if (const auto* x = node.as<Size>()) {
      HostArray size(DType::i64, {});
      size.as<std::int64_t>()[0] = x->extent.evaluate(sizes_);
      return {std::move(size)};
    }
    std::vector<const HostArray*> inputs;
    for (const Value v : node.inputs()) inputs.push_back(v ? &value(v) : nullptr);
    std::vector<HostArray> outputs = zero_outputs(node, sizes_);
    Evaluation run{inputs, outputs, sizes_,
                   [this](const Graph& g, const std::vector<HostArray>& in) {
                     return run_subgraph(g, in, sizes_);
                   }};
    if (node.op().def().evaluate == nullptr) return evaluate_decomposition(node, inputs);
    node.op().def().evaluate(node.op(), run);
    for (HostArray& y : outputs) y = HostArray(y.to_tensor());  // rounds to the dtype
    return outputs;
  }

  // Operators that are defined by their decomposition alone.
  static std::vector<HostArray> evaluate_decomposition(
      const Node& node, const std::vector<const HostArray*>& inputs) {
    if (node.op().def().decompose == nullptr) throw Unsupported("has no reference evaluation");
    Graph graph;
    std::vector<Value> values;
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      const HostArray* x = inputs[i];
      values.push_back(x ? graph.input(fmt::format("{}", i), {x->dtype(), Shape::of(x->dims())})
                         : Value());
    }
    const std::vector<Value> results = node.op().def().decompose(node.op(), values);
    for (std::size_t i = 0; i < results.size(); ++i) graph.output(fmt::format("{}", i), results[i]);
    Evaluator evaluator(graph, {});
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      if (inputs[i] != nullptr) evaluator.set(values[i].node(), *inputs[i]);
    }
    evaluator.run(nullptr);
    std::vector<HostArray> outputs;
    for (const Value v : results) outputs.push_back(evaluator.value(v));
    return outputs;
  }

  const Graph& graph_;
  DimBinding sizes_;
  std::unordered_map<const Node*, std::vector<HostArray>> results_;
};

std::vector<HostArray> run_subgraph(const Graph& graph, const std::vector<HostArray>& inputs,
                                    const DimBinding& outer) {
  RLX_ASSERT(inputs.size() == graph.inputs().size());
  std::map<std::string, Tensor::Dims> dims;
  for (std::size_t i = 0; i < inputs.size(); ++i) dims[graph.inputs()[i].name] = inputs[i].dims();
  Evaluator evaluator(graph, bind_sizes(graph, dims, outer));
  for (std::size_t i = 0; i < inputs.size(); ++i)
    evaluator.set(graph.inputs()[i].value.node(), inputs[i]);
  evaluator.run(nullptr);
  std::vector<HostArray> outputs;
  for (const auto& output : graph.outputs()) outputs.push_back(evaluator.value(output.value));
  return outputs;
}

const Tensor& data_for(const Graph& graph, const std::string& name, const NamedTensors& inputs) {
  if (const auto at = inputs.find(name); at != inputs.end()) return at->second;
  const Tensor* data = graph.data_of(name);
  if (data == nullptr) throw InvalidArgument(fmt::format("param {} has no data", name));
  return *data;
}

HostArray state_value(const Graph& graph, const Graph::Named& state, const DimBinding& sizes,
                      const NamedTensors& inputs) {
  if (const auto at = inputs.find(state.name); at != inputs.end()) return HostArray(at->second);
  if (const Tensor* data = graph.data_of(state.name)) return HostArray(*data);
  return {state.value.dtype(), state.value.shape().evaluate(sizes)};
}

}  // namespace

std::vector<HostArray> evaluate_op(const Op& op, const std::vector<const HostArray*>& inputs) {
  Graph graph;
  std::vector<Value> values;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (inputs[i] == nullptr) {
      values.emplace_back();
      continue;
    }
    values.push_back(
        graph.input(fmt::format("{}", i), {inputs[i]->dtype(), Shape::of(inputs[i]->dims())}));
  }
  const std::vector<Value> results = graph.add(op, values);
  for (std::size_t i = 0; i < results.size(); ++i) graph.output(fmt::format("{}", i), results[i]);
  Evaluator evaluator(graph, {});
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (values[i]) evaluator.set(values[i].node(), *inputs[i]);
  }
  evaluator.run(nullptr);
  std::vector<HostArray> outputs;
  for (const Value v : results) outputs.push_back(evaluator.value(v));
  return outputs;
}

NamedTensors evaluate_graph(const Graph& graph, const NamedTensors& inputs,
                            const EvaluateOptions& options) {
  std::map<std::string, Tensor::Dims> dims;
  for (const auto& input : graph.inputs()) {
    if (const auto at = inputs.find(input.name); at != inputs.end())
      dims[input.name] = at->second.dims();
  }
  const DimBinding sizes = bind_sizes(graph, dims, options.sizes);
  Evaluator evaluator(graph, sizes);
  for (const auto& input : graph.inputs())
    evaluator.set(input.value.node(), HostArray(inputs.at(input.name)));
  for (const auto& param : graph.params())
    evaluator.set(param.value.node(), HostArray(data_for(graph, param.name, inputs)));
  for (const auto& state : graph.states())
    evaluator.set(state.value.node(), state_value(graph, state, sizes, inputs));
  evaluator.run(options.on_node);
  NamedTensors outputs;
  for (const auto& output : graph.outputs())
    outputs[output.name] = evaluator.value(output.value).to_tensor();
  return outputs;
}

}  // namespace rlx
