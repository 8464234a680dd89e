#pragma once

#include <array>

#include "ir/op.h"
#include "rlx/ops.h"

namespace rlx {

inline namespace v0 {
constexpr auto enum_names(AttentionLayout) {
  return std::array<std::string_view, 2>{"bhsd", "bshd"};
}
}  // namespace v0

/// See `attention` in rlx/ops.h for inputs and outputs.
struct Attention {
  double scale = 1;
  double softcap = 0;
  bool causal = false;
  std::int64_t window = -1;
  AttentionLayout layout = AttentionLayout::bhsd;
  static constexpr auto fields() {
    return std::tuple{Field{"scale", &Attention::scale}, Field{"softcap", &Attention::softcap},
                      Field{"causal", &Attention::causal}, Field{"window", &Attention::window},
                      Field{"layout", &Attention::layout}};
  }
};
extern const OpDef attention_def;

}  // namespace rlx
