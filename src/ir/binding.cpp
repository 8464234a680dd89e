#include "ir/binding.h"

#include <fmt/format.h>

#include "rlx/error.h"

namespace rlx {
namespace {

// Symbols that stand alone in an extent get their size from it.
void bind_symbols(const std::string& input, const Shape& shape, const Tensor::Dims& dims,
                  DimBinding& sizes, std::map<std::string, std::string>& origin) {
  if (shape.rank() != dims.size()) {
    throw ShapeError(fmt::format("input {} is {} of rank {}, expected rank {} as in {}", input,
                                 to_string(dims), dims.size(), shape.rank(), to_string(shape)));
  }
  for (std::size_t axis = 0; axis < dims.size(); ++axis) {
    if (!shape[axis].is_symbol()) continue;
    const std::string symbol(shape[axis].symbol_name());
    const std::string place = fmt::format("axis {} of input {}", axis, input);
    const auto known = sizes.find(symbol);
    if (known && *known != dims[axis]) {
      throw ShapeError(fmt::format("dimension {} is {} ({}) and {} ({})", symbol, *known,
                                   origin[symbol], dims[axis], place));
    }
    if (known) continue;
    sizes.set(symbol, dims[axis]);
    origin[symbol] = place;
  }
}

void check_extents(const std::string& input, const Shape& shape, const Tensor::Dims& dims,
                   const DimBinding& sizes) {
  for (std::size_t axis = 0; axis < dims.size(); ++axis) {
    const std::int64_t expected = shape[axis].evaluate(sizes);
    if (expected == dims[axis]) continue;
    throw ShapeError(fmt::format(
        "axis {} of input {} is {}, expected {}{}", axis, input, dims[axis], expected,
        shape[axis].is_constant() ? "" : fmt::format(" = {}", shape[axis].to_string())));
  }
}

// "2*n = 8"; a constant stands alone.
std::string with_value(Dim d, const DimBinding& sizes) {
  if (d.is_constant()) return d.to_string();
  return fmt::format("{} = {}", d.to_string(), d.evaluate(sizes));
}

}  // namespace

DimBinding bind_sizes(const Graph& graph, const std::map<std::string, Tensor::Dims>& dims,
                      const DimBinding& preset) {
  for (const auto& [name, extents] : dims) {
    const auto is_it = [&, &name = name](const Graph::Named& input) { return input.name == name; };
    if (std::any_of(graph.inputs().begin(), graph.inputs().end(), is_it)) continue;
    std::string known;
    for (const auto& input : graph.inputs()) known += (known.empty() ? "" : ", ") + input.name;
    throw InvalidArgument(fmt::format("there is no input {}; the inputs are {}", name, known));
  }
  DimBinding sizes = preset;
  std::map<std::string, std::string> origin;
  for (const auto& [symbol, size] : preset.entries()) origin[symbol] = "given";
  for (const auto& input : graph.inputs()) {
    const auto at = dims.find(input.name);
    if (at == dims.end())
      throw InvalidArgument(
          fmt::format("input {} {} is missing", input.name, to_string(input.value.type())));
    bind_symbols(input.name, input.value.shape(), at->second, sizes, origin);
  }
  for (const auto& input : graph.inputs())
    check_extents(input.name, input.value.shape(), dims.at(input.name), sizes);
  check_constraints(graph, sizes);
  return sizes;
}

void check_constraints(const Graph& graph, const DimBinding& sizes) {
  for (const DimConstraint& c : graph.constraints()) {
    if (c.holds(sizes)) continue;
    const std::string left = with_value(c.left, sizes);
    const std::string right = with_value(c.right, sizes);
    throw ShapeError(c.relation == DimConstraint::Relation::equal
                         ? fmt::format("{}: {}: {} and {} differ", c.node, c.what, left, right)
                         : fmt::format("{}: {}: {} is more than {}", c.node, c.what, left, right));
  }
}

}  // namespace rlx
