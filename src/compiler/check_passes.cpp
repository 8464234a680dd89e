#include "compiler/check_passes.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <random>

#include "ir/node.h"
#include "ops/host_array.h"

namespace rlx {

std::string_view name(InputSet set) {
  constexpr std::string_view kNames[] = {
      "given inputs", "normal numbers", "zeros", "negative zeros", "NaN", "large numbers"};
  return kNames[static_cast<std::size_t>(set)];
}

namespace {

constexpr std::array kSets = {InputSet::given,          InputSet::normal, InputSet::zeros,
                              InputSet::negative_zeros, InputSet::nan,    InputSet::large};

double largest_of(DType dtype) { return dtype == DType::f16 ? 65504 : 3.4e38; }

// Fills by the kind of set; `next` gives N(0, 1).
template <class Next>
double float_element(InputSet set, DType dtype, std::size_t i, Next&& next) {
  switch (set) {
    case InputSet::zeros:
      return 0;
    case InputSet::negative_zeros:
      return -0.0;
    case InputSet::nan:
      return i % 7 == 3 ? NAN : next();
    case InputSet::large:
      return std::tanh(next()) * largest_of(dtype) / 100;
    default:
      return next();
  }
}

Tensor filled(const TensorType& type, const DimBinding& sizes, InputSet set, std::mt19937_64& rng) {
  HostArray x(type.dtype, type.shape.evaluate(sizes));
  if (type.dtype == DType::string) return x.to_tensor();
  std::normal_distribution<double> normal;
  const bool zeros = set == InputSet::zeros;
  visit_numbers(x, [&](auto zero) {
    using T = decltype(zero);
    auto& values = x.as<T>();
    for (std::size_t i = 0; i < values.size(); ++i) {
      if constexpr (std::is_integral_v<T>) {
        values[i] = zeros ? T(0) : T(1);
      } else {
        values[i] = float_element(set, type.dtype, i, [&] { return normal(rng); });
      }
    }
  });
  return x.to_tensor();
}

NamedTensors make_set(const Graph& graph, InputSet set, const PassCheckOptions& options) {
  std::mt19937_64 rng(7);
  NamedTensors inputs;
  for (const auto& input : graph.inputs()) {
    const auto at = options.given.find(input.name);
    const bool keeps =
        at != options.given.end() && (set == InputSet::given || !is_floating(input.value.dtype()));
    inputs[input.name] = keeps ? at->second : filled(input.value.type(), options.sizes, set, rng);
  }
  return inputs;
}

/// Compares numbers; where a pass may deviate, elements do not count.
struct Comparison {
  unsigned allowed;
  double worst = 0;
  double scale = 0;

  void add(double found, double expected) {
    if (std::isfinite(expected)) scale = std::max(scale, std::fabs(expected));
    if (std::isnan(found) && std::isnan(expected)) return;
    if (found == expected) {
      const bool same_zero = std::signbit(found) == std::signbit(expected);
      if (!same_zero && (allowed & kSignOfZero) == 0) worst = INFINITY;
      return;
    }
    if (std::isfinite(found) && std::isfinite(expected)) {
      worst = std::max(worst, std::fabs(found - expected));
    } else if (!is_allowed(found, expected)) {
      worst = INFINITY;
    }
  }

  double result() const { return scale > 0 ? worst / scale : worst; }

 private:
  bool is_allowed(double found, double expected) const {
    const bool has_nan = std::isnan(found) || std::isnan(expected);
    if (has_nan && (allowed & kNanOfMaskedKeys) != 0) return true;
    return (allowed & kOverflow) != 0;
  }
};

double difference(const HostArray& x, const HostArray& y, unsigned allowed) {
  if (x.dims() != y.dims() || x.dtype() != y.dtype()) return INFINITY;
  if (x.dtype() == DType::string) {
    return x.as<std::string>() == y.as<std::string>() ? 0 : INFINITY;
  }
  Comparison comparison{allowed};
  visit_numbers(x, [&](auto zero) {
    using T = decltype(zero);
    for (std::size_t i = 0; i < x.size(); ++i) {
      if constexpr (std::is_same_v<T, std::complex<double>>) {
        comparison.add(x.as<T>()[i].real(), y.as<T>()[i].real());
        comparison.add(x.as<T>()[i].imag(), y.as<T>()[i].imag());
      } else {
        comparison.add(static_cast<double>(x.as<T>()[i]), static_cast<double>(y.as<T>()[i]));
      }
    }
  });
  return comparison.result();
}

/// "block.3/add" of "block.3/add.2": replacements take the names of what they replace.
std::string stem_of(const std::string& node) {
  const std::size_t dot = node.rfind('.');
  if (dot == std::string::npos || dot + 1 == node.size()) return node;
  const bool numbered = std::all_of(node.begin() + static_cast<std::ptrdiff_t>(dot) + 1, node.end(),
                                    [](unsigned char c) { return std::isdigit(c) != 0; });
  return numbered ? node.substr(0, dot) : node;
}

class Checker {
 public:
  /// `prepared` may grow while passes run.
  Checker(const Graph& graph, const PassCheckOptions& options,
          const std::vector<PreparedParam>& prepared)
      : options_(options), prepared_(prepared), before_(graph.clone()) {
    for (const InputSet set : kSets) {
      NamedTensors inputs = make_set(graph, set, options);
      if (is_known(inputs)) continue;  // without floats most sets are one
      inputs_[set] = std::move(inputs);
      sets_.push_back(set);
      expected_[set] = evaluate(graph, set);
    }
  }

