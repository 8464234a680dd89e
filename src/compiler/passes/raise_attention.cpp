#include <cmath>

#include "compiler/passes/raise.h"
#include "compiler/pattern.h"
#include "ops/attention.h"
#include "ops/dot_general.h"
#include "ops/elementwise.h"
#include "ops/movement.h"
#include "ops/softmax.h"
#include "rlx/ops.h"

namespace rlx {
namespace {

using Axes = std::vector<std::int64_t>;

// A product of matrices over [b, h] batches that contracts a's last axis with b's axis `b_axis`.
const DotGeneral* head_product(const Node& node, std::int64_t b_axis) {
  const auto* dot = node.as<DotGeneral>();
  if (dot == nullptr || node.input(0).rank() != 4 || node.input(1).rank() != 4) return nullptr;
  const bool fits = dot->a_batch == Axes{0, 1} && dot->b_batch == Axes{0, 1} &&
                    dot->a_contracting == Axes{3} && dot->b_contracting == Axes{b_axis};
  return fits ? dot : nullptr;
}

/// The parts of softmax(q kᵀ · scale + mask) v.
struct Parts {
  Value q, k, v, mask;
  double scale = 1;
};

// Whether an operand has the result's extents: symbolic ones may be written in two ways that a
// constraint equates.
bool is_not_stretched(Value operand, Value result) {
  if (operand.dtype() != result.dtype() || operand.rank() != result.rank()) return false;
  for (std::size_t axis = 0; axis < result.rank(); ++axis) {
    const Dim x = operand.shape()[axis];
    if (x != result.shape()[axis] && x == Dim(1)) return false;
  }
  return true;
}

// Takes multiplications by a constant off a value.
Value without_scale(Value x, double& scale) {
  for (;;) {
    const Node& node = *x.node();
    if (node.is(mul_def)) {
      const auto left = scalar_of(node.input(0));
      const auto right = scalar_of(node.input(1));
      if (!left && !right) return x;
      const Value rest = node.input(left ? 1 : 0);
      if (!is_not_stretched(rest, x)) return x;
      scale *= left ? *left : *right;
      x = rest;
    } else if (node.is(div_def) && scalar_of(node.input(1)) && is_not_stretched(node.input(0), x)) {
      scale /= *scalar_of(node.input(1));
      x = node.input(0);
    } else {
      return x;
    }
  }
}

// A fill so low that adding any score to it gives the fill itself, in double precision too: a row
// of such keys alone then keeps its meaning.
bool swallows_scores(std::optional<double> fill) { return fill && *fill <= -1e30; }

// Whether a value is a product of heads, scaled or not.
bool is_scores(Value x) {
  double scale = 1;
  const Node& node = *without_scale(x, scale).node();
  return head_product(node, 2) != nullptr || head_product(node, 3) != nullptr;
}

// Takes a mask off the scores: an addition, or a selection of a very low value.
Value without_mask(Value scores, Value& mask) {
  const Node& node = *scores.node();
  if (node.is(add_def)) {
    const bool left = is_scores(node.input(0)) && is_not_stretched(node.input(0), scores);
    const Value rest = node.input(left ? 0 : 1);
    if (!is_scores(rest) || !is_not_stretched(rest, scores)) return scores;
    mask = node.input(left ? 1 : 0);
    return rest;
  }
  if (!node.is(select_def)) return scores;
  for (const std::size_t kept : {std::size_t{1}, std::size_t{2}}) {
    const Value fill = node.input(3 - kept);
    if (!swallows_scores(scalar_of(fill)) || !is_not_stretched(node.input(kept), scores)) continue;
    const Value zero = scalar(fill, 0);
    mask = kept == 1 ? select(node.input(0), zero, fill) : select(node.input(0), fill, zero);
    return node.input(kept);
  }
  return scores;
}

std::optional<Parts> parts_of(const Node& node) {
  Parts parts;
  const bool v_plain = head_product(node, 2) != nullptr;
  if (!v_plain && head_product(node, 3) == nullptr) return std::nullopt;
  const Value probabilities = node.input(0);
  const auto* softmax = probabilities.node()->as<Softmax>();
  if (softmax == nullptr || softmax->axis != 3) return std::nullopt;
  parts.v = v_plain ? node.input(1) : transpose(node.input(1), {0, 1, 3, 2});

  Value scores = without_scale(probabilities.node()->input(0), parts.scale);
  if (parts.scale == 1) {
    scores = without_mask(scores, parts.mask);
    scores = without_scale(scores, parts.scale);
  }
  const Node& product = *scores.node();
  const bool k_plain = head_product(product, 3) != nullptr;
  if (!k_plain && head_product(product, 2) == nullptr) return std::nullopt;
  parts.q = without_scale(product.input(0), parts.scale);
  const Value k = without_scale(product.input(1), parts.scale);
  parts.k = k_plain ? k : transpose(k, {0, 1, 3, 2});
  return parts;
}

bool swaps_heads(const Node& node) {
  const auto* op = node.as<Transpose>();
  return op != nullptr && op->permutation == Axes{0, 2, 1, 3};
}

}  // namespace

bool raise_attention(Graph& graph, const PassContext& context) {
  bool changed = false;
  for (Node* node : graph.topological_order()) {
    graph.set_origin(node->name());
    const auto parts = parts_of(*node);
    if (!parts) continue;
    AttentionOptions options;
    options.scale = parts->scale;
    // Where the heads are merged again right after, tokens come first from the start.
    const auto& uses = node->uses();
    const bool token_major =
        uses.size() == 1 && !graph.is_output(node->output()) && swaps_heads(*uses[0].user);
    if (token_major) {
      options.layout = AttentionLayout::bshd;
      const auto swapped = [](Value x) { return transpose(x, {0, 2, 1, 3}); };
      const Value y =
          attention(swapped(parts->q), swapped(parts->k), swapped(parts->v), parts->mask, options)
              .y;
      graph.replace_uses(uses[0].user->output(), y);
    } else {
      graph.replace_uses(node->output(),
                         attention(parts->q, parts->k, parts->v, parts->mask, options).y);
    }
    context.count("raised attention");
    changed = true;
  }
  graph.set_origin({});
  return changed;
}

}  // namespace rlx
