#include "pass_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <regex>

#include "compiler/fused.h"
#include "conformance/op_case.h"
#include "ir/binding.h"
#include "ir/node.h"
#include "ir/text.h"
#include "ir/verify.h"

namespace rlx {

bool AnyTarget::claims(const Node& node, std::string* why_not) const {
  if (has_kernels(node.op().def())) return true;
  if (why_not != nullptr) *why_not = "lacks it";
  return false;
}

bool AnyTarget::has_kernels(const OpDef& op) const {
  return std::ranges::find(lacks_, op.name) == lacks_.end();
}

int PassRun::count(const std::string& what) const {
  const auto at = report.counts.find(what);
  return at == report.counts.end() ? 0 : at->second;
}

namespace {

Graph parsed(std::string_view text) { return parse_graph(text, find_compiler_op); }

std::string without_names(const Graph& graph) {
  static const std::regex name(R"( @"[^"]*")");
  return std::regex_replace(to_string(graph), name, "");
}

// Sizes from 2 up, in the order in which the symbols appear.
DimBinding sizes_of_symbols(const Graph& graph) {
  std::vector<std::string> symbols;
  for (const auto& input : graph.inputs()) {
    for (const Dim d : input.value.shape()) d.collect_symbols(symbols);
  }
  DimBinding sizes;
  std::int64_t size = 2;
  for (const std::string& symbol : symbols) {
    if (!sizes.find(symbol)) sizes.set(symbol, size++);
  }
  return sizes;
}

NamedTensors seeded_inputs(const Graph& graph) {
  const DimBinding sizes = sizes_of_symbols(graph);
  NamedTensors inputs;
  std::uint64_t seed = 1;
  for (const auto* list : {&graph.inputs(), &graph.params(), &graph.states()}) {
    for (const auto& leaf : *list) {
      inputs[leaf.name] =
          random_tensor(leaf.value.dtype(), leaf.value.shape().evaluate(sizes), seed++);
    }
  }
  return inputs;
}

double largest(const Tensor& t) {
  double most = 0;
  for (const double v : doubles(t)) most = std::isfinite(v) ? std::max(most, std::fabs(v)) : most;
  return most;
}

testing::AssertionResult is_near(const std::string& name, const Tensor& found,
                                 const Tensor& expected, double tolerance) {
  if (found.dtype() != expected.dtype() || found.dims() != expected.dims())
    return testing::AssertionFailure() << "output " << name << " has another type";
  const std::vector<double> a = doubles(found);
  const std::vector<double> b = doubles(expected);
  const double allowed = tolerance * largest(expected);
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (a[i] == b[i] || (std::isnan(a[i]) && std::isnan(b[i]))) continue;
    if (std::fabs(a[i] - b[i]) <= allowed) continue;
    return testing::AssertionFailure()
           << "output " << name << "[" << i << "] is " << a[i] << ", expected " << b[i];
  }
  return testing::AssertionSuccess();
}

}  // namespace

PassRun run_pass(PassFunction pass, std::string_view text, const Target& target) {
  PassRun run{.before = parsed(text), .after = parsed(text), .changed = false, .report = {}};
  const CompileOptions options;
  std::vector<PreparedParam> prepared;
  run.changed = pass(run.after, {target, options, run.report, prepared});
  run.after.prune();
  for (const std::string& finding : verify(run.after)) ADD_FAILURE() << finding;
  return run;
}

testing::AssertionResult is_graph(const Graph& graph, std::string_view text) {
  const std::string found = without_names(graph);
  const std::string expected = without_names(parsed(text));
  if (found == expected) return testing::AssertionSuccess();
  return testing::AssertionFailure() << "found\n" << found << "expected\n" << expected;
}

testing::AssertionResult keeps_answers(const PassRun& run, double tolerance) {
  const NamedTensors inputs = seeded_inputs(run.before);
  const EvaluateOptions options{.sizes = sizes_of_symbols(run.before), .on_node = {}};
  const NamedTensors expected = evaluate_graph(run.before, inputs, options);
  const NamedTensors found = evaluate_graph(run.after, inputs, options);
  if (found.size() != expected.size())
    return testing::AssertionFailure() << "the number of outputs changed";
  for (const auto& [name, tensor] : expected) {
    if (!found.contains(name))
      return testing::AssertionFailure() << "output " << name << " is gone";
    if (auto result = is_near(name, found.at(name), tensor, tolerance); !result) return result;
  }
  return testing::AssertionSuccess();
}

testing::AssertionResult leaves_alone(PassFunction pass, std::string_view text) {
  const PassRun run = run_pass(pass, text);
  if (run.changed)
    return testing::AssertionFailure() << "reports a change: " << to_string(run.after);
  return is_graph(run.after, text);
}

bool has_op(const Graph& graph, std::string_view op) {
  return std::ranges::any_of(graph.topological_order(),
                             [&](const Node* node) { return node->op().name() == op; });
}

}  // namespace rlx
