#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <exception>
#include <map>
#include <utility>

#include "formats/onnx/handlers.h"
#include "ir/node.h"
#include "rlx/error.h"
#include "rlx/ops.h"

namespace rlx::onnx {
namespace {

using Values = std::vector<Value>;

Value as_predicate(Value v) { return v.rank() == 0 ? v : reshape(v, {}); }

// ---------------------------------------------------------------- if

/// A branch on its own: a closed graph and what it takes from around, or why there is none.
struct Branch {
  std::unique_ptr<Graph> graph = std::make_unique<Graph>();
  Values captures;  ///< values of the graph around
  std::exception_ptr failure;
  bool took_guard = false;  ///< the sizes in `LoadOptions` decided something in it
  Importer::Report unsupported;

  bool is_whole() const { return !failure && unsupported.empty(); }
};

void add_outputs(Branch& branch, Frame& frame, Scope& scope, const GraphProto& body,
                 Importer& importer) {
  const Values results = importer.import_body(scope, body);
  for (std::size_t i = 0; i < results.size(); ++i)
    branch.graph->output(fmt::format("{}", i), results[i]);
  for (const auto& [outer, inner] : frame.captures) branch.captures.push_back(outer);
}

Branch import_branch(const Site& site, std::string_view attribute) {
  Branch branch;
  Importer& importer = site.importer;
  Frame frame{branch.graph.get(), &site.frame()};
  Scope scope{frame, site.scope.call, &site.scope};
  const Importer::Report before = importer.take_report();
  const std::size_t guards = importer.guards_taken;
  try {
    add_outputs(branch, frame, scope, site.graph_attribute(attribute), importer);
  } catch (const DependsOnUnsupported&) {
    branch.failure = std::current_exception();
  } catch (const Error&) {
    branch.failure = std::current_exception();
  }
  branch.took_guard = importer.guards_taken != guards;
  branch.unsupported = importer.take_report();
  importer.add_report(before);
  return branch;
}

/// The branch in the graph around. One that could not be imported says so now.
Values inlined(const Site& site, const Branch& branch) {
  site.importer.add_report(branch.unsupported);
  if (branch.failure) std::rethrow_exception(branch.failure);
  if (!branch.unsupported.empty()) throw DependsOnUnsupported{};
  return site.importer.inline_graph(site.frame(), *branch.graph, branch.captures);
}

bool give_the_same(const Branch& a, const Branch& b) {
  const auto& x = a.graph->outputs();
  const auto& y = b.graph->outputs();
  if (x.size() != y.size()) return false;
  for (std::size_t i = 0; i < x.size(); ++i) {
    const bool same =
        x[i].value.dtype() == y[i].value.dtype() && x[i].value.rank() == y[i].value.rank();
    if (!same) return false;
  }
  return true;
}

std::string results_of(const Branch& branch) {
  std::vector<std::string> types;
  for (const auto& output : branch.graph->outputs())
    types.push_back(to_string(output.value.type()));
  return fmt::format("({})", fmt::join(types, ", "));
}

/// The branch with one input for each of `captures`, in their order.
Graph with_inputs(Importer& importer, const Branch& branch, const Values& captures) {
  Graph graph;
  Frame frame{&graph};
  std::map<std::pair<Node*, std::size_t>, Value> inputs;
  for (const Value v : captures) {
    inputs[{v.node(), v.index()}] =
        graph.input(importer.unique_name(frame, v.node()->name()), v.type());
  }
  Values used;
  for (const Value v : branch.captures) used.push_back(inputs.at({v.node(), v.index()}));
  const Values results = importer.inline_graph(frame, *branch.graph, used);
  for (std::size_t i = 0; i < results.size(); ++i) graph.output(fmt::format("{}", i), results[i]);
  return graph;
}

Values run_time_if(const Site& site, Value predicate, const Branch& then_branch,
                   const Branch& else_branch) {
  Values captures = then_branch.captures;
  for (const Value v : else_branch.captures) {
    if (std::find(captures.begin(), captures.end(), v) == captures.end()) captures.push_back(v);
  }
  return if_else(predicate, with_inputs(site.importer, then_branch, captures),
                 with_inputs(site.importer, else_branch, captures), captures);
}

/// Which branch the sizes given by the caller take; records that others must not come.
bool take_guard(const Site& site, Dim condition) {
  std::vector<std::string> symbols;
  condition.collect_symbols(symbols);
  const DimBinding& sizes = site.importer.options().dims;
  std::erase_if(symbols, [&](const std::string& s) { return sizes.find(s).has_value(); });
  if (!symbols.empty()) {
    throw InvalidArgument(fmt::format(
        "its branches give results of other ranks or dtypes, and which one is taken depends on "
        "the extents; give --dim NAME=VALUE for {}",
        fmt::join(symbols, ", ")));
  }
  const std::int64_t value = condition.evaluate(sizes);
  site.graph().require_equal(condition, value, site.graph().origin(),
                             "branch chosen for the sizes that the model was loaded with");
  ++site.importer.guards_taken;
  return value != 0;
}

/// Values of the branch that is taken if the predicate is as expected; a run in which it is not
/// fails with an `IndexError`, since the other branch does not exist.
Values only_if(Value predicate, bool expected, const Values& results) {
  const Value wrong = cast(expected ? logical_not(predicate) : predicate, i64);
  Values checked;
  for (const Value v : results) checked.push_back(gather(unsqueeze(v, {0}), wrong, 0));
  return checked;
}

Values import_undecided(const Site& site, Value predicate) {
  Branch then_branch = import_branch(site, "then_branch");
  Branch else_branch = import_branch(site, "else_branch");
  const bool both = then_branch.is_whole() && else_branch.is_whole();
  if (both && give_the_same(then_branch, else_branch))
    return run_time_if(site, predicate, then_branch, else_branch);
  if (const auto condition = site.known_extents(predicate))
    return inlined(site, take_guard(site, condition->front()) ? then_branch : else_branch);
  if (both) {
    throw Unsupported(fmt::format("its branches give {} and {}, and data decides",
                                  results_of(then_branch), results_of(else_branch)));
  }
  // A branch that no run of these sizes can take, as its own branches were chosen by them.
  for (const bool expected : {true, false}) {
    const Branch& taken = expected ? then_branch : else_branch;
    const Branch& other = expected ? else_branch : then_branch;
    const bool impossible = other.failure && other.took_guard && other.unsupported.empty();
    if (impossible && taken.is_whole()) return only_if(predicate, expected, inlined(site, taken));
  }
  (void)inlined(site, then_branch.is_whole() ? else_branch : then_branch);
  throw DependsOnUnsupported{};
}

Values if_of(const Site& site) {
  const Value predicate = as_predicate(site.input(0));
  const auto decided = site.frame().symbolic.decide(predicate);
  if (!decided) return import_undecided(site, predicate);
  Scope inner{site.frame(), site.scope.call, &site.scope};
  return site.importer.import_body(inner,
                                   site.graph_attribute(*decided ? "then_branch" : "else_branch"));
}

// ---------------------------------------------------------------- loops

/// A loop's body under construction.
struct Body {
  std::unique_ptr<Graph> graph = std::make_unique<Graph>();
  Frame frame;
  Scope scope;

