#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "formats/onnx/proto.h"
#include "formats/onnx/tensor.h"
#include "ops/symbolic.h"
#include "rlx/load.h"

namespace rlx::onnx {

/// A graph that is being built, and the one around it.
struct Frame {
  Graph* graph;
  Frame* outer = nullptr;
  std::vector<std::pair<Value, Value>> captures = {};  ///< outer value, the input it became
  std::set<std::string, std::less<>> names = {};       ///< of inputs and params
  SymbolicValues symbolic = {};
};

/// A function that is being inlined, or the model itself.
struct Call {
  std::map<std::string_view, const AttributeProto*> attributes = {};
  std::map<std::string_view, std::int64_t> opsets = {};
  int depth = 0;
};

/// Names of one ONNX graph and the values behind them.
struct Scope {
  Frame& frame;
  const Call& call;
  Scope* outer = nullptr;  ///< whose names are seen too
  std::map<std::string_view, Value> values = {};
  std::map<std::string_view, const TensorProto*> initializers = {};
  /// Names that stand for nothing, since the node that gives them is not supported.
  std::set<std::string_view> missing = {};
};

/// A node that cannot be imported since one that it reads could not; it is not reported itself.
struct DependsOnUnsupported {};

/// Turns one model into one graph.
class Importer {
 public:
  Importer(const ModelProto& model, TensorLoader& loader, const LoadOptions& options);

  Graph run();

  const LoadOptions& options() const { return options_; }
  TensorLoader& tensors() { return loader_; }

  // ---- for handlers

  /// A constant or a param of the outermost graph, as seen in `frame`.
  Value weight(Frame& frame, std::string_view name, Tensor data);
  /// `value` of an enclosing graph as a value of the frame's.
  Value capture(Frame& frame, Value value);
  /// The value behind a name; throws `FormatError` where there is none.
  Value find(Scope& scope, std::string_view name, std::uint64_t offset);
  /// Imports nodes and gives the values of the graph's outputs.
  std::vector<Value> import_body(Scope& scope, const GraphProto& graph);
  /// Adds the nodes of `body` to the frame's graph.
  std::vector<Value> inline_graph(Frame& frame, const Graph& body,
                                  const std::vector<Value>& inputs);
  std::string unique_name(Frame& frame, std::string_view stem);
  /// Branches decided by `LoadOptions::dims` so far.
  std::size_t guards_taken = 0;

  using Report = std::vector<std::string>;
  Report take_report() { return std::exchange(unsupported_, {}); }
  void add_report(const Report& lines);

 private:
  void add_inputs(Scope& scope, const GraphProto& graph);
  void add_outputs(Scope& scope, const GraphProto& graph);
  void import_nodes(Scope& scope, const std::vector<NodeProto>& nodes);
  void import_node(Scope& scope, const NodeProto& node);
  std::vector<Value> values_of(Scope& scope, const NodeProto& node);
  std::vector<Value> inline_function(Scope& scope, const NodeProto& node,
                                     const FunctionProto& function);
  void bind(Scope& scope, const NodeProto& node, const std::vector<Value>& values);
  Value folded(Frame& frame, Value value);
  void spend(std::size_t nodes);
  void report(const NodeProto& node, std::string_view reason);

  const ModelProto& model_;
  TensorLoader& loader_;
  const LoadOptions& options_;
  Frame* root_ = nullptr;
  std::map<std::pair<std::string_view, std::string_view>, const FunctionProto*> functions_;
  Report unsupported_;
  std::size_t budget_;
};

/// What a handler sees of the node that it imports.
class Site {
 public:
  Site(Importer& importer, Scope& scope, const NodeProto& node, std::int64_t opset)
      : importer(importer), scope(scope), node(node), opset(opset) {}

  Importer& importer;
  Scope& scope;
  const NodeProto& node;
  const std::int64_t opset;  ///< of the node's domain

  Frame& frame() const { return scope.frame; }
  Graph& graph() const { return *scope.frame.graph; }

  std::size_t input_count() const { return node.inputs.size(); }
  bool has(std::size_t i) const { return i < node.inputs.size() && !node.inputs[i].empty(); }
  /// Throws `FormatError` if it is not given.
  Value input(std::size_t i) const;
  /// Absent if it is not given.
  Value optional_input(std::size_t i) const;
  /// All of them; none may be left out.
  std::vector<Value> inputs() const;
  bool wants_output(std::size_t i) const {
    return i < node.outputs.size() && !node.outputs[i].empty();
  }

  // Attributes. A wrong type is a `FormatError`.
  bool has_attribute(std::string_view name) const { return find_attribute(name) != nullptr; }
  std::int64_t integer(std::string_view name, std::int64_t otherwise) const;
  std::int64_t required_integer(std::string_view name) const;
  bool flag(std::string_view name, bool otherwise = false) const {
    return integer(name, otherwise ? 1 : 0) != 0;
  }
  double real(std::string_view name, double otherwise) const;
  std::string_view text(std::string_view name, std::string_view otherwise) const;
  std::vector<std::int64_t> integers(std::string_view name) const;  ///< empty if not given
  std::vector<double> reals(std::string_view name) const;
  std::vector<std::string_view> texts(std::string_view name) const;
  const TensorProto* tensor(std::string_view name) const;
  const GraphProto& graph_attribute(std::string_view name) const;

  // Integer inputs that say what to do rather than what to compute on.
  /// Their elements; throws `Unsupported` where they depend on data.
  std::vector<Dim> extents(std::size_t i, std::string_view what) const;
  std::optional<std::vector<Dim>> known_extents(Value value) const;
  /// The same, all known as numbers.
  std::vector<std::int64_t> numbers(std::size_t i, std::string_view what) const;
  std::int64_t number(std::size_t i, std::string_view what) const;

  /// The attribute `name` up to opset `last_attribute`, input `i` from then on; nothing if neither
  /// is given.
  std::optional<std::vector<std::int64_t>> numbers_from(std::string_view name, std::size_t i,
                                                        std::int64_t last_attribute) const;

  [[noreturn]] void bad_attribute(std::string_view name, std::string_view expected) const;

 private:
  const AttributeProto* find_attribute(std::string_view name) const;
  const AttributeProto* find_attribute(std::string_view name, AttributeProto::Type type) const;
};

}  // namespace rlx::onnx
