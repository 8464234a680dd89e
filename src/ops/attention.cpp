#include "ops/attention.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "ir/node.h"
#include "ops/host_array.h"
#include "ops/infer.h"
#include "rlx/ops.h"

namespace rlx {
namespace {

struct AxesOf {
  std::size_t heads, tokens;
};
constexpr AxesOf axes_of(AttentionLayout layout) {
  return layout == AttentionLayout::bhsd ? AxesOf{1, 2} : AxesOf{2, 1};
}

void require_mask(InferArgs& in, const Shape& scores) {
  const DType dtype = in[3].dtype;
  if (dtype != DType::boolean && dtype != in[0].dtype) {
    throw InvalidArgument(
        fmt::format("mask is {}, expected bool or {}", name(dtype), name(in[0].dtype)));
  }
  require_broadcasts_to(in, 3, scores);
}

void require_heads(Dim heads, Dim kv_heads) {
  const auto h = heads.constant();
  const auto hk = kv_heads.constant();
  if (!h || !hk || *hk == 0 || *h % *hk != 0) {
    throw ShapeError(fmt::format("q has {} heads, which is no multiple of the {} heads of k",
                                 heads.to_string(), kv_heads.to_string()));
  }
}

}  // namespace

Types infer(const Attention& op, InferArgs& in) {
  for (const std::size_t i : {0, 1, 2}) {
    require_floating(in, i);
    require_same_dtype(in, 0, i);
    require_rank(in, i, 4);
  }
  if (op.softcap < 0)
    throw InvalidArgument(fmt::format("softcap is {}, expected 0 or more", op.softcap));
  const AxesOf axes = axes_of(op.layout);
  const Shape& q = in[0].shape;
  const Shape& k = in[1].shape;
  const Shape& v = in[2].shape;
  in.same(q[0], k[0], "batch of q and k");
  in.same(q[0], v[0], "batch of q and v");
  in.same(q[3], k[3], "head_dim of q and k");
  in.same(k[axes.tokens], v[axes.tokens], "tokens of k and v");
  in.same(k[axes.heads], v[axes.heads], "heads of k and v");
  require_heads(q[axes.heads], k[axes.heads]);
  const Shape scores{q[0], q[axes.heads], q[axes.tokens], k[axes.tokens]};
  if (in.has(3)) require_mask(in, scores);
  Shape y = q;
  y[3] = v[3];
  return {{in[0].dtype, y}, {DType::f32, {q[0], q[axes.heads], q[axes.tokens]}}};
}

namespace {

/// Indexes [b, h, s, d] in either layout.
struct Heads {
  const HostArray& x;
  AttentionLayout layout;
  std::int64_t heads() const { return x.dims()[axes_of(layout).heads]; }
  std::int64_t tokens() const { return x.dims()[axes_of(layout).tokens]; }
  std::int64_t width() const { return x.dims()[3]; }
  std::size_t at(std::int64_t b, std::int64_t h, std::int64_t s, std::int64_t d) const {
    const std::int64_t row = layout == AttentionLayout::bhsd ? (b * heads() + h) * tokens() + s
                                                             : (b * tokens() + s) * heads() + h;
    return static_cast<std::size_t>(row * width() + d);
  }
};

/// One query row.
class Row {
 public:
  Row(const Attention& op, const Evaluation& run, std::int64_t b, std::int64_t h, std::int64_t i)
      : op_(op),
        run_(run),
        q_{run.in(0), op.layout},
        k_{run.in(1), op.layout},
        v_{run.in(2), op.layout},
        b_(b),
        h_(h),
        i_(i) {
    kv_head_ = h / (q_.heads() / k_.heads());
    if (run.has(3)) {
      const std::vector<std::int64_t> scores{run.in(0).dims()[0], q_.heads(), q_.tokens(),
                                             k_.tokens()};
      mask_strides_ = broadcast_strides(run.in(3).dims(), scores);
    }
  }

  void evaluate(HostArray& y, HostArray& lse) const {
    std::vector<double> s(static_cast<std::size_t>(k_.tokens()));
    double top = -INFINITY;
    bool any = false;
    for (std::int64_t j = 0; j < k_.tokens(); ++j) {
      double& score = s[static_cast<std::size_t>(j)];
      score = is_visible(j) ? masked_score(j) : -INFINITY;
      any = any || is_visible(j);
      if (std::isnan(score) || score > top) top = std::isnan(top) ? top : score;
    }
    double total = 0;
    for (double& p : s) total += p = std::exp(p - top);
    const std::int64_t row = (b_ * q_.heads() + h_) * q_.tokens() + i_;
    lse.as<double>()[static_cast<std::size_t>(row)] = any ? top + std::log(total) : -INFINITY;
    const Heads out{y, op_.layout};
    for (std::int64_t d = 0; d < v_.width(); ++d) {
      y.as<double>()[out.at(b_, h_, i_, d)] = any ? weighted(s, total, d) : 0;
    }
  }

 private:
  // Built-in and boolean masks leave a key out altogether, whatever it holds.
  bool is_visible(std::int64_t j) const {
    const std::int64_t position = i_ + k_.tokens() - q_.tokens();
    if (op_.causal && j > position) return false;
    if (op_.window >= 0 && (j < position - op_.window || j > position)) return false;
    return !(run_.has(3) && run_.in(3).dtype() == DType::boolean) ||
           run_.in(3).as<std::uint64_t>()[mask_at(j)] != 0;
  }

  double masked_score(std::int64_t j) const {
    double score = 0;
    for (std::int64_t d = 0; d < q_.width(); ++d) {
      score +=
          q_.x.as<double>()[q_.at(b_, h_, i_, d)] * k_.x.as<double>()[k_.at(b_, kv_head_, j, d)];
    }
    score *= op_.scale;
    if (op_.softcap > 0) score = op_.softcap * std::tanh(score / op_.softcap);
    if (run_.has(3) && run_.in(3).dtype() != DType::boolean)
      score += run_.in(3).as<double>()[mask_at(j)];
    return score;
  }