  PassCheck check(const Pass& pass, const Graph& after, InputSet set) const {
    PassCheck check{.pass = std::string(pass.name), .inputs = set, .output = {}, .node = {}};
    const NamedTensors found = evaluate(after, set);
    for (const auto& [output, tensor] : expected_.at(set)) {
      const double d = difference(HostArray(found.at(output)), HostArray(tensor), allowed_);
      if (d < check.difference && !check.output.empty()) continue;
      check.output = output;
      check.difference = d;
    }
    check.good = check.difference <= options_.tolerance;
    if (!check.good) check.node = first_change(after, set);
    return check;
  }

  /// In the order of the enum, those that differ.
  const std::vector<InputSet>& sets() const { return sets_; }

  void allow(unsigned deviations) { allowed_ |= deviations; }

 private:
  bool is_known(const NamedTensors& inputs) const {
    const auto same = [](const auto& a, const auto& b) {
      return std::ranges::equal(a.second.bytes(), b.second.bytes());
    };
    return std::ranges::any_of(
        inputs_, [&](const auto& known) { return std::ranges::equal(known.second, inputs, same); });
  }

  using OnNode = std::function<void(const Node&, std::span<const HostArray>)>;

  NamedTensors evaluate(const Graph& graph, InputSet set, OnNode on_node = {}) const {
    NamedTensors inputs = inputs_.at(set);
    for (const PreparedParam& p : prepared_) {
      NamedTensors sources;
      for (const std::string& source : p.sources()) sources[source] = *before_.data_of(source);
      inputs[p.name] = evaluate_graph(p.graph, sources).begin()->second;
    }
    return evaluate_graph(graph, inputs, {.sizes = options_.sizes, .on_node = std::move(on_node)});
  }

  // The first node of the new graph that carries the name of an old one of its type, and another
  // value.
  std::string first_change(const Graph& after, InputSet set) const {
    std::map<std::string, HostArray> values;
    const auto keep = [&](const Node& node, std::span<const HostArray> results) {
      values.insert_or_assign(node.name(), results[0]);
    };
    (void)evaluate(before_, set, keep);
    std::string changed;
    const auto compare = [&](const Node& node, std::span<const HostArray> results) {
      if (node.inputs().empty()) return;
      auto old = values.find(node.name());
      if (old == values.end()) old = values.find(stem_of(node.name()));
      if (old == values.end() || !changed.empty()) return;
      if (old->second.dims() != results[0].dims() || old->second.dtype() != results[0].dtype())
        return;
      if (results[0].dtype() == DType::string) return;
      if (difference(results[0], old->second, allowed_) > options_.tolerance) changed = node.name();
    };
    (void)evaluate(after, set, compare);
    return changed;
  }

  const PassCheckOptions& options_;
  const std::vector<PreparedParam>& prepared_;
  Graph before_;
  std::vector<InputSet> sets_;
  std::map<InputSet, NamedTensors> inputs_, expected_;
  unsigned allowed_ = 0;
};

}  // namespace

std::optional<PassCheck> check_passes(Graph graph, const PassContext& context,
                                      const PassCheckOptions& options,
                                      const std::function<void(const PassCheck&)>& each,
                                      std::span<const Pass> passes) {
  Checker checker(graph, options, context.prepared);
  std::string last = to_string(graph);
  std::optional<PassCheck> bad;
  const auto after = [&](const Pass& pass, const Graph& result) {
    checker.allow(pass.deviations);
    if (bad) return;
    std::string text = to_string(result);
    if (text == last) return;
    last = std::move(text);
    for (const InputSet set : checker.sets()) {
      const PassCheck check = checker.check(pass, result, set);
      if (each) each(check);
      if (!check.good) bad = check;
      if (bad) return;
    }
  };
  run_passes(graph, context, after, passes);
  return bad;
}

}  // namespace rlx
