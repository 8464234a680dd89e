#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "ir/node.h"

namespace rlx {

/// Values that a pattern bound, by name.
using Captures = std::map<std::string, Value, std::less<>>;

/// A shape of expression to look for. Commutative operators match in both orders; the same capture
/// name must bind the same value everywhere.
class Pattern {
 public:
  /// Any value.
  static Pattern any(std::string name);
  /// A constant of one element, within 1e-6 of `value` (relative; f16 and bf16 constants within
  /// their rounding).
  static Pattern scalar(double value);
  /// Any constant of one element.
  static Pattern number(std::string name);
  static Pattern op(const OpDef& def, std::vector<Pattern> inputs);
  /// One of several spellings.
  static Pattern either(std::vector<Pattern> choices);

  /// The same pattern that also binds what it matched.
  Pattern named(std::string name) const;
  /// The same pattern for nodes of which `accept` holds.
  Pattern where(std::function<bool(const Node&)> accept) const;

  /// Whether `value` has this shape; `captures` holds what it bound.
  bool matches(Value value, Captures& captures) const;

 private:
  enum class Kind : std::uint8_t { any, scalar, number, op, either };
  struct Data {
    Kind kind = Kind::any;
    std::string name;
    double value = 0;
    const OpDef* def = nullptr;
    std::vector<Pattern> inputs;
    std::function<bool(const Node&)> accept;
  };
  using Rest = std::function<bool(Captures&)>;

  bool match(Value value, Captures& captures, const Rest& rest) const;
  bool match_inputs(const std::vector<Value>& values, std::size_t i, Captures& captures,
                    const Rest& rest) const;
  bool match_op(Value value, Captures& captures, const Rest& rest) const;

  std::shared_ptr<const Data> data_;
};

/// The number in a constant of one element.
std::optional<double> scalar_of(Value value);

}  // namespace rlx
