#include "ops/control.h"

#include <fmt/format.h>

#include "ir/node.h"
#include "ops/host_array.h"
#include "ops/infer.h"
#include "rlx/ops.h"

namespace rlx {
namespace {

// A subgraph reads nothing but its inputs and its own params are constants.
void require_closed(const Subgraph& graph, std::string_view what) {
  if (!graph) throw InvalidArgument(fmt::format("{} is missing", what));
  if (!graph->states().empty() || !graph->params().empty()) {
    throw InvalidArgument(fmt::format(
        "{} has params or states of its own, expected inputs and constants only", what));
  }
}

void require_type(InferArgs& in, const TensorType& found, const TensorType& declared,
                  const std::string& what) {
  if (found.dtype != declared.dtype || found.rank() != declared.rank()) {
    throw InvalidArgument(
        fmt::format("{} is {}, expected {}", what, to_string(found), to_string(declared)));
  }
  for (std::size_t axis = 0; axis < found.rank(); ++axis) {
    in.same(found.shape[axis], declared.shape[axis], fmt::format("axis {} of {}", axis, what));
  }
}

// Inputs `first`, first + 1, … are what the subgraph's inputs from `own` on declare.
void require_inputs(InferArgs& in, const Graph& graph, std::size_t own, std::size_t first,
                    std::string_view what) {
  if (graph.inputs().size() - own != in.size() - first) {
    throw InvalidArgument(fmt::format("{} takes {} inputs, found {}", what,
                                      graph.inputs().size() - own, in.size() - first));
  }
  for (std::size_t i = own; i < graph.inputs().size(); ++i) {
    require_type(in, in[first + i - own], graph.inputs()[i].value.type(),
                 fmt::format("input {} of {}", i, what));
  }
}

TensorType without_first_axis(const TensorType& type) {
  return {type.dtype, Shape(std::vector<Dim>(type.shape.begin() + 1, type.shape.end()))};
}

}  // namespace

// ---------------------------------------------------------------- if

Types infer(const If& op, InferArgs& in) {
  require_dtype(in, 0, DType::boolean);
  require_rank(in, 0, 0);
  require_closed(op.then_branch, "then_branch");
  require_closed(op.else_branch, "else_branch");
  require_inputs(in, *op.then_branch, 0, 1, "then_branch");
  require_inputs(in, *op.else_branch, 0, 1, "else_branch");
  const auto& a = op.then_branch->outputs();
  const auto& b = op.else_branch->outputs();
  if (a.size() != b.size()) {
    throw InvalidArgument(
        fmt::format("then_branch gives {} outputs and else_branch {}", a.size(), b.size()));
  }
  Types types;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const TensorType& x = a[i].value.type();
    const TensorType& y = b[i].value.type();
    if (x != y) {
      throw ShapeError(fmt::format("output {} is {} in then_branch and {} in else_branch", i,
                                   to_string(x), to_string(y)));
    }
    types.push_back(x);
  }
  return types;
}

void evaluate(const If& op, Evaluation& run) {
  std::vector<HostArray> captures;
  for (const HostArray* x : run.inputs.subspan(1)) captures.push_back(*x);
  const bool holds = run.in(0).as<std::uint64_t>()[0] != 0;
  std::vector<HostArray> results =
      run.run_graph(holds ? *op.then_branch : *op.else_branch, std::move(captures));
  for (std::size_t i = 0; i < results.size(); ++i) run.outputs[i] = std::move(results[i]);
}

constinit const OpDef if_def = define<If>({
    .name = "if",
    .summary = "One of two subgraphs, by a bool scalar; only that one runs.",
    .inputs = {"predicate", "captures..."},
    .outputs = {"y..."},
});

// ---------------------------------------------------------------- scan

Types infer(const Scan& op, InferArgs& in) {
  require_closed(op.body, "body");
  const auto carries = static_cast<std::size_t>(op.carries);
  const auto xs = static_cast<std::size_t>(op.xs);
  const Graph& body = *op.body;
  if (op.carries < 0 || op.xs < 0 || in.size() < carries + xs ||
      body.inputs().size() != in.size() || body.outputs().size() < carries) {
    throw InvalidArgument(
        fmt::format("body takes {} inputs and gives {} outputs, for {} carries, {} sequences and "
                    "{} inputs in all",
                    body.inputs().size(), body.outputs().size(), op.carries, op.xs, in.size()));
  }
  Types types;
  for (std::size_t i = 0; i < carries; ++i) {
    const TensorType& carry = body.inputs()[i].value.type();
    require_type(in, in[i], carry, fmt::format("carry {}", i));
    require_type(in, body.outputs()[i].value.type(), carry, fmt::format("next carry {}", i));
    types.push_back(in[i]);
  }
  for (std::size_t i = carries; i < carries + xs; ++i) {
    require_rank_at_least(in, i, 1);
    in.same(in[i].shape[0], op.length, fmt::format("length of sequence {}", i - carries));
    require_type(in, without_first_axis(in[i]), body.inputs()[i].value.type(),
                 fmt::format("slice of sequence {}", i - carries));
  }
  require_inputs(in, body, carries + xs, carries + xs, "body");
  for (std::size_t i = carries; i < body.outputs().size(); ++i) {
    const TensorType& slice = body.outputs()[i].value.type();
    Shape shape{op.length};
    for (const Dim d : slice.shape) shape.push_back(d);
    types.push_back({slice.dtype, std::move(shape)});
  }
  return types;
}

