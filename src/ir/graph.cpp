#include "rlx/graph.h"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "base/check.h"
#include "ir/leaves.h"
#include "ir/node.h"

namespace rlx {
inline namespace v0 {

const TensorType& Value::type() const { return node_->type(index_); }
Graph& Value::graph() const { return node_->graph(); }

Graph::Graph() = default;
Graph::~Graph() = default;

Graph::Graph(Graph&& other) noexcept { *this = std::move(other); }

Graph& Graph::operator=(Graph&& other) noexcept {
  nodes_ = std::move(other.nodes_);
  inputs_ = std::move(other.inputs_);
  params_ = std::move(other.params_);
  states_ = std::move(other.states_);
  outputs_ = std::move(other.outputs_);
  updates_ = std::move(other.updates_);
  constraints_ = std::move(other.constraints_);
  data_ = std::move(other.data_);
  names_ = std::move(other.names_);
  origin_ = std::move(other.origin_);
  metadata = std::move(other.metadata);
  next_id_ = other.next_id_;
  for (const auto& node : nodes_) node->graph_ = this;
  return *this;
}

namespace {

Value find_named(const std::vector<Graph::Named>& list, std::string_view name) {
  const auto at =
      std::find_if(list.begin(), list.end(), [&](const auto& named) { return named.name == name; });
  return at == list.end() ? Value() : at->value;
}

void require_extents(const Shape& shape, std::string_view name) {
  for (const Dim d : shape) {
    if (d.is_constant() && *d.constant() < 0) {
      throw ShapeError(fmt::format("{}: extent {} is negative", name, d.to_string()));
    }
  }
}

}  // namespace

Value Graph::leaf(Op op, TensorType type, std::string_view name, std::vector<Named>* list) {
  if (list != nullptr) {
    if (name.empty()) throw InvalidArgument(fmt::format("{} needs a name", op.name()));
    for (const auto* named : {&inputs_, &params_, &states_}) {
      if (find_named(*named, name))
        throw InvalidArgument(fmt::format("the graph has {} already", name));
    }
    require_extents(type.shape, name);
  }
  auto node = std::make_unique<Node>(*this, next_id_++, fresh_name(name.empty() ? op.name() : name),
                                     std::move(op));
  node->types_ = {std::move(type)};
  const Value value(node.get(), 0);
  nodes_.push_back(std::move(node));
  if (list != nullptr) list->push_back({std::string(name), value});
  return value;
}

Value Graph::input(std::string_view name, const TensorType& type) {
  return leaf(make_op(input_def, Input{std::string(name), type}), type, name, &inputs_);
}

Value Graph::param(std::string_view name, const TensorType& type) {
  if (!type.shape.is_static()) {
    throw ShapeError(
        fmt::format("{}: a param has static extents, found {}", name, to_string(type.shape)));
  }
  return leaf(make_op(param_def, Param{std::string(name), type}), type, name, &params_);
}

Value Graph::param_with_data(std::string_view name, Tensor data) {
  const Value v = param(name, TensorType{data.dtype(), Shape::of(data.dims())});
  data_[std::string(name)] = std::move(data);
  return v;
}

Value Graph::constant(Tensor value) {
  TensorType type{value.dtype(), Shape::of(value.dims())};
  return leaf(make_op(constant_def, Constant{std::move(value)}), std::move(type), {}, nullptr);
}

Value Graph::size(Dim extent) {
  return leaf(make_op(size_def, Size{extent}), {i64, {}}, {}, nullptr);
}

Value Graph::state(std::string_view name, const TensorType& type, std::optional<Tensor> initial) {
  const Value v = leaf(make_op(state_def, State{std::string(name), type}), type, name, &states_);
  if (initial) set_data(name, std::move(*initial));
  return v;
}

void Graph::update(Value state, Value next) {
  if (!state || !state.node()->is(state_def)) throw InvalidArgument("only a state can be updated");
  if (state.type() != next.type()) {
    throw ShapeError(fmt::format("{} is {}, its update {}", state.node()->name(),
                                 to_string(state.type()), to_string(next.type())));
  }
  for (const Update& u : updates_) {
    if (u.state == state)
      throw InvalidArgument(fmt::format("{} is updated twice", state.node()->name()));
  }
  updates_.push_back({state, next});
}

void Graph::output(std::string_view name, Value value) {
  if (!value || &value.graph() != this)
    throw InvalidArgument(fmt::format("output {} is not a value of this graph", name));
  if (find_named(outputs_, name))
    throw InvalidArgument(fmt::format("the graph has an output {} already", name));
  outputs_.push_back({std::string(name), value});
}

std::string Graph::fresh_name(std::string_view stem) {
  auto [at, is_new] = names_.try_emplace(std::string(stem), 0);
  if (is_new) return std::string(stem);
  for (;;) {
    std::string name = fmt::format("{}.{}", stem, ++at->second);
    if (names_.try_emplace(name, 0).second) return name;
  }
}

namespace {

void check_arity(const Op& op, const std::vector<Value>& inputs, const Graph& graph) {
  const Names& names = op.def().inputs;
  const bool too_many = inputs.size() > names.size() && !names.is_variadic();
  if (too_many || inputs.size() < names.required()) {
    throw InvalidArgument(
        fmt::format("takes {}{} inputs, found {}", names.required(),
                    too_many || names.size() == names.required() ? "" : " or more", inputs.size()));
  }
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (!inputs[i] && !names.is_optional(i))
      throw InvalidArgument(fmt::format("input {} is missing", names.label(i)));
    if (inputs[i] && &inputs[i].graph() != &graph) {
      throw InvalidArgument(fmt::format("input {} belongs to another graph", names.label(i)));
    }
  }
}

}  // namespace

std::vector<Value> Graph::add(Op op, std::vector<Value> inputs) {
  while (!inputs.empty() && !inputs.back() && op.def().inputs.is_optional(inputs.size() - 1))
    inputs.pop_back();
  std::string name = fresh_name(origin_.empty() ? op.name() : std::string_view(origin_));
  Types types;
  try {
    check_arity(op, inputs, *this);
    InferArgs args(*this, op, inputs, name);
    types = op.def().infer(op, args);
    for (const TensorType& t : types) require_extents(t.shape, "output");
  } catch (Error& error) {
    error.at(name, op.name());
    throw;
  }
  auto node = std::make_unique<Node>(*this, next_id_++, std::move(name), std::move(op));
  node->types_ = std::move(types);
  node->inputs_ = std::move(inputs);
  for (std::size_t i = 0; i < node->inputs_.size(); ++i) {
    if (node->inputs_[i]) node->inputs_[i].node()->uses_.push_back({node.get(), i});
  }
  std::vector<Value> values;
  for (std::size_t i = 0; i < node->types_.size(); ++i) values.emplace_back(node.get(), i);
  nodes_.push_back(std::move(node));
  return values;
}

Value Graph::add1(Op op, std::vector<Value> inputs) {
  const std::vector<Value> values = add(std::move(op), std::move(inputs));
  RLX_ASSERT(values.size() == 1);
  return values[0];
}

const Tensor* Graph::data_of(std::string_view name) const {
  const auto at = data_.find(name);
  return at == data_.end() ? nullptr : &at->second;
}

void Graph::set_data(std::string_view name, Tensor data) {
  Value v = find_named(params_, name);
  if (!v) v = find_named(states_, name);
  if (!v) throw InvalidArgument(fmt::format("the graph has no param or state {}", name));
  const TensorType found{data.dtype(), Shape::of(data.dims())};
  if (v.type() != found) {
    throw ShapeError(
        fmt::format("{} is {}, its data {}", name, to_string(v.type()), to_string(found)));
  }
  data_.insert_or_assign(std::string(name), std::move(data));
}

void Graph::drop_data(std::string_view name) {
  if (const auto at = data_.find(name); at != data_.end()) data_.erase(at);
}

void Graph::require_equal(Dim left, Dim right, std::string_view node, std::string_view what) {
  if (left == right) return;
  const Dim difference = left - right;
  if (difference.lower_bound() > 0 || difference.upper_bound() < 0) {
    throw ShapeError(
        fmt::format("{}: {} and {} differ", what, left.to_string(), right.to_string()));
  }
  const auto known = [&](const DimConstraint& c) {
    return c.relation == DimConstraint::Relation::equal &&
           ((c.left == left && c.right == right) || (c.left == right && c.right == left));
  };
  if (std::any_of(constraints_.begin(), constraints_.end(), known)) return;
  constraints_.push_back({left, right, std::string(node), std::string(what)});
}

void Graph::require_at_most(Dim left, Dim right, std::string_view node, std::string_view what) {
  const Dim excess = left - right;
  if (excess.upper_bound() <= 0) return;
  if (excess.lower_bound() > 0) {
    throw ShapeError(
        fmt::format("{}: {} is more than {}", what, left.to_string(), right.to_string()));
  }
  constexpr auto kRelation = DimConstraint::Relation::less_equal;
  const auto known = [&](const DimConstraint& c) {
    return c.relation == kRelation && c.left == left && c.right == right;
  };
  if (std::any_of(constraints_.begin(), constraints_.end(), known)) return;
  constraints_.push_back({left, right, std::string(node), std::string(what), kRelation});
}

std::vector<Node*> Graph::topological_order() const {
  std::vector<Node*> order;
  std::unordered_set<const Node*> done;
  std::vector<std::pair<Node*, std::size_t>> stack;
  const auto visit = [&](Node* root) {
    if (done.insert(root).second) stack.emplace_back(root, 0);
    while (!stack.empty()) {
      auto& [node, next] = stack.back();
      if (next == node->inputs_.size()) {
        order.push_back(node);
        stack.pop_back();
        continue;
      }
      const Value v = node->inputs_[next++];
      if (v && done.insert(v.node()).second) stack.emplace_back(v.node(), 0);
    }
  };
  for (const Named& input : inputs_) visit(input.value.node());
  for (const Named& output : outputs_) visit(output.value.node());
  for (const Update& u : updates_) {
    visit(u.state.node());
    visit(u.next.node());
  }
  return order;
}

std::size_t Graph::use_count(Value value) const {
  std::size_t count = 0;
  for (const Node::Use& use : value.node()->uses_) count += use.user->inputs_[use.input] == value;
  for (const Named& output : outputs_) count += output.value == value;
  for (const Update& u : updates_) count += u.next == value;
  return count;
}

bool Graph::is_output(Value value) const {
  return std::any_of(outputs_.begin(), outputs_.end(),
                     [&](const Named& o) { return o.value == value; }) ||
         std::any_of(updates_.begin(), updates_.end(),
                     [&](const Update& u) { return u.next == value; });
}

void Graph::replace_uses(Value from, Value to) {
  if (from == to) return;
  RLX_ASSERT(from.dtype() == to.dtype() && from.rank() == to.rank());
  const std::vector<Node::Use> uses = from.node()->uses_;
  for (const Node::Use& use : uses) {
    if (use.user->inputs_[use.input] == from) set_input(use.user, use.input, to);
  }
  for (Named& output : outputs_) {
    if (output.value == from) output.value = to;
  }
  for (Update& u : updates_) {
    if (u.next == from) u.next = to;
  }
}

void Graph::set_input(Node* node, std::size_t index, Value value) {
  const Value old = node->inputs_[index];
  if (old == value) return;
  if (old) {
    auto& uses = old.node()->uses_;
    uses.erase(std::find(uses.begin(), uses.end(), Node::Use{node, index}));
  }
  node->inputs_[index] = value;
  if (value) value.node()->uses_.push_back({node, index});
}

std::size_t Graph::prune() {
  const std::vector<Node*> order = topological_order();
  const std::unordered_set<const Node*> live(order.begin(), order.end());
  const auto is_dead = [&](const std::unique_ptr<Node>& node) {
    return live.count(node.get()) == 0;
  };
  for (const auto& node : nodes_) {
    if (!is_dead(node)) continue;
    for (std::size_t i = 0; i < node->inputs_.size(); ++i) {
      if (node->inputs_[i] && live.count(node->inputs_[i].node()) != 0)
        set_input(node.get(), i, Value());
    }
  }
  for (auto* list : {&params_, &states_}) {
    std::erase_if(*list, [&](const Named& named) {
      if (live.count(named.value.node()) != 0) return false;
      drop_data(named.name);
      return true;
    });
  }
  return std::erase_if(nodes_, is_dead);
}

Graph Graph::clone(std::map<const Node*, Node*>* mapping) const {
  Graph copy;
  std::unordered_map<const Node*, Node*> twins;
  const auto twin_of = [&](Value v) { return v ? Value(twins.at(v.node()), v.index()) : Value(); };
  for (const auto& node : nodes_) {
    auto twin = std::make_unique<Node>(copy, node->id_, node->name_, node->op_);
    twin->types_ = node->types_;
    twins[node.get()] = twin.get();
    copy.nodes_.push_back(std::move(twin));
  }
  for (const auto& node : nodes_) {
    Node* twin = twins[node.get()];
    for (const Value v : node->inputs_) twin->inputs_.push_back(twin_of(v));
    for (const Node::Use& use : node->uses_) twin->uses_.push_back({twins.at(use.user), use.input});
  }
  for (const Named& n : inputs_) copy.inputs_.push_back({n.name, twin_of(n.value)});
  for (const Named& n : params_) copy.params_.push_back({n.name, twin_of(n.value)});
  for (const Named& n : states_) copy.states_.push_back({n.name, twin_of(n.value)});
  for (const Named& n : outputs_) copy.outputs_.push_back({n.name, twin_of(n.value)});
  for (const Update& u : updates_) copy.updates_.push_back({twin_of(u.state), twin_of(u.next)});
  copy.constraints_ = constraints_;
  copy.data_ = data_;
  copy.names_ = names_;
  copy.origin_ = origin_;
  copy.next_id_ = next_id_;
  copy.metadata = metadata;
  if (mapping != nullptr) {
    for (const auto& [from, to] : twins) (*mapping)[from] = to;
  }
  return copy;
}

}  // namespace v0
}  // namespace rlx
