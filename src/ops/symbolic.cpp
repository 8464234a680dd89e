#include "ops/symbolic.h"

#include <algorithm>
#include <array>

#include "base/check.h"
#include "ir/leaves.h"
#include "ir/node.h"
#include "ops/elementwise.h"
#include "ops/host_array.h"
#include "ops/indexing.h"
#include "ops/movement.h"
#include "ops/reduce.h"
#include "rlx/ops.h"

namespace rlx {
namespace {

using Elements = std::optional<std::vector<Dim>>;
using Extents = std::vector<std::int64_t>;

/// The value's extents if it is one that is looked at.
std::optional<Extents> small_extents(const TensorType& type) {
  if (!is_integer(type.dtype) && type.dtype != DType::boolean) return std::nullopt;
  std::optional<Extents> extents = type.shape.static_extents();
  if (!extents) return std::nullopt;
  std::int64_t count = 1;
  for (const std::int64_t d : *extents) {
    if (__builtin_mul_overflow(count, d, &count) || count > SymbolicValues::kMaxElements)
      return std::nullopt;
  }
  return extents;
}

/// A node with what is known of its inputs.
struct Query {
  const Node& node;
  const Extents& to;                    ///< extents of the result
  std::vector<const Elements*> inputs;  ///< null or nothing where unknown

