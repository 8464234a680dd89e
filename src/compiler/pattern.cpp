#include "compiler/pattern.h"

#include <cmath>

#include "ir/leaves.h"
#include "ops/elementwise.h"
#include "ops/host_array.h"

namespace rlx {

Pattern Pattern::any(std::string name) {
  Pattern p;
  p.data_ = std::make_shared<Data>(
      Data{.kind = Kind::any, .name = std::move(name), .inputs = {}, .accept = {}});
  return p;
}

Pattern Pattern::scalar(double value) {
  Pattern p;
  p.data_ = std::make_shared<Data>(
      Data{.kind = Kind::scalar, .name = {}, .value = value, .inputs = {}, .accept = {}});
  return p;
}

Pattern Pattern::number(std::string name) {
  Pattern p;
  p.data_ = std::make_shared<Data>(
      Data{.kind = Kind::number, .name = std::move(name), .inputs = {}, .accept = {}});
  return p;
}

Pattern Pattern::op(const OpDef& def, std::vector<Pattern> inputs) {
  Pattern p;
  p.data_ = std::make_shared<Data>(
      Data{.kind = Kind::op, .name = {}, .def = &def, .inputs = std::move(inputs), .accept = {}});
  return p;
}

Pattern Pattern::either(std::vector<Pattern> choices) {
  Pattern p;
  p.data_ = std::make_shared<Data>(
      Data{.kind = Kind::either, .name = {}, .inputs = std::move(choices), .accept = {}});
  return p;
}

Pattern Pattern::named(std::string name) const {
  Pattern p;
  auto copy = std::make_shared<Data>(*data_);
  copy->name = std::move(name);
  p.data_ = std::move(copy);
  return p;
}

Pattern Pattern::where(std::function<bool(const Node&)> accept) const {
  Pattern p;
  auto copy = std::make_shared<Data>(*data_);
  copy->accept = std::move(accept);
  p.data_ = std::move(copy);
  return p;
}

bool Pattern::matches(Value value, Captures& captures) const {
  return match(value, captures, [](Captures&) { return true; });
}

namespace {

bool is_near(double found, double wanted, DType dtype) {
  const double tolerance = dtype == DType::f16 ? 1e-3 : dtype == DType::bf16 ? 8e-3 : 1e-6;
  return std::fabs(found - wanted) <= tolerance * std::fabs(wanted);
}

}  // namespace

// Continues with `rest` once this value fits, and takes its own binding back where `rest` fails.
bool Pattern::match(Value value, Captures& captures, const Rest& rest) const {
  if (!value) return false;
  if (data_->kind == Kind::either) {
    for (const Pattern& choice : data_->inputs) {
      if (choice.match(value, captures, rest)) return true;
    }
    return false;
  }
  if (data_->kind == Kind::scalar) {
    const auto found = scalar_of(value);
    return found && is_near(*found, data_->value, value.dtype()) && rest(captures);
  }
  if (data_->kind == Kind::number && !scalar_of(value)) return false;
  bool is_new = false;
  if (!data_->name.empty()) {
    const auto [at, inserted] = captures.try_emplace(data_->name, value);
    if (!inserted && at->second != value) return false;
    is_new = inserted;
  }
  const bool found = data_->kind == Kind::op ? match_op(value, captures, rest) : rest(captures);
  if (!found && is_new) captures.erase(data_->name);
  return found;
}

bool Pattern::match_op(Value value, Captures& captures, const Rest& rest) const {
  const Node& node = *value.node();
  if (!node.is(*data_->def) || node.inputs().size() != data_->inputs.size()) return false;
  if (data_->accept && !data_->accept(node)) return false;
  if (match_inputs(node.inputs(), 0, captures, rest)) return true;
  const bool commutes = node.elementwise() != nullptr && node.elementwise()->commutative;
  return commutes && match_inputs({node.input(1), node.input(0)}, 0, captures, rest);
}

bool Pattern::match_inputs(const std::vector<Value>& values, std::size_t i, Captures& captures,
                           const Rest& rest) const {
  if (i == values.size()) return rest(captures);
  return data_->inputs[i].match(values[i], captures,
                                [&](Captures& c) { return match_inputs(values, i + 1, c, rest); });
}

std::optional<double> scalar_of(Value value) {
  const Tensor* constant = constant_of(value);
  if (constant == nullptr || constant->size() != 1) return std::nullopt;
  const DTypeKind kind = traits(constant->dtype()).kind;
  if (kind == DTypeKind::string || kind == DTypeKind::complex || kind == DTypeKind::block)
    return std::nullopt;
  return HostArray(*constant).real(0);
}

}  // namespace rlx
