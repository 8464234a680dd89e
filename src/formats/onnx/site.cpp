#include <fmt/format.h>

#include <algorithm>

#include "formats/dense.h"
#include "formats/onnx/importer.h"
#include "rlx/error.h"

namespace rlx::onnx {

using Type = AttributeProto::Type;

Value Site::input(std::size_t i) const {
  if (!has(i)) throw FormatError(fmt::format("input {} is not given", i), node.offset);
  return importer.find(scope, node.inputs[i], node.offset);
}

Value Site::optional_input(std::size_t i) const { return has(i) ? input(i) : Value(); }

std::vector<Value> Site::inputs() const {
  std::vector<Value> values;
  for (std::size_t i = 0; i < input_count(); ++i) values.push_back(input(i));
  return values;
}

const AttributeProto* Site::find_attribute(std::string_view name) const {
  const auto at = std::find_if(node.attributes.begin(), node.attributes.end(),
                               [&](const AttributeProto& a) { return a.name == name; });
  if (at == node.attributes.end()) return nullptr;
  if (at->ref_attr_name.empty()) return &*at;
  const auto given = scope.call.attributes.find(at->ref_attr_name);
  return given == scope.call.attributes.end() ? nullptr : given->second;
}

const AttributeProto* Site::find_attribute(std::string_view name, Type type) const {
  const AttributeProto* a = find_attribute(name);
  if (a == nullptr || a->type == type) return a;
  throw FormatError(fmt::format("attribute {} has type {}, expected {}", in_quotes(name),
                                static_cast<int>(a->type), static_cast<int>(type)),
                    a->offset);
}

void Site::bad_attribute(std::string_view name, std::string_view expected) const {
  const AttributeProto* a = find_attribute(name);
  throw FormatError(fmt::format("attribute {} is not {}", in_quotes(name), expected),
                    a == nullptr ? node.offset : a->offset);
}

std::int64_t Site::integer(std::string_view name, std::int64_t otherwise) const {
  const AttributeProto* a = find_attribute(name, Type::integer);
  return a == nullptr ? otherwise : a->integer;
}

std::int64_t Site::required_integer(std::string_view name) const {
  const AttributeProto* a = find_attribute(name, Type::integer);
  if (a == nullptr) bad_attribute(name, "given");
  return a->integer;
}

double Site::real(std::string_view name, double otherwise) const {
  const AttributeProto* a = find_attribute(name, Type::real);
  return a == nullptr ? otherwise : static_cast<double>(a->real);
}

std::string_view Site::text(std::string_view name, std::string_view otherwise) const {
  const AttributeProto* a = find_attribute(name, Type::text);
  return a == nullptr ? otherwise : a->text;
}

std::vector<std::int64_t> Site::integers(std::string_view name) const {
  const AttributeProto* a = find_attribute(name, Type::integers);
  return a == nullptr ? std::vector<std::int64_t>() : a->integers;
}

std::vector<double> Site::reals(std::string_view name) const {
  const AttributeProto* a = find_attribute(name, Type::reals);
  return a == nullptr ? std::vector<double>()
                      : std::vector<double>(a->reals.begin(), a->reals.end());
}

std::vector<std::string_view> Site::texts(std::string_view name) const {
  const AttributeProto* a = find_attribute(name, Type::texts);
  return a == nullptr ? std::vector<std::string_view>() : a->texts;
}

const TensorProto* Site::tensor(std::string_view name) const {
  const AttributeProto* a = find_attribute(name, Type::tensor);
  if (a == nullptr) return nullptr;
  if (a->tensors.size() != 1) bad_attribute(name, "one tensor");
  return &a->tensors.front();
}

const GraphProto& Site::graph_attribute(std::string_view name) const {
  const AttributeProto* a = find_attribute(name, Type::graph);
  if (a == nullptr || a->graphs.size() != 1) bad_attribute(name, "one graph");
  return a->graphs.front();
}

std::optional<std::vector<Dim>> Site::known_extents(Value value) const {
  return frame().symbolic.elements(value);
}

std::vector<Dim> Site::extents(std::size_t i, std::string_view what) const {
  auto found = known_extents(input(i));
  if (!found) throw Unsupported(fmt::format("{} depend on data", what));
  return std::move(*found);
}

std::vector<std::int64_t> Site::numbers(std::size_t i, std::string_view what) const {
  std::vector<std::int64_t> numbers;
  for (const Dim d : extents(i, what)) {
    if (!d.is_constant())
      throw Unsupported(fmt::format("{} depend on extents: {}", what, d.to_string()));
    numbers.push_back(*d.constant());
  }
  return numbers;
}

std::int64_t Site::number(std::size_t i, std::string_view what) const {
  const std::vector<std::int64_t> all = numbers(i, what);
  if (all.size() != 1) {
    throw ShapeError(
        fmt::format("input {} ({}) has {} elements, expected one", i, what, all.size()));
  }
  return all.front();
}

std::optional<std::vector<std::int64_t>> Site::numbers_from(std::string_view name, std::size_t i,
                                                            std::int64_t last_attribute) const {
  if (opset > last_attribute) {
    if (!has(i)) return std::nullopt;
    return numbers(i, name);
  }
  if (!has_attribute(name)) return std::nullopt;
  return integers(name);
}

}  // namespace rlx::onnx