  bool has(std::size_t i) const {
    return i < inputs.size() && inputs[i] != nullptr && inputs[i]->has_value();
  }
  const std::vector<Dim>& in(std::size_t i) const { return **inputs[i]; }
  Extents extents(std::size_t i) const { return *node.input(i).shape().static_extents(); }
};

// ---------------------------------------------------------------- leaves

Elements constant_elements(const Tensor& tensor) {
  const HostArray array(tensor);
  std::vector<Dim> elements;
  for (std::size_t i = 0; i < array.size(); ++i) elements.emplace_back(array.index(i));
  return elements;
}

// ---------------------------------------------------------------- elementwise

// 0 or 1.
Dim is_positive(Dim d) {
  if (d.lower_bound() > 0) return 1;
  if (d.upper_bound() <= 0) return 0;
  return min(max(d, 0), 1);
}
Dim is_less(Dim a, Dim b) { return is_positive(b - a); }
Dim is_different(Dim a, Dim b) {
  if (a == b) return 0;
  const Dim d = a - b;
  if (d.lower_bound() > 0 || d.upper_bound() < 0) return 1;
  return min(max(d, -d), 1);
}

using Result = std::optional<Dim>;

Result truncated_div(Dim a, Dim b) {
  if (const auto exact = exact_div(a, b); exact && b != Dim(0)) return exact;
  if (a.lower_bound() >= 0 && b.lower_bound() >= 0 && b != Dim(0)) return floor_div(a, b);
  if (a.is_constant() && b.is_constant() && *b.constant() != 0) {
    if (*b.constant() == -1) return -a;
    return Dim(*a.constant() / *b.constant());
  }
  return std::nullopt;
}
Result truncated_mod(Dim a, Dim b) {
  const Result quotient = truncated_div(a, b);
  if (!quotient) return std::nullopt;
  return a - *quotient * b;
}
Result floor_mod(Dim a, Dim b) {
  if (b == Dim(0) || b.lower_bound() < 0) return std::nullopt;
  return mod(a, b);
}

struct Unary {
  const OpDef* def;
  Result (*f)(Dim);
};
struct Binary {
  const OpDef* def;
  Result (*f)(Dim, Dim);
};

constexpr Unary kUnary[] = {
    {&neg_def, [](Dim a) -> Result { return -a; }},
    {&abs_def, [](Dim a) -> Result { return max(a, -a); }},
    {&sign_def, [](Dim a) -> Result { return is_positive(a) - is_positive(-a); }},
    {&logical_not_def, [](Dim a) -> Result { return 1 - a; }},
};
constexpr Binary kBinary[] = {
    {&add_def, [](Dim a, Dim b) -> Result { return a + b; }},
    {&sub_def, [](Dim a, Dim b) -> Result { return a - b; }},
    {&mul_def, [](Dim a, Dim b) -> Result { return a * b; }},
    {&div_def, truncated_div},
    {&remainder_def, truncated_mod},
    {&modulo_def, floor_mod},
    {&max_def, [](Dim a, Dim b) -> Result { return max(a, b); }},
    {&min_def, [](Dim a, Dim b) -> Result { return min(a, b); }},
    {&equal_def, [](Dim a, Dim b) -> Result { return 1 - is_different(a, b); }},
    {&not_equal_def, [](Dim a, Dim b) -> Result { return is_different(a, b); }},
    {&less_def, [](Dim a, Dim b) -> Result { return is_less(a, b); }},
    {&less_equal_def, [](Dim a, Dim b) -> Result { return 1 - is_less(b, a); }},
    {&greater_def, [](Dim a, Dim b) -> Result { return is_less(b, a); }},
    {&greater_equal_def, [](Dim a, Dim b) -> Result { return 1 - is_less(a, b); }},
    {&logical_and_def, [](Dim a, Dim b) -> Result { return a * b; }},
    {&logical_or_def, [](Dim a, Dim b) -> Result { return max(a, b); }},
    {&logical_xor_def, [](Dim a, Dim b) -> Result { return is_different(a, b); }},
};

/// One element of an elementwise result, from one of each operand.
Result element_of(const Node& node, const std::array<Dim, 3>& x) {
  for (const Unary& row : kUnary) {
    if (node.is(*row.def)) return row.f(x[0]);
  }
  for (const Binary& row : kBinary) {
    if (node.is(*row.def)) return row.f(x[0], x[1]);
  }
  if (node.is(select_def)) {
    if (x[1] == x[2]) return x[1];
    return x[0] * x[1] + (1 - x[0]) * x[2];
  }
  if (node.is(clamp_def)) return min(max(x[0], x[1]), x[2]);
  return std::nullopt;
}

Elements elementwise_elements(const Query& q) {
  const std::size_t arity = q.node.inputs().size();
  if (arity > 3) return std::nullopt;
  std::array<std::vector<std::int64_t>, 3> strides;
  for (std::size_t k = 0; k < arity; ++k) {
    if (!q.has(k)) return std::nullopt;
    strides[k] = broadcast_strides(q.extents(k), q.to);
  }
  std::vector<Dim> elements;
  bool decided = true;
  for_each_index(q.to, [&](std::span<const std::int64_t> at, std::int64_t) {
    if (!decided) return;
    std::array<Dim, 3> x;
    for (std::size_t k = 0; k < arity; ++k)
      x[k] = q.in(k)[static_cast<std::size_t>(offset_of(at, strides[k]))];
    const Result y = element_of(q.node, x);
    decided = y.has_value();
    if (decided) elements.push_back(*y);
  });
  if (!decided) return std::nullopt;
  return elements;
}

Elements cast_elements(const Query& q, DType to) {
  if (!q.has(0)) return std::nullopt;
  std::vector<Dim> elements = q.in(0);
  const DType from = q.node.input(0).dtype();
  if (to == DType::boolean && from != DType::boolean) {
    for (Dim& d : elements) d = is_different(d, 0);
    return elements;
  }
  return elements;
}

// ---------------------------------------------------------------- movement

/// Elements that stand in x at offsets start + at · strides.
Elements picked(const Query& q, std::int64_t start, const std::vector<std::int64_t>& strides) {
  std::vector<Dim> elements;
  for_each_index(q.to, [&](std::span<const std::int64_t> at, std::int64_t) {
    elements.push_back(q.in(0)[static_cast<std::size_t>(start + offset_of(at, strides))]);
  });
  return elements;
}

Elements transpose_elements(const Query& q, const Transpose& op) {
  const auto from = row_major_strides(q.extents(0));
  std::vector<std::int64_t> strides;
  for (const std::int64_t axis : op.permutation)
    strides.push_back(from[static_cast<std::size_t>(axis)]);
  return picked(q, 0, strides);
}

Elements slice_elements(const Query& q, const Slice& op) {
  const auto from = row_major_strides(q.extents(0));
  std::int64_t start = 0;
  std::vector<std::int64_t> strides;
  for (std::size_t axis = 0; axis < from.size(); ++axis) {
    const auto first = op.starts[axis].constant();
    if (!first) return std::nullopt;
    start += *first * from[axis];
    strides.push_back(from[axis] * (op.steps.empty() ? 1 : op.steps[axis]));
  }
  return picked(q, start, strides);
}

Elements concat_elements(const Query& q, const Concat& op) {
  const AxisView whole = fold_axis(q.to, op.axis);
  std::vector<Dim> elements(static_cast<std::size_t>(whole.outer * whole.length * whole.inner));
  std::int64_t before = 0;
  for (std::size_t k = 0; k < q.node.inputs().size(); ++k) {
    if (!q.has(k)) return std::nullopt;
    const AxisView part = fold_axis(q.extents(k), op.axis);
    for (std::int64_t o = 0; o < part.outer; ++o) {
      for (std::int64_t j = 0; j < part.length * part.inner; ++j) {
        elements[static_cast<std::size_t>(whole.at(o, before, 0) + j)] =
            q.in(k)[static_cast<std::size_t>(part.at(o, 0, 0) + j)];
      }
    }
    before += part.length;
  }
  return elements;
}

Elements iota_elements(const Query& q, const Iota& op) {
  std::vector<Dim> elements;
  for_each_index(q.to, [&](std::span<const std::int64_t> at, std::int64_t) {
    elements.emplace_back(at[static_cast<std::size_t>(op.axis)]);
  });
  return elements;
}

Elements gather_elements(const Query& q, const Gather& op) {
  if (!q.has(1)) return std::nullopt;
  const AxisView x = fold_axis(q.extents(0), op.axis);
  std::vector<std::int64_t> rows;
  for (const Dim d : q.in(1)) {
    if (!d.is_constant()) return std::nullopt;
    const std::int64_t row = *d.constant() < 0 ? *d.constant() + x.length : *d.constant();
    if (row < 0 || row >= x.length) return std::nullopt;  // a fault of the run
    rows.push_back(row);
  }
  std::vector<Dim> elements;
  for (std::int64_t o = 0; o < x.outer; ++o) {
    for (const std::int64_t row : rows) {
      for (std::int64_t i = 0; i < x.inner; ++i)
        elements.push_back(q.in(0)[static_cast<std::size_t>(x.at(o, row, i))]);
    }
  }
  return elements;
}

// ---------------------------------------------------------------- reductions

Elements reduce_elements(const Query& q, const Reduce& op) {
  const Extents from = q.extents(0);
  Extents kept = from;
  for (const std::int64_t axis : op.axes) kept[static_cast<std::size_t>(axis)] = 1;
  const auto strides = broadcast_strides(kept, from);
  std::size_t count = 1;
  for (const std::int64_t d : kept) count *= static_cast<std::size_t>(d);
  std::vector<std::optional<Dim>> totals(count);
  for_each_index(from, [&](std::span<const std::int64_t> at, std::int64_t i) {
    const Dim x = q.in(0)[static_cast<std::size_t>(i)];
    auto& total = totals[static_cast<std::size_t>(offset_of(at, strides))];
    if (!total) {
      total = x;
    } else if (op.kind == Reduction::sum) {
      total = *total + x;
    } else if (op.kind == Reduction::prod) {
      total = *total * x;
    } else {
      total = op.kind == Reduction::max ? max(*total, x) : min(*total, x);
    }
  });
  std::vector<Dim> elements;
  for (const auto& total : totals) {
    const bool has_identity = op.kind == Reduction::sum || op.kind == Reduction::prod;
    if (!total && !has_identity) return std::nullopt;
    elements.push_back(total.value_or(Dim(op.kind == Reduction::prod ? 1 : 0)));
  }
  return elements;
}

// ---------------------------------------------------------------- all of them

Elements evaluate(const Query& q) {
  const Node& node = q.node;
  if (const auto* op = node.as<Constant>()) return constant_elements(op->value);
  if (const auto* op = node.as<Size>()) return std::vector<Dim>{op->extent};
  if (node.elementwise() != nullptr) return elementwise_elements(q);
  if (const auto* op = node.as<Iota>()) return iota_elements(q, *op);
  if (const auto* op = node.as<Concat>()) return concat_elements(q, *op);
  if (!q.has(0)) return std::nullopt;
  if (const auto* op = node.as<Cast>()) return cast_elements(q, op->to);
  if (node.as<Reshape>() != nullptr) return q.in(0);
  if (node.as<Broadcast>() != nullptr) return picked(q, 0, broadcast_strides(q.extents(0), q.to));
  if (const auto* op = node.as<Transpose>()) return transpose_elements(q, *op);
  if (const auto* op = node.as<Slice>()) return slice_elements(q, *op);
  if (const auto* op = node.as<Gather>()) return gather_elements(q, *op);
  if (const auto* op = node.as<Reduce>()) return reduce_elements(q, *op);
  return std::nullopt;
}

/// Whether the dtype holds the value. Extents are taken to fit 32 bits with a sign; for what is
/// narrower, unsigned, or a constant it must be seen.
bool fits(Dim d, DType dtype) {
  if (d.complexity() > SymbolicValues::kMaxComplexity) return false;
  if (dtype == DType::boolean) return true;
  const int bits = traits(dtype).bits;
  const bool is_signed = is_signed_integer(dtype);
  if (!is_signed && d.lower_bound() < 0) return false;
  if (bits == 64 || (bits == 32 && !d.is_constant())) return true;
  const std::int64_t limit = std::int64_t{1} << (is_signed ? bits - 1 : bits);
  return d.upper_bound() < limit && (!is_signed || d.lower_bound() >= -limit);
}

/// Arithmetic that overflows has no symbolic value.
Elements evaluate_checked(const Query& q) {
  try {
    Elements elements = evaluate(q);
    const auto fits_result = [&](Dim d) { return fits(d, q.node.type().dtype); };
    if (elements && !std::ranges::all_of(*elements, fits_result)) return std::nullopt;
    return elements;
  } catch (const ShapeError&) {
    return std::nullopt;
  }
}

}  // namespace

std::optional<std::vector<Dim>> SymbolicValues::elements(Value value) {
  // Chains are as long as the graph, so the walk keeps its own stack.
  std::vector<std::pair<Value, std::size_t>> stack = {{value, 0}};
  while (!stack.empty()) {
    const Value v = stack.back().first;
    const Key key{v.node(), v.index()};
    const auto extents = v.index() == 0 ? small_extents(v.type()) : std::nullopt;
    if (!extents || is_known(v)) {
      known_.try_emplace(key, std::nullopt);
      stack.pop_back();
      continue;
    }
    const std::size_t next = stack.back().second++;
    if (next < v.node()->inputs().size()) {
      const Value input = v.node()->input(next);
      if (input && !is_known(input)) stack.emplace_back(input, 0);
      continue;
    }
    Query query{*v.node(), *extents, {}};
    for (const Value input : v.node()->inputs())
      query.inputs.push_back(input ? &known_.at({input.node(), input.index()}) : nullptr);
    Elements elements = evaluate_checked(query);
    known_.emplace(key, std::move(elements));
    stack.pop_back();
  }
  return known_.at({value.node(), value.index()});
}

std::optional<bool> SymbolicValues::decide(Value predicate) {
  const auto found = elements(predicate);
  if (!found || found->size() != 1) return std::nullopt;
  const Dim d = found->front();
  if (d.lower_bound() > 0 || d.upper_bound() < 0) return true;
  if (d == Dim(0)) return false;
  return std::nullopt;
}

std::optional<std::vector<Dim>> symbolic_value(Value value) {
  return SymbolicValues().elements(value);
}

namespace {

Tensor constant_tensor(DType dtype, const std::vector<Dim>& elements, const Extents& dims) {
  const bool is_signed = is_signed_integer(dtype);
  HostArray array(dtype, dims);
  for (std::size_t i = 0; i < elements.size(); ++i) {
    const std::int64_t value = *elements[i].constant();
    if (is_signed) {
      array.as<std::int64_t>()[i] = value;
    } else {
      array.as<std::uint64_t>()[i] = static_cast<std::uint64_t>(value);
    }
  }
  return array.to_tensor();
}

}  // namespace

Value symbolic_tensor(Graph& graph, DType dtype, const std::vector<Dim>& elements,
                      const std::vector<std::int64_t>& dims) {
  if (std::ranges::all_of(elements, [](Dim d) { return d.is_constant(); }))
    return graph.constant(constant_tensor(dtype, elements, dims));
  if (dims.empty()) return cast(graph.size(elements.front()), dtype);
  std::vector<Value> parts;
  for (std::size_t i = 0; i < elements.size();) {
    std::size_t end = i;
    while (end < elements.size() && elements[end].is_constant()) ++end;
    if (end == i) {
      parts.push_back(reshape(graph.size(elements[i++]), {1}));
      continue;
    }
    const std::vector<Dim> run(elements.begin() + static_cast<std::ptrdiff_t>(i),
                               elements.begin() + static_cast<std::ptrdiff_t>(end));
    parts.push_back(
        graph.constant(constant_tensor(i64, run, {static_cast<std::int64_t>(end - i)})));
    i = end;
  }
  const Value joined = parts.size() == 1 ? parts.front() : concat(std::move(parts), 0);
  return cast(dims.size() == 1 ? joined : reshape(joined, Shape::of(dims)), dtype);
}

}  // namespace rlx
