#include "ops/recurrent.h"

#include <fmt/format.h>

#include <cmath>

#include "ir/node.h"
#include "ops/host_array.h"
#include "ops/infer.h"
#include "rlx/ops.h"

namespace rlx {
namespace {

std::int64_t directions_of(RecurrentDirection d) {
  return d == RecurrentDirection::bidirectional ? 2 : 1;
}

/// Which inputs a cell has: x 0, w 1, r 2, bias 3, lengths 4, h0 5, c0 6.
Types infer_cell(RecurrentDirection direction, std::int64_t gates, bool has_cell, InferArgs& in) {
  require_floating(in, 0);
  for (const std::size_t i : {0, 1, 2}) require_rank(in, i, 3);
  for (const std::size_t i : {1, 2, 3, 5, 6}) {
    if (in.has(i)) require_same_dtype(in, 0, i);
  }
  const Shape& x = in[0].shape;
  const Dim directions = directions_of(direction);
  const Dim hidden = in[2].shape[2];
  require_shape(in, 1, {directions, hidden * gates, x[2]});
  require_shape(in, 2, {directions, hidden * gates, hidden});
  if (in.has(3)) require_shape(in, 3, {directions, hidden * (2 * gates)});
  if (in.has(4)) {
    require_index(in, 4);
    require_shape(in, 4, {x[1]});
  }
  const Shape state{directions, x[1], hidden};
  for (const std::size_t i : {5, 6}) {
    if (in.has(i)) require_shape(in, i, state);
  }
  Types types{{in[0].dtype, {x[0], directions, x[1], hidden}}, {in[0].dtype, state}};
  if (has_cell) types.push_back({in[0].dtype, state});
  return types;
}

double sigmoid_of(double x) { return 1 / (1 + std::exp(-x)); }

/// One direction of one sequence: reads inputs, keeps h and c.
class Sequence {
 public:
  Sequence(Evaluation& run, std::int64_t gates, std::int64_t direction, std::int64_t b)
      : run_(run),
        gates_(gates),
        direction_(direction),
        b_(b),
        batch_(run.in(0).dims()[1]),
        width_(run.in(0).dims()[2]),
        hidden_(run.in(2).dims()[2]),
        directions_(run.in(2).dims()[0]) {
    h = initial(5);
    c = initial(6);
  }

  std::int64_t hidden() const { return hidden_; }
  std::int64_t length() const {
    return run_.has(4) ? run_.in(4).index(static_cast<std::size_t>(b_)) : run_.in(0).dims()[0];
  }

  // W x_t + its bias, for row `row` of the gates.
  double input_part(std::int64_t t, std::int64_t row) const {
    double total = bias(row);
    for (std::int64_t i = 0; i < width_; ++i) {
      total += at(1, (direction_ * gates_ * hidden_ + row) * width_ + i) *
               at(0, (t * batch_ + b_) * width_ + i);
    }
    return total;
  }
  // R h + its bias.
  double hidden_part(const std::vector<double>& state, std::int64_t row) const {
    double total = bias(gates_ * hidden_ + row);
    for (std::int64_t i = 0; i < hidden_; ++i) {
      total += at(2, (direction_ * gates_ * hidden_ + row) * hidden_ + i) *
               state[static_cast<std::size_t>(i)];
    }
    return total;
  }

  void store(std::int64_t t) const {
    for (std::int64_t i = 0; i < hidden_; ++i) {
      run_.out(0).as<double>()[static_cast<std::size_t>(
          ((t * directions_ + direction_) * batch_ + b_) * hidden_ + i)] =
          h[static_cast<std::size_t>(i)];
    }
  }
  void store_final() const {
    for (std::int64_t i = 0; i < hidden_; ++i) {
      const auto to = static_cast<std::size_t>((direction_ * batch_ + b_) * hidden_ + i);
      run_.out(1).as<double>()[to] = h[static_cast<std::size_t>(i)];
      if (run_.outputs.size() > 2) run_.out(2).as<double>()[to] = c[static_cast<std::size_t>(i)];
    }
  }

  std::vector<double> h, c;

