#include "compiler/bound_graph.h"

#include "base/check.h"
#include "ir/leaves.h"

namespace rlx {

BoundGraph::BoundGraph(const Graph& graph, DimBinding sizes, const BufferPolicy& policy)
    : graph_(graph), sizes_(std::move(sizes)), policy_(policy) {
  for (Node* node : graph.topological_order()) bind_node(*node);
  bind_outputs();
  bind_updates();
}

void BoundGraph::bind_node(Node& node) {
  using Kind = BoundBuffer::Kind;
  if (node.is(input_def)) return bind_leaf(node, Kind::input);
  if (node.is(param_def)) return bind_leaf(node, Kind::param);
  if (node.is(constant_def) || node.is(size_def)) return bind_leaf(node, Kind::constant);
  if (node.is(state_def)) return bind_leaf(node, Kind::state);
  if (is_view_candidate(node)) return bind_view(node);
  bind_kernel(node);
}

std::size_t BoundGraph::new_buffer(Value value) {
  const std::vector<std::int64_t> dims = value.shape().evaluate(sizes_);
  std::size_t count = 1;
  for (const std::int64_t d : dims) count *= static_cast<std::size_t>(d);
  const std::size_t id = buffers_.size();
  buffers_.push_back({.bytes = value.dtype() == DType::string ? 0 : byte_size(value.dtype(), count),
                      .first = steps_.size(),
                      .last = steps_.size()});
  uses_left_.push_back(graph_.use_count(value));
  views_[value.node()].push_back(dense_view(id, dims));
  return id;
}

void BoundGraph::bind_leaf(Node& node, BoundBuffer::Kind kind) {
  const std::size_t id = new_buffer(node.output());
  buffers_[id].kind = kind;
  buffers_[id].leaf = &node;
}

bool BoundGraph::readers_take_strides(Node& node) const {
  if (graph_.is_output(node.output())) return false;
  for (const Node::Use& use : node.uses()) {
    if (!is_view_candidate(*use.user) && !policy_.takes_strides(*use.user, use.input)) return false;
  }
  return true;
}

void BoundGraph::bind_view(Node& node) {
  const ValueView input = view(node.input(0));
  touch(input);
  const auto result = view_of(node, input, sizes_);
  --uses_left_[input.buffer];
  if (result && (is_dense(*result) || readers_take_strides(node))) {
    views_[&node] = {*result};
    uses_left_[input.buffer] += graph_.use_count(node.output());
    return;
  }
  const std::size_t id = new_buffer(node.output());
  (void)id;
  const ValueView to = views_[&node][0];
  // What strides cannot express is a reshape, which keeps the order of elements: copy first, look
  // at it later.
  ValueView from = result ? *result : input;
  ValueView target = to;
  if (!result) {
    target = dense_view(to.buffer, input.dims);
  }
  add_copy(node, std::move(from), std::move(target));
}

void BoundGraph::add_copy(const Node& node, ValueView from, ValueView to) {
  touch(from);
  touch(to);
  steps_.push_back({&node, true, std::move(from), std::move(to)});
}

std::optional<std::size_t> BoundGraph::reusable_input(Node& node) {
  const std::vector<std::int64_t> dims = node.type(0).shape.evaluate(sizes_);
  for (std::size_t i = 0; i < node.inputs().size(); ++i) {
    const Value v = node.inputs()[i];
    if (!v || !policy_.works_in_place(node, i)) continue;
    const ValueView& input = view(v);
    const BoundBuffer& buffer = buffers_[input.buffer];
    if (buffer.kind != BoundBuffer::Kind::arena || uses_left_[input.buffer] != 1) continue;
    if (input.dims != dims || !is_dense(input) || input.offset != 0) continue;
    if (traits(v.dtype()).bits != traits(node.type(0).dtype).bits || is_block(v.dtype())) continue;
    return input.buffer;
  }
  return std::nullopt;
}

void BoundGraph::bind_kernel(Node& node) {
  const auto reused = reusable_input(node);
  for (const Value v : node.inputs()) {
    if (!v) continue;
    touch(view(v));
    --uses_left_[view(v).buffer];
  }
  for (std::size_t i = 0; i < node.output_count(); ++i) {
    if (i == 0 && reused) {
      views_[&node].push_back(dense_view(*reused, node.type(0).shape.evaluate(sizes_)));
      uses_left_[*reused] += graph_.use_count(node.output(0));
      continue;
    }
    new_buffer(node.output(i));
  }
  steps_.push_back({&node, false, {}, {}});
}

// Outputs lie in the arena to the end, dense; what lies elsewhere is copied there.
void BoundGraph::bind_outputs() {
  for (const Graph::Named& output : graph_.outputs()) {
    const ValueView& found = view(output.value);
    const bool in_arena = buffers_[found.buffer].kind == BoundBuffer::Kind::arena;
    if (in_arena && is_dense(found)) {
      outputs_.push_back(found);
      continue;
    }
    const ValueView from = found;
    buffers_.push_back(
        {.bytes = byte_size(output.value.dtype(), static_cast<std::size_t>(from.size())),
         .first = steps_.size(),
         .last = steps_.size()});
    uses_left_.push_back(1);
    outputs_.push_back(dense_view(buffers_.size() - 1, from.dims));
    add_copy(*output.value.node(), from, outputs_.back());
  }
}

// States change after everything else has read them. A new value that lies in a state goes through
// the arena, since that state may be written first.
void BoundGraph::bind_updates() {
  std::vector<ValueView> sources;
  for (const Graph::Update& u : graph_.updates()) {
    ValueView from = view(u.next);
    if (buffers_[from.buffer].kind == BoundBuffer::Kind::state) {
      buffers_.push_back({.bytes = byte_size(u.next.dtype(), static_cast<std::size_t>(from.size())),
                          .first = steps_.size(),
                          .last = steps_.size()});
      uses_left_.push_back(1);
      const ValueView copy = dense_view(buffers_.size() - 1, from.dims);
      add_copy(*u.next.node(), from, copy);
      from = copy;
    }
    sources.push_back(std::move(from));
  }
  for (std::size_t i = 0; i < sources.size(); ++i) {
    const Graph::Update& u = graph_.updates()[i];
    add_copy(*u.next.node(), sources[i], view(u.state));
  }
  for (const ValueView& output : outputs_) buffers_[output.buffer].last = steps_.size();
}

std::size_t BoundGraph::add_scratch(std::size_t step, std::size_t bytes) {
  buffers_.push_back({.bytes = bytes, .first = step, .last = step});
  return buffers_.size() - 1;
}

}  // namespace rlx
