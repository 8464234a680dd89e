#include <fmt/format.h>

#include <algorithm>

#include "formats/dense.h"
#include "formats/onnx/handlers.h"
#include "rlx/error.h"
#include "rlx/ops.h"

namespace rlx::onnx {
namespace {

using Values = std::vector<Value>;

/// Inputs that the three cells share, time first, gates in RLX's order.
struct Cell {
  RecurrentDirection direction = RecurrentDirection::forward;
  Value x, w, r, bias, lengths, h0;
  bool batch_first = false;
};

/// Rows of `weight` [dirs, gates h, …] in another order of gates.
Value reordered(Value weight, const std::vector<std::int64_t>& order) {
  if (!weight || std::is_sorted(order.begin(), order.end())) return weight;
  const auto gates = static_cast<std::int64_t>(order.size());
  if (weight.rank() < 2) {
    throw ShapeError(
        fmt::format("a weight is {}, expected rank 2 or more", to_string(weight.shape())));
  }
  const Dim rows = floor_div(weight.shape()[1], gates);
  Values parts;
  for (const std::int64_t gate : order) parts.push_back(slice_axis(weight, 1, rows * gate, rows));
  return concat(std::move(parts), 1);
}

/// The bias holds one run of gates for the input and one for the recurrence.
Value reordered_bias(Value bias, const std::vector<std::int64_t>& order) {
  const auto gates = static_cast<std::int64_t>(order.size());
  std::vector<std::int64_t> both = order;
  for (const std::int64_t gate : order) both.push_back(gate + gates);
  return reordered(bias, both);
}

void require_activations(const Site& site, RecurrentDirection direction,
                         const std::vector<std::string_view>& expected) {
  const std::vector<std::string_view> given = site.texts("activations");
  const std::size_t directions = direction == RecurrentDirection::bidirectional ? 2 : 1;
  for (std::size_t i = 0; i < given.size(); ++i) {
    if (given.size() != directions * expected.size() || given[i] != expected[i % expected.size()])
      throw Unsupported(fmt::format("activation {}", in_quotes(given[i])));
  }
}

RecurrentDirection direction_of(const Site& site) {
  const std::string_view direction = site.text("direction", "forward");
  if (direction == "forward") return RecurrentDirection::forward;
  if (direction == "reverse") return RecurrentDirection::reverse;
  if (direction != "bidirectional")
    site.bad_attribute("direction", "forward, reverse or bidirectional");
  return RecurrentDirection::bidirectional;
}

Value batch_second(Value state) { return state ? transpose(state, {1, 0, 2}) : state; }

Cell cell_of(const Site& site, const std::vector<std::int64_t>& order) {
  if (site.has_attribute("clip")) throw Unsupported("clip");
  Cell cell;
  cell.direction = direction_of(site);
  cell.batch_first = site.flag("layout");
  cell.x = site.input(0);
  cell.w = reordered(site.input(1), order);
  cell.r = reordered(site.input(2), order);
  cell.bias = reordered_bias(site.optional_input(3), order);
  cell.lengths = site.optional_input(4);
  cell.h0 = site.optional_input(5);
  if (cell.batch_first) {
    cell.x = transpose(cell.x, {1, 0, 2});
    cell.h0 = batch_second(cell.h0);
  }
  return cell;
}

Values results_of(const Cell& cell, const RecurrentResult& result) {
  if (!cell.batch_first) return {result.y, result.h, result.c};
  return {transpose(result.y, {2, 0, 1, 3}), batch_second(result.h), batch_second(result.c)};
}

// ONNX has i, o, f, c.
Values lstm_of(const Site& site) {
  if (site.has(7)) throw Unsupported("peepholes");
  if (site.flag("input_forget")) throw Unsupported("input_forget");
  const Cell cell = cell_of(site, {0, 2, 3, 1});
  require_activations(site, cell.direction, {"Sigmoid", "Tanh", "Tanh"});
  Value c0 = site.optional_input(6);
  if (cell.batch_first) c0 = batch_second(c0);
  return results_of(
      cell, lstm(cell.x, cell.w, cell.r, cell.bias, cell.lengths, cell.h0, c0, cell.direction));
}

// ONNX has z, r, h.
Values gru_of(const Site& site) {
  const Cell cell = cell_of(site, {1, 0, 2});
  require_activations(site, cell.direction, {"Sigmoid", "Tanh"});
  return results_of(cell, gru(cell.x, cell.w, cell.r, cell.bias, cell.lengths, cell.h0,
                              cell.direction, site.flag("linear_before_reset")));
}

Values rnn_of(const Site& site) {
  const Cell cell = cell_of(site, {0});
  const std::vector<std::string_view> activations = site.texts("activations");
  const bool relu = !activations.empty() && activations[0] == "Relu";
  require_activations(site, cell.direction, {relu ? "Relu" : "Tanh"});
  return results_of(
      cell, rnn(cell.x, cell.w, cell.r, cell.bias, cell.lengths, cell.h0, cell.direction, relu));
}

constexpr HandlerRow kRows[] = {
    {"GRU", gru_of},
    {"LSTM", lstm_of},
    {"RNN", rnn_of},
};

}  // namespace

std::span<const HandlerRow> recurrent_handlers() { return kRows; }

}  // namespace rlx::onnx
