#pragma once

#include <string>
#include <tuple>

#include "ir/op.h"

namespace rlx {

struct Input {
  std::string name;
  TensorType type;
  static constexpr auto fields() {
    return std::tuple{Field{"name", &Input::name}, Field{"type", &Input::type}};
  }
};
struct Param {
  std::string name;
  TensorType type;
  static constexpr auto fields() {
    return std::tuple{Field{"name", &Param::name}, Field{"type", &Param::type}};
  }
};
struct State {
  std::string name;
  TensorType type;
  static constexpr auto fields() {
    return std::tuple{Field{"name", &State::name}, Field{"type", &State::type}};
  }
};
struct Constant {
  Tensor value;
  static constexpr auto fields() { return std::tuple{Field{"value", &Constant::value}}; }
};
/// An extent as an i64 scalar.
struct Size {
  Dim extent;
  static constexpr auto fields() { return std::tuple{Field{"extent", &Size::extent}}; }
};

extern const OpDef input_def, param_def, state_def, constant_def, size_def;

/// The tensor behind a constant node's output, else null.
const Tensor* constant_of(Value value);

}  // namespace rlx