  explicit Body(const Site& site)
      : frame{graph.get(), &site.frame()}, scope{frame, site.scope.call, &site.scope} {}

  Value add_input(Importer& importer, std::string_view name, const TensorType& type) {
    const Value v = graph->input(importer.unique_name(frame, name), type);
    scope.values[name] = v;
    return v;
  }
  Values captures() const {
    Values outer;
    for (const auto& [from, to] : frame.captures) outer.push_back(from);
    return outer;
  }
  void add_outputs(const Values& results) const {
    for (std::size_t i = 0; i < results.size(); ++i)
      graph->output(fmt::format("{}", i), results[i]);
  }
};

void require_count(const GraphProto& body, std::string_view what, std::size_t found,
                   std::size_t expected) {
  if (found == expected) return;
  throw FormatError(fmt::format("the body has {} {}, expected {}", found, what, expected),
                    body.offset);
}

Dim trip_count(const Site& site) {
  if (!site.has(0)) throw Unsupported("no number of iterations is given");
  const std::vector<Dim> count = site.extents(0, "the iterations");
  if (count.size() != 1)
    throw ShapeError(fmt::format("the number of iterations has {} elements", count.size()));
  return max(count[0], 0);
}

void require_true(Frame& frame, Value condition) {
  if (frame.symbolic.decide(condition) != std::optional<bool>(true))
    throw Unsupported("data decides when the loop ends");
}

// A loop that runs a known number of times.
Values loop_of(const Site& site) {
  const GraphProto& proto = site.graph_attribute("body");
  const Dim length = trip_count(site);
  if (site.has(1)) require_true(site.frame(), site.input(1));
  const std::size_t carried = site.input_count() < 2 ? 0 : site.input_count() - 2;
  require_count(proto, "inputs", proto.inputs.size(), carried + 2);
  if (proto.outputs.size() < carried + 1)
    require_count(proto, "outputs", proto.outputs.size(), carried + 1);

  Body body(site);
  Values initial;
  for (std::size_t i = 0; i < carried; ++i) {
    initial.push_back(site.input(i + 2));
    body.add_input(site.importer, proto.inputs[i + 2].name, initial.back().type());
  }
  body.add_input(site.importer, proto.inputs[0].name, {i64, {}});
  body.scope.values[proto.inputs[1].name] = scalar(*body.graph, boolean, 1);
  Values results = site.importer.import_body(body.scope, proto);
  require_true(body.frame, results[0]);
  results.erase(results.begin());
  body.add_outputs(results);
  const Values captures = body.captures();
  const Value steps = iota(site.graph(), i64, {length}, 0);
  return scan(std::move(*body.graph), initial, {steps}, captures, length);
}

std::int64_t entry(const std::vector<std::int64_t>& list, std::size_t i) {
  return i < list.size() ? list[i] : 0;
}

std::vector<std::int64_t> moved_axis(std::size_t rank, std::int64_t from, std::int64_t to) {
  std::vector<std::int64_t> permutation;
  for (std::int64_t axis = 0; axis < static_cast<std::int64_t>(rank); ++axis) {
    if (axis != from) permutation.push_back(axis);
  }
  permutation.insert(permutation.begin() + to, from);
  return permutation;
}

std::int64_t axis_within(std::int64_t axis, std::size_t rank) {
  const auto r = static_cast<std::int64_t>(rank);
  if (axis < -r || axis >= r)
    throw InvalidArgument(fmt::format("axis {} is out of range for rank {}", axis, rank));
  return axis < 0 ? axis + r : axis;
}

Values scan_of(const Site& site) {
  const GraphProto& proto = site.graph_attribute("body");
  const std::int64_t sequences = site.required_integer("num_scan_inputs");
  const auto count = static_cast<std::int64_t>(site.input_count());
  if (sequences < 1 || sequences > count)
    site.bad_attribute("num_scan_inputs", "within the inputs");
  const auto carried = static_cast<std::size_t>(count - sequences);
  require_count(proto, "inputs", proto.inputs.size(), site.input_count());
  if (proto.outputs.size() < carried)
    require_count(proto, "outputs", proto.outputs.size(), carried);

  Body body(site);
  Values initial;
  Values xs;
  const auto axes = site.integers("scan_input_axes");
  const auto directions = site.integers("scan_input_directions");
  for (std::size_t i = 0; i < site.input_count(); ++i) {
    Value v = site.input(i);
    if (i < carried) {
      initial.push_back(v);
      body.add_input(site.importer, proto.inputs[i].name, v.type());
      continue;
    }
    const std::int64_t axis = axis_within(entry(axes, i - carried), v.rank());
    if (axis != 0) v = transpose(v, moved_axis(v.rank(), axis, 0));
    if (entry(directions, i - carried) != 0) v = reverse(v, {0});
    xs.push_back(v);
    const std::vector<Dim>& dims = v.shape().dims();
    body.add_input(site.importer, proto.inputs[i].name,
                   {v.dtype(), Shape(std::vector<Dim>(dims.begin() + 1, dims.end()))});
  }
  body.add_outputs(site.importer.import_body(body.scope, proto));
  const Values captures = body.captures();
  Values results = scan(std::move(*body.graph), initial, xs, captures);
  const auto out_axes = site.integers("scan_output_axes");
  const auto out_directions = site.integers("scan_output_directions");
  for (std::size_t i = carried; i < results.size(); ++i) {
    if (entry(out_directions, i - carried) != 0) results[i] = reverse(results[i], {0});
    const std::int64_t axis = axis_within(entry(out_axes, i - carried), results[i].rank());
    if (axis != 0) results[i] = transpose(results[i], moved_axis(results[i].rank(), 0, axis));
  }
  return results;
}

Values old_scan(const Site&) { throw Unsupported("the form before operator set 9"); }

constexpr HandlerRow kRows[] = {
    {"If", if_of},
    {"Loop", loop_of},
    {"Scan", old_scan},
    {"Scan", scan_of, 9},
};

}  // namespace

std::span<const HandlerRow> control_handlers() { return kRows; }

}  // namespace rlx::onnx
