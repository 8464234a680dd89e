#pragma once

#include <string>
#include <vector>

#include "ir/op.h"

namespace rlx {

/// One application of an operator. Owned by its graph.
class Node {
 public:
  struct Use {
    Node* user;
    std::size_t input;
    bool operator==(const Use&) const = default;
  };

  Node(Graph& graph, std::uint64_t id, std::string name, Op op)
      : graph_(&graph), id_(id), name_(std::move(name)), op_(std::move(op)) {}

  Graph& graph() const { return *graph_; }
  /// Grows in the order of insertion; unique within the graph.
  std::uint64_t id() const { return id_; }
  const std::string& name() const { return name_; }
  const Op& op() const { return op_; }
  template <class T>
  const T* as() const {
    return op_.as<T>();
  }
  bool is(const OpDef& def) const { return op_.is(def); }
  const Elementwise* elementwise() const { return op_.def().elementwise; }

  const std::vector<Value>& inputs() const { return inputs_; }
  /// Absent if the operator was not given that many inputs.
  Value input(std::size_t i) const { return i < inputs_.size() ? inputs_[i] : Value(); }
  std::size_t output_count() const { return types_.size(); }
  Value output(std::size_t i = 0) { return {this, i}; }
  const TensorType& type(std::size_t output = 0) const { return types_[output]; }
  /// Inputs of nodes that read this node, in no particular order; outputs of the graph are not
  /// among them.
  const std::vector<Use>& uses() const { return uses_; }

 private:
  friend class rlx::v0::Graph;

  Graph* graph_;
  std::uint64_t id_;
  std::string name_;
  Op op_;
  std::vector<Value> inputs_;
  std::vector<TensorType> types_;
  std::vector<Use> uses_;
};

}  // namespace rlx