  double weighted(const std::vector<double>& p, double total, std::int64_t d) const {
    double sum = 0;
    for (std::int64_t j = 0; j < k_.tokens(); ++j) {
      if (is_visible(j))
        sum += p[static_cast<std::size_t>(j)] * v_.x.as<double>()[v_.at(b_, kv_head_, j, d)];
    }
    return sum / total;
  }

  std::size_t mask_at(std::int64_t j) const {
    const std::int64_t at[] = {b_, h_, i_, j};
    return static_cast<std::size_t>(offset_of(at, mask_strides_));
  }

  const Attention& op_;
  const Evaluation& run_;
  Heads q_, k_, v_;
  std::int64_t b_, h_, i_;
  std::int64_t kv_head_ = 0;
  std::vector<std::int64_t> mask_strides_;
};

}  // namespace

void evaluate(const Attention& op, Evaluation& run) {
  const Heads q{run.in(0), op.layout};
  for (std::int64_t b = 0; b < run.in(0).dims()[0]; ++b) {
    for (std::int64_t h = 0; h < q.heads(); ++h) {
      for (std::int64_t i = 0; i < q.tokens(); ++i)
        Row(op, run, b, h, i).evaluate(run.out(0), run.out(1));
    }
  }
}

namespace {

Value head_major(Value x, AttentionLayout layout) {
  return layout == AttentionLayout::bhsd ? x : transpose(x, {0, 2, 1, 3});
}

// Repeats each head of k or v for the query heads that share it.
Value repeated_heads(Value x, Dim heads) {
  const Shape& s = x.shape();
  if (s[1] == heads) return x;
  const Dim times = *exact_div(heads, s[1]);
  const Value wide = broadcast(unsqueeze(x, {2}), {s[0], s[1], times, s[2], s[3]});
  return reshape(wide, {s[0], heads, s[2], s[3]});
}

// Whether query i sees key j, [queries, keys]; absent where all do.
Value built_in_mask(const Attention& op, Graph& graph, Dim queries, Dim keys) {
  if (!op.causal && op.window < 0) return {};
  const Shape shape{queries, keys};
  const Value shift = graph.size(keys - queries);
  const Value position = iota(graph, DType::i64, shape, 0) + shift;
  const Value key = iota(graph, DType::i64, shape, 1);
  Value mask;
  if (op.causal || op.window >= 0) mask = less_equal(key, position);
  if (op.window >= 0)
    mask = logical_and(
        mask, greater_equal(key, position - scalar(position, static_cast<double>(op.window))));
  return mask;
}

}  // namespace

std::vector<Value> decompose(const Attention& op, std::span<const Value> in) {
  Graph& graph = in[0].graph();
  const Value q = head_major(in[0], op.layout);
  const Dim heads = q.shape()[1];
  const Value k = repeated_heads(head_major(in[1], op.layout), heads);
  const Value v = repeated_heads(head_major(in[2], op.layout), heads);
  Value scores = dot_general(q, k, {0, 1}, {0, 1}, {3}, {3}) * op.scale;
  if (op.softcap > 0) scores = tanh(scores / op.softcap) * op.softcap;
  const Value mask = in.size() > 3 ? in[3] : Value();
  Value visible = built_in_mask(op, graph, q.shape()[2], k.shape()[2]);
  if (mask && mask.dtype() == DType::boolean) {
    visible = visible ? logical_and(visible, mask) : mask;
  } else if (mask) {
    scores = scores + mask;
  }
  const Value lowest = scalar(scores, -INFINITY);
  if (visible) scores = select(visible, scores, lowest);
  const Value top = reduce(scores, Reduction::max, {3}, true);
  Value p = exp(scores - top);
  const Value zero = scalar(p, 0);
  // A row without any key has top = -inf and exp(-inf + inf) = NaN: it gives 0 and -inf instead.
  Value any;
  if (visible) {
    const Value full = broadcast(visible, scores.shape());
    p = select(full, p, zero);
    any = greater(reduce(select(full, scalar(p, 1), zero), Reduction::max, {3}, true), zero);
  }
  const Value total = sum(p, {3}, true);
  Value y = dot_general(p / total, v, {0, 1}, {0, 1}, {3}, {2});
  Value lse = top + log(total);
  if (any) {
    y = select(any, y, zero);
    lse = select(any, lse, lowest);
  }
  return {head_major(y, op.layout), cast(squeeze(lse, {3}), DType::f32)};
}

constinit const OpDef attention_def = define<Attention>({
    .name = "attention",
    .summary = "softmax(scale q kT, capped and masked) v for each head, and the log-sum-exp of the "
               "scores. A row that "
               "causal, window or boolean masks exclude entirely gives 0 and -inf.",
    .inputs = {"q", "k", "v", "mask?"},
    .outputs = {"y", "lse"},
});

inline namespace v0 {

AttentionResult attention(Value q, Value k, Value v, Value mask, const AttentionOptions& options) {
  double scale = options.scale.value_or(0);
  if (!options.scale) {
    const auto width = q.rank() == 4 ? q.shape()[3].constant() : std::nullopt;
    if (!width) throw ShapeError("attention needs a scale where head_dim is not a constant");
    scale = 1 / std::sqrt(static_cast<double>(*width));
  }
  const auto values = q.graph().add(
      make_op(attention_def,
              Attention{scale, options.softcap, options.causal, options.window, options.layout}),
      {q, k, v, mask});
  return {values[0], values[1]};
}

}  // namespace v0
}  // namespace rlx
