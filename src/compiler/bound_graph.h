#pragma once

#include <functional>
#include <unordered_map>
#include <vector>

#include "compiler/views.h"
#include "ir/node.h"

namespace rlx {

/// Memory behind values. Buffers of kind `arena` live only between their first and last step.
struct BoundBuffer {
  enum class Kind : std::uint8_t { arena, input, param, constant, state };
  Kind kind = Kind::arena;
  const Node* leaf = nullptr;  ///< of the other kinds
  std::size_t bytes = 0;
  std::size_t first = 0, last = 0;
};

/// What a backend decides about the sharing of memory.
struct BufferPolicy {
  /// Whether the kernel of `user` takes its input with any strides.
  std::function<bool(const Node& user, std::size_t input)> takes_strides;
  /// Whether output 0 of `node` may lie in the bytes of that input, which dies there.
  std::function<bool(const Node& node, std::size_t input)> works_in_place;
};

/// One thing that happens in a run: a node's kernel, or a copy of a view that its readers cannot
/// take.
struct BoundStep {
  const Node* node = nullptr;
  bool is_copy = false;
  ValueView from;  ///< of a copy: the source as seen through the node
  ValueView to;
};

/// A scheduled graph for one set of sizes: where each value lies and for how long.
class BoundGraph {
 public:
  /// `graph` outlives it.
  BoundGraph(const Graph& graph, DimBinding sizes, const BufferPolicy& policy);

  const DimBinding& sizes() const { return sizes_; }
  const std::vector<BoundStep>& steps() const { return steps_; }
  const std::vector<BoundBuffer>& buffers() const { return buffers_; }
  const ValueView& view(Value value) const { return views_.at(value.node())[value.index()]; }
  /// Dense and in the arena, one for each output of the graph.
  const std::vector<ValueView>& outputs() const { return outputs_; }
  /// A buffer that only step `step` uses.
  std::size_t add_scratch(std::size_t step, std::size_t bytes);

 private:
  void bind_node(Node& node);
  void bind_leaf(Node& node, BoundBuffer::Kind kind);
  void bind_view(Node& node);
  void bind_kernel(Node& node);
  void bind_outputs();
  void bind_updates();
  bool readers_take_strides(Node& node) const;
  std::size_t new_buffer(Value value);
  std::optional<std::size_t> reusable_input(Node& node);
  void touch(const ValueView& view) { buffers_[view.buffer].last = steps_.size(); }
  void add_copy(const Node& node, ValueView from, ValueView to);
  std::size_t remaining_uses(std::size_t buffer) const { return uses_left_[buffer]; }

  const Graph& graph_;
  DimBinding sizes_;
  const BufferPolicy& policy_;
  std::vector<BoundStep> steps_;
  std::vector<BoundBuffer> buffers_;
  std::vector<std::size_t> uses_left_;  // reads of each buffer that are still to come
  std::unordered_map<const Node*, std::vector<ValueView>> views_;
  std::vector<ValueView> outputs_;
};

}  // namespace rlx
