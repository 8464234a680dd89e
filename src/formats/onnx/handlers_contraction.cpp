#include <fmt/format.h>

#include <algorithm>

#include "formats/dense.h"
#include "formats/onnx/handlers.h"
#include "rlx/error.h"
#include "rlx/ops.h"

namespace rlx::onnx {
namespace {

using Values = std::vector<Value>;
using Axes = std::vector<std::int64_t>;

Values matmul_of(const Site& site) { return {matmul(site.input(0), site.input(1))}; }

Value scaled(Value x, double factor) { return factor == 1 ? x : x * factor; }

// alpha A' B' + beta C
Values gemm(const Site& site) {
  Value a = site.input(0);
  Value b = site.input(1);
  if (a.rank() != 2 || b.rank() != 2) {
    throw ShapeError(fmt::format("A is {} and B {}, expected rank 2", to_string(a.shape()),
                                 to_string(b.shape())));
  }
  if (site.flag("transA")) a = transpose(a, {1, 0});
  if (site.flag("transB")) b = transpose(b, {1, 0});
  const Value product = scaled(matmul(a, b), site.real("alpha", 1));
  const Value c = site.optional_input(2);
  return {c ? product + scaled(c, site.real("beta", 1)) : product};
}

// ---------------------------------------------------------------- einsum

/// "ij,jk->ik" of one or two operands; labels are letters, each once an operand.
struct Equation {
  std::vector<std::string> inputs;
  std::string output;
};

Equation parse_equation(const Site& site) {
  std::string text(site.text("equation", ""));
  std::erase(text, ' ');
  const auto arrow = text.find("->");
  Equation eq;
  const std::string left = text.substr(0, arrow);
  for (std::size_t from = 0; from <= left.size();) {
    const std::size_t comma = std::min(left.find(',', from), left.size());
    eq.inputs.push_back(left.substr(from, comma - from));
    from = comma + 1;
  }
  for (const std::string& labels : eq.inputs) {
    for (const char label : labels) {
      const bool is_letter = (label >= 'a' && label <= 'z') || (label >= 'A' && label <= 'Z');
      if (!is_letter || std::count(labels.begin(), labels.end(), label) != 1)
        throw Unsupported(fmt::format("the equation {}", in_quotes(text)));
    }
  }
  if (arrow != std::string::npos) {
    eq.output = text.substr(arrow + 2);
    return eq;
  }
  // Without a result: the labels that stand once, by alphabet.
  for (const char label : left) {
    if (label != ',' && std::count(left.begin(), left.end(), label) == 1) eq.output += label;
  }
  std::sort(eq.output.begin(), eq.output.end());
  return eq;
}

bool has(const std::string& labels, char label) { return labels.find(label) != std::string::npos; }
std::int64_t axis_of(const std::string& labels, char label) {
  return static_cast<std::int64_t>(labels.find(label));
}

/// Sums over the axes whose labels nobody else has.
Value without_lonely(Value x, std::string& labels, const std::string& others) {
  Axes lonely;
  for (const char label : labels) {
    if (!has(others, label)) lonely.push_back(axis_of(labels, label));
  }
  std::erase_if(labels, [&](char label) { return !has(others, label); });
  return lonely.empty() ? x : sum(x, lonely);
}

Value arranged(Value x, const std::string& labels, const std::string& output) {
  Axes permutation;
  for (const char label : output) {
    if (!has(labels, label))
      throw InvalidArgument(fmt::format("no operand has the label '{}' of the result", label));
    permutation.push_back(axis_of(labels, label));
  }
  const bool stays = std::is_sorted(permutation.begin(), permutation.end());
  return stays ? x : transpose(x, std::move(permutation));
}

Values einsum(const Site& site) {
  Equation eq = parse_equation(site);
  Values x = site.inputs();
  if (x.size() != eq.inputs.size() || x.empty() || x.size() > 2) {
    throw Unsupported(fmt::format("{} operands for an equation of {}", x.size(), eq.inputs.size()));
  }
  for (std::size_t i = 0; i < x.size(); ++i) {
    if (x[i].rank() != eq.inputs[i].size()) {
      throw ShapeError(fmt::format("operand {} is {}, its labels are '{}'", i,
                                   to_string(x[i].shape()), eq.inputs[i]));
    }
    const std::string other = x.size() == 2 ? eq.inputs[1 - i] : "";
    x[i] = without_lonely(x[i], eq.inputs[i], eq.output + other);
  }
  if (x.size() == 1) return {arranged(x[0], eq.inputs[0], eq.output)};
  const auto& [a, b] = std::tie(eq.inputs[0], eq.inputs[1]);
  Axes batch[2];
  Axes contracted[2];
  std::string labels;
  for (const char label : a) {
    if (!has(b, label)) continue;
    auto& lists = has(eq.output, label) ? batch : contracted;
    lists[0].push_back(axis_of(a, label));
    lists[1].push_back(axis_of(b, label));
    if (has(eq.output, label)) labels += label;
  }
  for (const char label : a) labels += has(b, label) ? "" : std::string(1, label);
  for (const char label : b) labels += has(a, label) ? "" : std::string(1, label);
  const Value y = dot_general(x[0], x[1], batch[0], batch[1], contracted[0], contracted[1]);
  return {arranged(y, labels, eq.output)};
}

constexpr HandlerRow kRows[] = {
    {"Einsum", einsum},
    {"Gemm", gemm},
    {"MatMul", matmul_of},
};

}  // namespace

std::span<const HandlerRow> contraction_handlers() { return kRows; }

}  // namespace rlx::onnx
