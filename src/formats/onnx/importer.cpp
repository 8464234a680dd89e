#include "formats/onnx/importer.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <unordered_map>

#include "formats/dense.h"
#include "formats/onnx/handlers.h"
#include "ir/leaves.h"
#include "ir/node.h"
#include "rlx/error.h"

namespace rlx::onnx {
namespace {

constexpr std::int64_t kOldestOpset = 7, kNewestOpset = 24;
constexpr std::size_t kLargestConstant = 1024;  // bytes
/// Functions that call functions can unfold without end; no real model comes near.
constexpr std::size_t kMaxNodes = 2'000'000;
/// Of the products of a value's extents: a hostile file could make them grow without end.
constexpr double kMaxTerms = 100'000;
constexpr std::size_t kMaxRank = 64;

std::string_view normal_domain(std::string_view domain) {
  return domain == "ai.onnx" ? std::string_view() : domain;
}

std::string_view name_of(const NodeProto& node) {
  if (!node.name.empty()) return node.name;
  for (const std::string_view output : node.outputs) {
    if (!output.empty()) return output;
  }
  return node.op_type;
}

bool becomes_constant(const Tensor& data) {
  if (data.dtype() == DType::string) return data.size() <= 1;
  if (data.size() == 1) return true;
  const bool is_table = is_integer(data.dtype()) || data.dtype() == DType::boolean;
  return is_table && data.bytes().size() <= kLargestConstant;
}

std::map<std::string_view, std::int64_t> opsets_of(const std::vector<OperatorSetId>& imports) {
  std::map<std::string_view, std::int64_t> opsets;
  for (const OperatorSetId& id : imports) opsets[normal_domain(id.domain)] = id.version;
  return opsets;
}

void require_tractable(const Shape& shape) {
  if (shape.rank() > kMaxRank)
    throw Unsupported(
        fmt::format("a result has rank {}, at most {} is read", shape.rank(), kMaxRank));
  double terms = 1;
  for (const Dim d : shape) terms *= static_cast<double>(d.complexity() + 1);
  if (terms > kMaxTerms) throw Unsupported("the extents of the result are too complicated");
}

/// A dimension's symbol; one without a name is called after its input.
Dim extent_from(const DimensionProto& dim, std::string_view input, std::size_t axis,
                std::uint64_t offset) {
  if (dim.value && *dim.value < -1) {
    throw FormatError(
        fmt::format("axis {} of {} has the extent {}", axis, in_quotes(input), *dim.value), offset);
  }
  if (dim.value && *dim.value >= 0) return *dim.value;
  if (!dim.param.empty()) return Dim::symbol(dim.param);
  return Dim::symbol(fmt::format("{}.{}", input, axis));
}

TensorType type_from(const ValueInfoProto& value) {
  if (value.kind != ValueInfoProto::Kind::tensor || !value.shape) {
    throw Unsupported(
        fmt::format("input {} is not a tensor of a known rank", in_quotes(value.name)));
  }
  TensorType type{dtype_from(value.elem_type, value.offset), {}};
  for (std::size_t axis = 0; axis < value.shape->size(); ++axis)
    type.shape.push_back(extent_from((*value.shape)[axis], value.name, axis, value.offset));
  return type;
}

}  // namespace

Importer::Importer(const ModelProto& model, TensorLoader& loader, const LoadOptions& options)
    : model_(model), loader_(loader), options_(options), budget_(kMaxNodes) {
  for (const FunctionProto& f : model.functions) functions_[{normal_domain(f.domain), f.name}] = &f;
}

Graph Importer::run() {
  Graph graph;
  Frame frame{&graph};
  root_ = &frame;
  Call call;
  call.opsets = opsets_of(model_.opset_imports);
  const auto opset = call.opsets.find("");
  if (opset != call.opsets.end() &&
      (opset->second < kOldestOpset || opset->second > kNewestOpset)) {
    throw Unsupported(fmt::format("the model uses operator set {}, RLX reads {} to {}",
                                  opset->second, kOldestOpset, kNewestOpset));
  }
  Scope scope{frame, call};
  add_inputs(scope, *model_.graph);
  import_nodes(scope, model_.graph->nodes);
  if (!unsupported_.empty()) {
    throw Unsupported(fmt::format("{} unsupported node{}:\n  {}", unsupported_.size(),
                                  unsupported_.size() == 1 ? "" : "s",
                                  fmt::join(unsupported_, "\n  ")));
  }
  add_outputs(scope, *model_.graph);
  graph.set_origin("");
  graph.prune();
  for (const auto& [key, text] : model_.metadata) graph.metadata[std::string(key)] = text;
  if (!model_.producer_name.empty()) graph.metadata["producer"] = model_.producer_name;
  return graph;
}

// ---------------------------------------------------------------- names and values

std::string Importer::unique_name(Frame& frame, std::string_view stem) {
  std::string name(stem.empty() ? "value" : stem);
  for (int i = 1; !frame.names.insert(name).second; ++i) name = fmt::format("{}.{}", stem, i);
  return name;
}

Value Importer::weight(Frame& frame, std::string_view name, Tensor data) {
  if (becomes_constant(data)) return frame.graph->constant(std::move(data));
  return capture(frame, root_->graph->param(unique_name(*root_, name), std::move(data)));
}

Value Importer::capture(Frame& frame, Value value) {
  if (&value.graph() == frame.graph) return value;
  const Value outer = capture(*frame.outer, value);
  for (const auto& [from, to] : frame.captures) {
    if (from == outer) return to;
  }
  if (const Tensor* constant = constant_of(outer)) return frame.graph->constant(*constant);
  // What is known of shapes stays known inside.
  if (const auto elements = frame.outer->symbolic.elements(outer)) {
    return symbolic_tensor(*frame.graph, outer.dtype(), *elements, *outer.shape().static_extents());
  }
  const Value inner = frame.graph->input(unique_name(frame, outer.node()->name()), outer.type());
  frame.captures.emplace_back(outer, inner);
  return inner;
}

Value Importer::find(Scope& scope, std::string_view name, std::uint64_t offset) {
  for (Scope* s = &scope; s != nullptr; s = s->outer) {
    if (const auto at = s->values.find(name); at != s->values.end())
      return capture(scope.frame, at->second);
    if (s->missing.count(name) != 0) throw DependsOnUnsupported{};
    const auto initializer = s->initializers.find(name);
    if (initializer == s->initializers.end()) continue;
    const Value v = weight(s->frame, name, loader_.load(*initializer->second));
    s->values[name] = v;
    return capture(scope.frame, v);
  }
  throw FormatError(fmt::format("{} is read, but nothing before gives it", in_quotes(name)),
                    offset);
}

void Importer::bind(Scope& scope, const NodeProto& node, const std::vector<Value>& values) {
  for (std::size_t i = 0; i < node.outputs.size(); ++i) {
    const std::string_view name = node.outputs[i];
    if (name.empty()) continue;
    if (i >= values.size() || !values[i])
      throw Unsupported(fmt::format("its output {} is used", i));
    require_tractable(values[i].shape());
    if (!scope.values.emplace(name, folded(scope.frame, values[i])).second ||
        scope.initializers.count(name) != 0) {
      throw FormatError(fmt::format("{} is given twice", in_quotes(name)), node.offset);
    }
  }
}

Value Importer::folded(Frame& frame, Value value) {
  const Node& node = *value.node();
  const bool is_leaf = node.inputs().empty();
  if (is_leaf || value.rank() > 2) return value;
  const auto elements = frame.symbolic.elements(value);
  if (!elements) return value;
  return symbolic_tensor(*frame.graph, value.dtype(), *elements, *value.shape().static_extents());
}

// ---------------------------------------------------------------- graphs

void Importer::add_inputs(Scope& scope, const GraphProto& graph) {
  if (graph.sparse_initializers != 0) throw Unsupported("sparse initializers");
  for (const TensorProto& t : graph.initializers) scope.initializers[t.name] = &t;
  for (const ValueInfoProto& input : graph.inputs) {
    if (scope.initializers.count(input.name) != 0) continue;  // a weight, as old files list it
    const TensorType type = type_from(input);
    require_tractable(type.shape);
    scope.frame.names.emplace(input.name);
    scope.values[input.name] = scope.frame.graph->input(input.name, type);
  }
}

void Importer::add_outputs(Scope& scope, const GraphProto& graph) {
  std::vector<std::string> symbols;
  for (const auto& input : scope.frame.graph->inputs()) {
    for (const Dim d : input.value.shape()) d.collect_symbols(symbols);
  }
  for (const ValueInfoProto& output : graph.outputs) {
    const Value value = find(scope, output.name, output.offset);
    scope.frame.graph->output(output.name, value);
    if (!output.shape || output.shape->size() != value.rank()) continue;
    for (std::size_t axis = 0; axis < value.rank(); ++axis) {
      const DimensionProto& declared = (*output.shape)[axis];
      const bool is_input_symbol =
          std::find(symbols.begin(), symbols.end(), declared.param) != symbols.end();
      if (declared.value && *declared.value < 0) continue;
      if (!declared.value && !is_input_symbol) continue;
      const Dim expected = declared.value ? Dim(*declared.value) : Dim::symbol(declared.param);
      scope.frame.graph->require_equal(value.shape()[axis], expected, output.name,
                                       fmt::format("declared extent of axis {}", axis));
    }
  }
}

std::vector<Value> Importer::import_body(Scope& scope, const GraphProto& graph) {
  if (graph.sparse_initializers != 0) throw Unsupported("sparse initializers");
  for (const TensorProto& t : graph.initializers) scope.initializers[t.name] = &t;
  import_nodes(scope, graph.nodes);
  std::vector<Value> results;
  for (const ValueInfoProto& output : graph.outputs)
    results.push_back(find(scope, output.name, output.offset));
  return results;
}

void Importer::import_nodes(Scope& scope, const std::vector<NodeProto>& nodes) {
  for (const NodeProto& node : nodes) import_node(scope, node);
}

void Importer::import_node(Scope& scope, const NodeProto& node) {
  spend(1);
  scope.frame.graph->set_origin(name_of(node));
  try {
    bind(scope, node, values_of(scope, node));
    return;
  } catch (const DependsOnUnsupported&) {
  } catch (const Unsupported& error) {
    report(node, error.what());
  } catch (Error& error) {
    error.at(name_of(node), node.op_type);
    throw;
  }
  for (const std::string_view output : node.outputs) {
    scope.values.erase(output);
    scope.missing.insert(output);
  }
}

std::vector<Value> Importer::values_of(Scope& scope, const NodeProto& node) {
  const std::string_view domain = normal_domain(node.domain);
  if (const auto f = functions_.find({domain, node.op_type}); f != functions_.end())
    return inline_function(scope, node, *f->second);
  const auto opset = scope.call.opsets.find(domain);
  if (opset == scope.call.opsets.end())
    throw Unsupported("the model does not import an operator set of this domain");
  const Handler handler = domain.empty() ? find_handler(node.op_type, opset->second) : nullptr;
  if (handler == nullptr) throw Unsupported("no such operator");
  return handler(Site(*this, scope, node, opset->second));
}

std::vector<Value> Importer::inline_function(Scope& scope, const NodeProto& node,
                                             const FunctionProto& function) {
  Call call;
  call.depth = scope.call.depth + 1;
  if (call.depth > kMaxDepth) {
    throw FormatError(fmt::format("functions call each other deeper than {}", kMaxDepth),
                      node.offset);
  }
  call.opsets = opsets_of(function.opset_imports);
  for (const AttributeProto& a : function.default_attributes) call.attributes[a.name] = &a;
  for (const AttributeProto& a : node.attributes) {
    const auto outer = scope.call.attributes.find(a.ref_attr_name);
    if (a.ref_attr_name.empty()) {
      call.attributes[a.name] = &a;
    } else if (outer != scope.call.attributes.end()) {
      call.attributes[a.name] = outer->second;
    }
  }
  Scope inner{scope.frame, call};
  for (std::size_t i = 0; i < function.inputs.size(); ++i) {
    const bool is_given = i < node.inputs.size() && !node.inputs[i].empty();
    if (is_given) inner.values[function.inputs[i]] = find(scope, node.inputs[i], node.offset);
  }
  import_nodes(inner, function.nodes);
  std::vector<Value> results;
  for (const std::string_view output : function.outputs)
    results.push_back(find(inner, output, node.offset));
  return results;
}

std::vector<Value> Importer::inline_graph(Frame& frame, const Graph& body,
                                          const std::vector<Value>& inputs) {
  std::unordered_map<const Node*, std::vector<Value>> twins;
  for (std::size_t i = 0; i < inputs.size(); ++i)
    twins[body.inputs()[i].value.node()] = {inputs[i]};
  const std::string origin = frame.graph->origin();
  for (const Node* node : body.topological_order()) {
    if (twins.count(node) != 0) continue;
    spend(1);
    if (const auto* constant = node->as<Constant>()) {
      twins[node] = {frame.graph->constant(constant->value)};
      continue;
    }
    if (const auto* size = node->as<Size>()) {
      twins[node] = {frame.graph->size(size->extent)};
      continue;
    }
    std::vector<Value> operands;
    for (const Value v : node->inputs())
      operands.push_back(v ? twins.at(v.node())[v.index()] : Value());
    frame.graph->set_origin(node->name());
    twins[node] = frame.graph->add(node->op(), std::move(operands));
  }
  for (const DimConstraint& c : body.constraints()) {
    if (c.relation == DimConstraint::Relation::equal) {
      frame.graph->require_equal(c.left, c.right, c.node, c.what);
    } else {
      frame.graph->require_at_most(c.left, c.right, c.node, c.what);
    }
  }
  frame.graph->set_origin(origin);
  std::vector<Value> results;
  for (const auto& output : body.outputs())
    results.push_back(twins.at(output.value.node())[output.value.index()]);
  return results;
}

// ---------------------------------------------------------------- bookkeeping

void Importer::spend(std::size_t nodes) {
  if (nodes > budget_) {
    throw Unsupported(fmt::format("the model unfolds to more than {} nodes", kMaxNodes));
  }
  budget_ -= nodes;
}

void Importer::report(const NodeProto& node, std::string_view reason) {
  std::string line =
      fmt::format("{} {}", node.op_type.empty() ? "node" : node.op_type, in_quotes(name_of(node)));
  if (!node.domain.empty()) line += fmt::format(" of domain {}", in_quotes(node.domain));
  unsupported_.push_back(fmt::format("{}: {}", line, reason));
}

void Importer::add_report(const Report& lines) {
  unsupported_.insert(unsupported_.end(), lines.begin(), lines.end());
}

}  // namespace rlx::onnx
