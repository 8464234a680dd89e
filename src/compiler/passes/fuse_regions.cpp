#include "compiler/passes/fuse_regions.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <unordered_set>

#include "compiler/fused.h"
#include "ir/leaves.h"
#include "ir/node.h"
#include "ops/elementwise.h"

namespace rlx {
namespace {

/// Past this, intermediate tiles no longer fit the L1 cache together.
constexpr std::size_t kMaxOperators = 24;

bool is_tiled_dtype(DType dtype) { return dtype != DType::string && !is_block(dtype); }

bool is_fusible(const Node& node) {
  if (node.elementwise() == nullptr && !node.is(cast_def)) return false;
  return is_tiled_dtype(node.type().dtype) &&
         std::ranges::all_of(node.inputs(), [](Value v) { return is_tiled_dtype(v.dtype()); });
}

bool is_scalar_constant(Value value) {
  const Tensor* constant = constant_of(value);
  return constant != nullptr && constant->size() == 1;
}

/// The operators of one region, the root among them.
class Members {
 public:
  Members(const Graph& graph, Node& root) : graph_(graph), root_(root), nodes_{&root} {}

  // Takes in producers until none fits. Whether one fits depends on the members that read it, so
  // those that were refused are asked again after each that joined.
  void grow(const std::unordered_set<const Node*>& taken) {
    for (bool grown = true; grown;) {
      grown = false;
      for (const Value v : frontier()) {
        if (nodes_.size() == kMaxOperators) return;
        if (taken.contains(v.node()) || !fits(*v.node())) continue;
        nodes_.insert(v.node());
        grown = true;
      }
    }
  }

  std::size_t size() const { return nodes_.size(); }
  bool contains(const Node& node) const { return nodes_.contains(&node); }
  const std::unordered_set<const Node*>& nodes() const { return nodes_; }

 private:
  /// What the members read from outside, in the order of the walk from the root.
  std::vector<Value> frontier() const {
    std::vector<Value> values;
    std::unordered_set<const Node*> seen{&root_};
    std::vector<const Node*> stack{&root_};
    while (!stack.empty()) {
      const Node* node = stack.back();
      stack.pop_back();
      for (const Value v : node->inputs()) {
        if (!seen.insert(v.node()).second) continue;
        if (nodes_.contains(v.node())) {
          stack.push_back(v.node());
        } else {
          values.push_back(v);
        }
      }
    }
    return values;
  }

  // A value of fewer elements would be computed once for each place it is spread to. Since all
  // readers are members, no path leaves the region and enters it again.
  bool fits(Node& node) const {
    if (!is_fusible(node)) return false;
    const bool same_count = node.type().shape.element_count() == root_.type().shape.element_count();
    if (!same_count || node.type().shape.rank() > root_.type().shape.rank()) return false;
    if (graph_.is_output(node.output()) && node.type().shape != root_.type().shape) return false;
    return std::ranges::all_of(node.uses(),
                               [&](const Node::Use& use) { return nodes_.contains(use.user); });
  }

  const Graph& graph_;
  Node& root_;
  std::unordered_set<const Node*> nodes_;
};

/// The body of a region, and what stands around it in the graph.
struct Draft {
  Graph body;
  std::vector<Value> inputs;
  std::vector<Value> results;  ///< of the graph; one for each output of the body
};

/// Copies members into a body.
class BodyBuilder {
 public:
  explicit BodyBuilder(const Graph& graph) : graph_(graph) {}

  /// `ordered`: the members, each after what it reads.
  Draft build(const std::vector<Node*>& ordered) {
    for (Node* node : ordered) {
      for (const Value v : node->inputs()) add_input(v, ordered);
    }
    for (Node* node : ordered) copy(*node);
    for (Node* node : ordered) {
      if (node == ordered.back() || graph_.is_output(node->output())) add_result(node->output());
    }
    return std::move(draft_);
  }

 private:
  void add_input(Value v, const std::vector<Node*>& ordered) {
    const bool inside = std::ranges::find(ordered, v.node()) != ordered.end();
    if (inside || copies_.contains(key(v)) || is_scalar_constant(v)) return;
    copies_[key(v)] = draft_.body.input(fmt::format("x{}", draft_.inputs.size()), v.type());
    draft_.inputs.push_back(v);
  }

  void copy(Node& node) {
    std::vector<Value> inputs;
    for (const Value v : node.inputs()) inputs.push_back(copy_of(v));
    copies_[key(node.output())] = draft_.body.add1(node.op(), std::move(inputs));
  }

  Value copy_of(Value v) {
    const auto at = copies_.find(key(v));
    if (at != copies_.end()) return at->second;
    return copies_[key(v)] = draft_.body.constant(*constant_of(v));
  }

  void add_result(Value v) {
    draft_.body.output(fmt::format("y{}", draft_.results.size()), copies_.at(key(v)));
    draft_.results.push_back(v);
  }

  using Key = std::pair<std::uint64_t, std::size_t>;
  static Key key(Value v) { return {v.node()->id(), v.index()}; }

  const Graph& graph_;
  Draft draft_;
  std::map<Key, Value> copies_;
};

// Puts the region where the target has a kernel for it.
bool place(Graph& graph, Draft draft, Node& root, const PassContext& context) {
  graph.set_origin(root.name());
  const auto body = std::make_shared<const Graph>(std::move(draft.body));
  const std::vector<Value> values = graph.add(make_op(region_def, Region{body}), draft.inputs);
  if (!context.target.claims(*values[0].node(), nullptr)) return false;
  for (std::size_t i = 0; i < values.size(); ++i) graph.replace_uses(draft.results[i], values[i]);
  return true;
}

}  // namespace

bool fuse_regions(Graph& graph, const PassContext& context) {
  if (!context.target.has_kernels(region_def)) return false;
  bool changed = false;
  bool refused = false;
  const std::vector<Node*> order = graph.topological_order();
  std::unordered_set<const Node*> taken;
  for (std::size_t i = order.size(); i-- > 0;) {
    Node& root = *order[i];
    if (taken.contains(&root) || !is_fusible(root)) continue;
    Members members(graph, root);
    members.grow(taken);
    if (members.size() == 1) continue;
    std::vector<Node*> ordered;
    std::ranges::copy_if(order, std::back_inserter(ordered),
                         [&](const Node* node) { return members.contains(*node); });
    if (!place(graph, BodyBuilder(graph).build(ordered), root, context)) {
      refused = true;
      continue;
    }
    taken.insert(members.nodes().begin(), members.nodes().end());
    context.count("fused region");
    changed = true;
  }
  graph.set_origin({});
  if (refused) graph.prune();
  return changed;
}

}  // namespace rlx