namespace {

// Element range of step t in a sequence.
template <class F>
void with_step(HostArray& sequence, std::int64_t t, const HostArray& slice, F&& f) {
  std::visit(
      [&](auto& values) {
        using T = typename std::decay_t<decltype(values)>::value_type;
        f(values.begin() + t * static_cast<std::int64_t>(slice.size()),
          const_cast<HostArray&>(slice).as<T>());
      },
      sequence.values());
}

HostArray slice_of(const HostArray& sequence, std::int64_t t) {
  HostArray slice(sequence.dtype(), {sequence.dims().begin() + 1, sequence.dims().end()});
  with_step(const_cast<HostArray&>(sequence), t, slice,
            [](auto from, auto& to) { std::copy_n(from, to.size(), to.begin()); });
  return slice;
}

void store_slice(HostArray& sequence, std::int64_t t, const HostArray& slice) {
  with_step(sequence, t, slice,
            [](auto to, const auto& from) { std::copy(from.begin(), from.end(), to); });
}

}  // namespace

void evaluate(const Scan& op, Evaluation& run) {
  const auto carries = static_cast<std::size_t>(op.carries);
  const auto xs = static_cast<std::size_t>(op.xs);
  std::vector<HostArray> state;
  for (std::size_t i = 0; i < carries; ++i) state.push_back(run.in(i));
  const std::int64_t length = xs > 0 ? run.in(carries).dims()[0] : op.length.evaluate(run.sizes);
  for (std::int64_t step = 0; step < length; ++step) {
    const std::int64_t t = op.reverse ? length - 1 - step : step;
    std::vector<HostArray> inputs = state;
    for (std::size_t i = carries; i < carries + xs; ++i) inputs.push_back(slice_of(run.in(i), t));
    for (std::size_t i = carries + xs; i < run.inputs.size(); ++i) inputs.push_back(run.in(i));
    std::vector<HostArray> results = run.run_graph(*op.body, std::move(inputs));
    for (std::size_t i = carries; i < results.size(); ++i)
      store_slice(run.outputs[i], t, results[i]);
    results.erase(results.begin() + static_cast<std::ptrdiff_t>(carries), results.end());
    state = std::move(results);
  }
  for (std::size_t i = 0; i < carries; ++i) run.outputs[i] = std::move(state[i]);
}

constinit const OpDef scan_def = define<Scan>({
    .name = "scan",
    .summary = "Runs `body` once a step, handing carries on, reading one slice of each sequence "
               "and writing one of each "
               "result; no steps give the initial carries.",
    .inputs = {"x..."},
    .outputs = {"y..."},
});

inline namespace v0 {

std::vector<Value> if_else(Value predicate, Graph then_branch, Graph else_branch,
                           std::vector<Value> captures) {
  If op{std::make_shared<const Graph>(std::move(then_branch)),
        std::make_shared<const Graph>(std::move(else_branch))};
  captures.insert(captures.begin(), predicate);
  return predicate.graph().add(make_op(if_def, std::move(op)), std::move(captures));
}

std::vector<Value> scan(Graph body, std::vector<Value> initial, std::vector<Value> xs,
                        std::vector<Value> captures, std::optional<Dim> length,
                        const ScanOptions& options) {
  if (xs.empty() && !length) throw InvalidArgument("scan without sequences needs a length");
  if (initial.empty() && xs.empty()) throw InvalidArgument("scan needs a carry or a sequence");
  Scan op{.body = std::make_shared<const Graph>(std::move(body)),
          .carries = static_cast<std::int64_t>(initial.size()),
          .xs = static_cast<std::int64_t>(xs.size()),
          .length = length ? *length : xs[0].shape()[0],
          .reverse = options.reverse};
  Graph& graph = initial.empty() ? xs[0].graph() : initial[0].graph();
  std::vector<Value> inputs = std::move(initial);
  inputs.insert(inputs.end(), xs.begin(), xs.end());
  inputs.insert(inputs.end(), captures.begin(), captures.end());
  return graph.add(make_op(scan_def, std::move(op)), std::move(inputs));
}

}  // namespace v0
}  // namespace rlx
