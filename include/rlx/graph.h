#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "rlx/shape.h"
#include "rlx/tensor.h"

namespace rlx {

class Node;
class Op;

inline namespace v0 {

class Graph;

/// One output of one node of a graph; a light handle that lives as long as its graph. A
/// default-made Value is absent (an optional input that is not given).
class RLX_EXPORT Value {
 public:
  Value() = default;
  Value(Node* node, std::size_t index) : node_(node), index_(static_cast<std::uint32_t>(index)) {}

  explicit operator bool() const noexcept { return node_ != nullptr; }
  bool operator==(const Value&) const = default;

  Node* node() const noexcept { return node_; }
  std::size_t index() const noexcept { return index_; }
  const TensorType& type() const;
  DType dtype() const { return type().dtype; }
  const Shape& shape() const { return type().shape; }
  std::size_t rank() const { return shape().rank(); }
  Graph& graph() const;

 private:
  Node* node_ = nullptr;
  std::uint32_t index_ = 0;
};

/// A relation of two extents that must hold whenever the graph runs; checked when sizes are bound.
struct DimConstraint {
  enum class Relation : std::uint8_t { equal, less_equal };

  Dim left, right;
  std::string node;  ///< whose
  std::string what;  ///< "inner dimensions", "broadcast of axis 1", …
  Relation relation = Relation::equal;

  bool holds(const DimBinding& sizes) const {
    const std::int64_t a = left.evaluate(sizes);
    const std::int64_t b = right.evaluate(sizes);
    return relation == Relation::equal ? a == b : a <= b;
  }
};

/// A computation: nodes, named inputs, params, states and outputs. Shapes and dtypes are inferred
/// and checked as nodes are added. One thread at a time.
class RLX_EXPORT Graph {
 public:
  struct Named {
    std::string name;
    Value value;
  };
  struct Update {
    Value state, next;
  };

  Graph();
  ~Graph();
  Graph(Graph&&) noexcept;
  Graph& operator=(Graph&&) noexcept;

  /// What a run is given. An extent written as a string is a symbol; -1 is not allowed.
  Value input(std::string_view name, const TensorType& type);
  /// A weight, set once before the first run.
  Value param(std::string_view name, const TensorType& type);
  /// A weight with its data, which the graph shares. A template, so that braces such as
  /// `{f32, {2, 3}}` mean the type alone.
  template <std::same_as<Tensor> T>
  Value param(std::string_view name, T data) {
    return param_with_data(name, std::move(data));
  }
  /// Part of the graph itself: scalars and small tables.
  Value constant(Tensor value);
  /// An extent as an i64 scalar.
  Value size(Dim extent);
  /// A tensor that stays between runs; zero at first unless `initial` is given.
  Value state(std::string_view name, const TensorType& type,
              std::optional<Tensor> initial = std::nullopt);
  /// Makes `next` the value that `state` has in the next run. All reads of this run see the old
  /// value.
  void update(Value state, Value next);
  void output(std::string_view name, Value value);

  /// Adds a node; infers its output types. Errors name the node and its operator.
  std::vector<Value> add(Op op, std::vector<Value> inputs);
  /// As `add`, for an operator with one output.
  Value add1(Op op, std::vector<Value> inputs);

  /// Nodes added from here on carry this name (made unique by a suffix); empty: the operator's
  /// name.
  void set_origin(std::string_view origin) { origin_ = origin; }
  const std::string& origin() const noexcept { return origin_; }

  const std::vector<Named>& inputs() const noexcept { return inputs_; }
  const std::vector<Named>& params() const noexcept { return params_; }
  const std::vector<Named>& states() const noexcept { return states_; }
  const std::vector<Named>& outputs() const noexcept { return outputs_; }
  const std::vector<Update>& updates() const noexcept { return updates_; }
  const std::vector<DimConstraint>& constraints() const noexcept { return constraints_; }
  /// Data of a param or the initial value of a state, if the graph has it.
  const Tensor* data_of(std::string_view name) const;
  void set_data(std::string_view name, Tensor data);
  void drop_data(std::string_view name);
  /// Records that two extents are equal whenever the graph runs. Throws `ShapeError` if they never
  /// are.
  void require_equal(Dim left, Dim right, std::string_view node, std::string_view what);
  /// Records that `left` is at most `right` whenever the graph runs. Throws `ShapeError` if it
  /// never is; records nothing if it always is.
  void require_at_most(Dim left, Dim right, std::string_view node, std::string_view what);

  /// Nodes that outputs and updates depend on, and all inputs; each after what it reads, in an
  /// order that depends on the graph alone.
  std::vector<Node*> topological_order() const;
  std::size_t node_count() const noexcept { return nodes_.size(); }
  /// Readers of `value` among the nodes, outputs and updates.
  std::size_t use_count(Value value) const;
  bool is_output(Value value) const;
  /// Lets every reader of `from` (nodes, outputs, updates) read `to`, of the same dtype and rank.
  void replace_uses(Value from, Value to);
  void set_input(Node* node, std::size_t index, Value value);
  /// Deletes nodes that no output or update depends on, and params without readers; inputs stay.
  /// Returns their number.
  std::size_t prune();
  /// A copy; `mapping` receives old node -> new node where given.
  Graph clone(std::map<const Node*, Node*>* mapping = nullptr) const;

  std::map<std::string, std::string> metadata;  ///< free text from the model file

 private:
  friend class Node;
  Value param_with_data(std::string_view name, Tensor data);
  Value leaf(Op op, TensorType type, std::string_view name, std::vector<Named>* list);
  std::string fresh_name(std::string_view stem);

  std::vector<std::unique_ptr<Node>> nodes_;
  std::vector<Named> inputs_, params_, states_, outputs_;
  std::vector<Update> updates_;
  std::vector<DimConstraint> constraints_;
  std::map<std::string, Tensor, std::less<>> data_;
  std::map<std::string, std::size_t, std::less<>> names_;
  std::string origin_;
  std::uint64_t next_id_ = 0;
};

/// The text form, which `parse_graph` reads back. Constants of more than 64 elements become `#N`,
/// the N-th of `blobs` (or are cut short with "…" where `blobs` is null, for people).
RLX_EXPORT std::string to_string(const Graph& graph, std::vector<Tensor>* blobs = nullptr);

}  // namespace v0
}  // namespace rlx
