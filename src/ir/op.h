#pragma once

#include <array>
#include <initializer_list>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "ir/attributes.h"
#include "rlx/error.h"
#include "rlx/graph.h"

namespace rlx {

class Op;
struct Elementwise;
struct Evaluation;

using Types = std::vector<TensorType>;

/// Names of inputs or outputs. "bias?" may be absent; "x..." stands for any number and comes last.
class Names {
 public:
  static constexpr std::size_t kCapacity = 12;
  constexpr Names() = default;
  constexpr Names(std::initializer_list<std::string_view> names) : count_(names.size()) {
    std::size_t i = 0;
    for (const std::string_view name : names) names_[i++] = name;
  }
  constexpr std::size_t size() const { return count_; }
  constexpr std::string_view operator[](std::size_t i) const { return names_[i]; }
  constexpr bool is_variadic() const { return count_ > 0 && names_[count_ - 1].ends_with("..."); }
  constexpr bool is_optional(std::size_t i) const { return i < count_ && names_[i].ends_with("?"); }
  /// Inputs that must be given.
  std::size_t required() const;
  /// The name of input i without its suffix; "x[2]" within a variadic part.
  std::string label(std::size_t i) const;

 private:
  std::array<std::string_view, kCapacity> names_{};
  std::size_t count_ = 0;
};

/// What an inference rule sees of a node.
class InferArgs {
 public:
  InferArgs(Graph& graph, const Op& op, std::span<const Value> inputs, std::string_view node)
      : graph_(graph), op_(op), inputs_(inputs), node_(node) {}

  std::size_t size() const { return inputs_.size(); }
  bool has(std::size_t i) const { return i < inputs_.size() && inputs_[i]; }
  const TensorType& operator[](std::size_t i) const { return inputs_[i].type(); }
  const Op& op() const { return op_; }
  /// "x", the definition's name of input i.
  std::string label(std::size_t i) const;

  /// Records that two extents are equal at run time and returns the simpler one. Throws
  /// `ShapeError` if they cannot be.
  Dim same(Dim a, Dim b, std::string_view what);
  /// Records that `a` is at most `b` at run time. Throws `ShapeError` if it cannot be.
  void at_most(Dim a, Dim b, std::string_view what);

 private:
  Graph& graph_;
  const Op& op_;
  std::span<const Value> inputs_;
  std::string_view node_;
};

/// An operator: everything that is known of it but its kernels. Records are `constinit`;
/// all_ops.cpp lists them.
struct OpDef {
  std::string_view name;
  std::string_view summary;
  Names inputs;
  Names outputs;
  /// The same ONNX operator name where one maps to the other without any conversion.
  std::string_view onnx = {};
  /// Result depends on more than inputs and attributes (states, random streams): never merged,
  /// folded or removed as a duplicate.
  bool stateful = false;
  /// Row of the elementwise table; null for other operators.
  const Elementwise* elementwise = nullptr;

  // Filled by `define`.
  const AttributeType* attributes = nullptr;
  Types (*infer)(const Op& op, InferArgs& args) = nullptr;
  void (*evaluate)(const Op& op, Evaluation& run) = nullptr;
  std::vector<Value> (*decompose)(const Op& op, std::span<const Value> inputs) = nullptr;
};

/// An operator with its attributes.
class Op {
 public:
  Op(const OpDef& def, std::shared_ptr<const void> attributes)
      : def_(&def), attributes_(std::move(attributes)) {}

  const OpDef& def() const { return *def_; }
  std::string_view name() const { return def_->name; }
  bool is(const OpDef& def) const { return def_ == &def; }
  /// The attributes if they are of type T, else null.
  template <class T>
  const T* as() const {
    return def_->attributes == &attribute_type<T> ? static_cast<const T*>(attributes_.get())
                                                  : nullptr;
  }
  const void* attributes() const { return attributes_.get(); }
  std::uint64_t hash() const;
  bool operator==(const Op& other) const;

 private:
  const OpDef* def_;
  std::shared_ptr<const void> attributes_;
};

/// The attributes of a node of operator `def`, defined with `define<T>`.
template <class T>
Op make_op(const OpDef& def, T attributes) {
  return Op(def, std::make_shared<const T>(std::move(attributes)));
}

/// Binds a definition to its attribute struct: picks up `infer(const T&, InferArgs&)` (returning a
/// TensorType or Types), `evaluate(const T&, Evaluation&)` and `decompose(const T&, std::span<const
/// Value>)` from T's namespace.
template <class T>
consteval OpDef define(OpDef def) {
  def.attributes = &attribute_type<T>;
  def.infer = [](const Op& op, InferArgs& args) -> Types {
    if constexpr (std::is_same_v<decltype(infer(*op.as<T>(), args)), TensorType>) {
      return {infer(*op.as<T>(), args)};
    } else {
      return infer(*op.as<T>(), args);
    }
  };
  if constexpr (requires(const T& t, Evaluation& run) { evaluate(t, run); }) {
    def.evaluate = [](const Op& op, Evaluation& run) { evaluate(*op.as<T>(), run); };
  }
  if constexpr (requires(const T& t, std::span<const Value> inputs) { decompose(t, inputs); }) {
    def.decompose = [](const Op& op, std::span<const Value> inputs) -> std::vector<Value> {
      if constexpr (std::is_same_v<decltype(decompose(*op.as<T>(), inputs)), Value>) {
        return {decompose(*op.as<T>(), inputs)};
      } else {
        return decompose(*op.as<T>(), inputs);
      }
    };
  }
  return def;
}

}  // namespace rlx