 private:
  double at(std::size_t input, std::int64_t i) const {
    return run_.in(input).as<double>()[static_cast<std::size_t>(i)];
  }
  double bias(std::int64_t row) const {
    return run_.has(3) ? at(3, direction_ * 2 * gates_ * hidden_ + row) : 0;
  }
  std::vector<double> initial(std::size_t input) const {
    std::vector<double> state(static_cast<std::size_t>(hidden_), 0);
    if (!run_.has(input)) return state;
    for (std::int64_t i = 0; i < hidden_; ++i)
      state[static_cast<std::size_t>(i)] = at(input, (direction_ * batch_ + b_) * hidden_ + i);
    return state;
  }

  Evaluation& run_;
  std::int64_t gates_, direction_, b_, batch_, width_, hidden_, directions_;
};

// Runs every sequence in every direction; `step(sequence, t)` advances h and c by one step.
template <class F>
void evaluate_cell(RecurrentDirection direction, std::int64_t gates, Evaluation& run, F&& step) {
  const std::int64_t batch = run.in(0).dims()[1];
  for (std::int64_t d = 0; d < directions_of(direction); ++d) {
    const bool backwards = direction == RecurrentDirection::reverse || d == 1;
    for (std::int64_t b = 0; b < batch; ++b) {
      Sequence s(run, gates, d, b);
      const std::int64_t length = s.length();
      if (length < 0 || length > run.in(0).dims()[0]) {
        throw IndexError(fmt::format("length {} of sequence {} is out of range for {} steps",
                                     length, b, run.in(0).dims()[0]));
      }
      for (std::int64_t i = 0; i < length; ++i) {
        const std::int64_t t = backwards ? length - 1 - i : i;
        step(s, t);
        s.store(t);
      }
      s.store_final();
    }
  }
}

}  // namespace

Types infer(const Lstm& op, InferArgs& in) { return infer_cell(op.direction, 4, true, in); }
Types infer(const Gru& op, InferArgs& in) { return infer_cell(op.direction, 3, false, in); }
Types infer(const Rnn& op, InferArgs& in) { return infer_cell(op.direction, 1, false, in); }

void evaluate(const Lstm& op, Evaluation& run) {
  evaluate_cell(op.direction, 4, run, [](Sequence& s, std::int64_t t) {
    const std::int64_t n = s.hidden();
    const std::vector<double> before = s.h;
    const auto gate = [&](std::int64_t g, std::int64_t i) {
      return s.input_part(t, g * n + i) + s.hidden_part(before, g * n + i);
    };
    for (std::int64_t i = 0; i < n; ++i) {
      double& c = s.c[static_cast<std::size_t>(i)];
      c = sigmoid_of(gate(1, i)) * c + sigmoid_of(gate(0, i)) * std::tanh(gate(2, i));
      s.h[static_cast<std::size_t>(i)] = sigmoid_of(gate(3, i)) * std::tanh(c);
    }
  });
}

void evaluate(const Gru& op, Evaluation& run) {
  evaluate_cell(op.direction, 3, run, [&](Sequence& s, std::int64_t t) {
    const std::int64_t n = s.hidden();
    const std::vector<double> before = s.h;
    std::vector<double> reset(before.size());
    std::vector<double> gated(before.size());
    for (std::int64_t i = 0; i < n; ++i) {
      const auto at = static_cast<std::size_t>(i);
      reset[at] = sigmoid_of(s.input_part(t, i) + s.hidden_part(before, i));
      gated[at] = reset[at] * before[at];
    }
    for (std::int64_t i = 0; i < n; ++i) {
      const auto at = static_cast<std::size_t>(i);
      const double z = sigmoid_of(s.input_part(t, n + i) + s.hidden_part(before, n + i));
      const double inner = op.reset_after ? reset[at] * s.hidden_part(before, 2 * n + i)
                                          : s.hidden_part(gated, 2 * n + i);
      s.h[at] = (1 - z) * std::tanh(s.input_part(t, 2 * n + i) + inner) + z * before[at];
    }
  });
}

void evaluate(const Rnn& op, Evaluation& run) {
  evaluate_cell(op.direction, 1, run, [&](Sequence& s, std::int64_t t) {
    const std::vector<double> before = s.h;
    for (std::int64_t i = 0; i < s.hidden(); ++i) {
      const double z = s.input_part(t, i) + s.hidden_part(before, i);
      s.h[static_cast<std::size_t>(i)] = op.relu ? (z < 0 ? 0 : z) : std::tanh(z);
    }
  });
}

// ---------------------------------------------------------------- decomposition: a scan for each
// direction

namespace {

struct Cell {
  std::int64_t gates;
  bool has_cell;
  /// Next h (and c) from z = W x + b [b, gates h], u = R h + b, and the state.
  std::function<std::vector<Value>(Value z, Value r_weight, Value r_bias, Value h, Value c)> step;
};

Value part(Value x, std::int64_t index, Dim size) {
  return slice_axis(x, static_cast<std::int64_t>(x.rank()) - 1, size * index, size);
}

Value input_or(std::span<const Value> in, std::size_t i) { return i < in.size() ? in[i] : Value(); }

// [1, …] at `index` of the first axis, without that axis.
Value row(Value x, std::int64_t index) { return squeeze(slice_axis(x, 0, index, 1), {0}); }

Value zeros(Graph& graph, DType dtype, const Shape& shape) {
  return broadcast(scalar(graph, dtype, 0), shape);
}

Value recurrent_product(Value h, Value r, Value bias) {
  const Value u = dot_general(h, r, {}, {}, {1}, {1});
  return bias ? u + bias : u;
}

// Body inputs: h (, c), z_t, step, r (, bias) (, lengths). Outputs: h (, c), y_t.
Graph cell_body(const Cell& cell, const Shape& state, DType dtype, Dim hidden, bool has_bias,
                DType lengths_dtype) {
  Graph body;
  const Value h = body.input("h", {dtype, state});
  const Value c = cell.has_cell ? body.input("c", {dtype, state}) : Value();
  const Value z = body.input("z", {dtype, {state[0], hidden * cell.gates}});
  const bool has_lengths = lengths_dtype != DType::boolean;
  const Value t = has_lengths ? body.input("t", {lengths_dtype, {}}) : Value();
  const Value r = body.input("r", {dtype, {hidden * cell.gates, hidden}});
  const Value bias = has_bias ? body.input("bias", {dtype, {hidden * cell.gates}}) : Value();
  std::vector<Value> next = cell.step(z, r, bias, h, c);
  Value y = next[0];
  if (has_lengths) {
    const Value active =
        unsqueeze(less(t, body.input("lengths", {lengths_dtype, {state[0]}})), {1});
    y = select(active, next[0], scalar(next[0], 0));
    next[0] = select(active, next[0], h);
    if (c) next[1] = select(active, next[1], c);
  }
  body.output("h", next[0]);
  if (c) body.output("c", next[1]);
  body.output("y", y);
  return body;
}

// Past a sequence's end a reverse walk leaves the state alone, so that it starts at the last step.
std::vector<Value> decompose_cell(const Cell& cell, RecurrentDirection direction,
                                  std::span<const Value> in) {
  Graph& graph = in[0].graph();
  const Value x = in[0];
  const Dim hidden = in[2].shape()[2];
  const Shape state{x.shape()[1], hidden};
  std::vector<Value> ys, hs, cs;
  for (std::int64_t d = 0; d < directions_of(direction); ++d) {
    const Value bias = input_or(in, 3) ? row(in[3], d) : Value();
    const Dim rows = hidden * cell.gates;
    Value z = dot_general(x, row(in[1], d), {}, {}, {2}, {1});
    if (bias) z = z + slice_axis(bias, 0, 0, rows);
    const auto initial = [&](std::size_t i) {
      return input_or(in, i) ? row(in[i], d) : zeros(graph, x.dtype(), state);
    };
    std::vector<Value> carries{initial(5)};
    if (cell.has_cell) carries.push_back(initial(6));
    std::vector<Value> xs{z};
    std::vector<Value> captures{row(in[2], d)};
    if (bias) captures.push_back(slice_axis(bias, 0, rows, rows));
    const Value lengths = input_or(in, 4);
    if (lengths) {
      xs.push_back(iota(graph, lengths.dtype(), {x.shape()[0]}, 0));
      captures.push_back(lengths);
    }
    Graph body = cell_body(cell, state, x.dtype(), hidden, static_cast<bool>(bias),
                           lengths ? lengths.dtype() : DType::boolean);
    const bool backwards = direction == RecurrentDirection::reverse || d == 1;
    std::vector<Value> results =
        scan(std::move(body), carries, xs, captures, x.shape()[0], {.reverse = backwards});
    hs.push_back(unsqueeze(results[0], {0}));
    if (cell.has_cell) cs.push_back(unsqueeze(results[1], {0}));
    ys.push_back(unsqueeze(results.back(), {1}));
  }
  std::vector<Value> outputs{concat(ys, 1), concat(hs, 0)};
  if (cell.has_cell) outputs.push_back(concat(cs, 0));
  return outputs;
}

}  // namespace

std::vector<Value> decompose(const Lstm& op, std::span<const Value> in) {
  const auto step = [](Value z, Value r, Value bias, Value h, Value c) -> std::vector<Value> {
    const Value gates = z + recurrent_product(h, r, bias);
    const Dim n = h.shape()[1];
    const Value next =
        sigmoid(part(gates, 1, n)) * c + sigmoid(part(gates, 0, n)) * tanh(part(gates, 2, n));
    return {sigmoid(part(gates, 3, n)) * tanh(next), next};
  };
  return decompose_cell({4, true, step}, op.direction, in);
}

std::vector<Value> decompose(const Gru& op, std::span<const Value> in) {
  const auto step = [&](Value z, Value r, Value bias, Value h, Value) -> std::vector<Value> {
    const Dim n = h.shape()[1];
    const Value u = recurrent_product(h, r, bias);
    const Value reset = sigmoid(part(z, 0, n) + part(u, 0, n));
    const Value update = sigmoid(part(z, 1, n) + part(u, 1, n));
    Value inner = reset * part(u, 2, n);
    if (!op.reset_after) {
      const Value rows = slice_axis(r, 0, n * 2, n);
      inner = recurrent_product(reset * h, rows, bias ? slice_axis(bias, 0, n * 2, n) : Value());
    }
    const Value candidate = tanh(part(z, 2, n) + inner);
    return {(1.0 - update) * candidate + update * h};
  };
  return decompose_cell({3, false, step}, op.direction, in);
}

std::vector<Value> decompose(const Rnn& op, std::span<const Value> in) {
  const auto step = [&](Value z, Value r, Value bias, Value h, Value) -> std::vector<Value> {
    const Value sum = z + recurrent_product(h, r, bias);
    return {op.relu ? relu(sum) : tanh(sum)};
  };
  return decompose_cell({1, false, step}, op.direction, in);
}

constinit const OpDef lstm_def = define<Lstm>({
    .name = "lstm",
    .summary =
        "Long short-term memory: c' = sigmoid(f) c + sigmoid(i) tanh(g), h' = sigmoid(o) tanh(c').",
    .inputs = {"x", "w", "r", "bias?", "lengths?", "h0?", "c0?"},
    .outputs = {"y", "h", "c"},
});
constinit const OpDef gru_def = define<Gru>({
    .name = "gru",
    .summary = "Gated recurrent unit: h' = (1 - z) n + z h, with n = tanh of the input and the "
               "reset state.",
    .inputs = {"x", "w", "r", "bias?", "lengths?", "h0?"},
    .outputs = {"y", "h"},
});
constinit const OpDef rnn_def = define<Rnn>({
    .name = "rnn",
    .summary = "Elman cell: h' = tanh or relu of W x + R h + bias.",
    .inputs = {"x", "w", "r", "bias?", "lengths?", "h0?"},
    .outputs = {"y", "h"},
});

inline namespace v0 {

RecurrentResult lstm(Value x, Value w, Value r, Value bias, Value lengths, Value h0, Value c0,
                     RecurrentDirection direction) {
  const auto y =
      x.graph().add(make_op(lstm_def, Lstm{direction}), {x, w, r, bias, lengths, h0, c0});
  return {y[0], y[1], y[2]};
}
RecurrentResult gru(Value x, Value w, Value r, Value bias, Value lengths, Value h0,
                    RecurrentDirection direction, bool reset_after) {
  const auto y =
      x.graph().add(make_op(gru_def, Gru{direction, reset_after}), {x, w, r, bias, lengths, h0});
  return {y[0], y[1], {}};
}
RecurrentResult rnn(Value x, Value w, Value r, Value bias, Value lengths, Value h0,
                    RecurrentDirection direction, bool relu) {
  const auto y =
      x.graph().add(make_op(rnn_def, Rnn{direction, relu}), {x, w, r, bias, lengths, h0});
  return {y[0], y[1], {}};
}

}  // namespace v0
}  // namespace rlx
