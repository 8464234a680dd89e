#pragma once

#include <array>

#include "ir/op.h"
#include "rlx/ops.h"

namespace rlx {

inline namespace v0 {
constexpr auto enum_names(RecurrentDirection) {
  return std::array<std::string_view, 3>{"forward", "reverse", "bidirectional"};
}
}  // namespace v0

/// x, w, r, bias?, lengths?, h0?, c0? -> y, h, c. See `lstm` in rlx/ops.h.
struct Lstm {
  RecurrentDirection direction = RecurrentDirection::forward;
  static constexpr auto fields() { return std::tuple{Field{"direction", &Lstm::direction}}; }
};
/// x, w, r, bias?, lengths?, h0? -> y, h
struct Gru {
  RecurrentDirection direction = RecurrentDirection::forward;
  bool reset_after = true;
  static constexpr auto fields() {
    return std::tuple{Field{"direction", &Gru::direction}, Field{"reset_after", &Gru::reset_after}};
  }
};
struct Rnn {
  RecurrentDirection direction = RecurrentDirection::forward;
  bool relu = false;
  static constexpr auto fields() {
    return std::tuple{Field{"direction", &Rnn::direction}, Field{"relu", &Rnn::relu}};
  }
};
extern const OpDef lstm_def, gru_def, rnn_def;

}  // namespace rlx
