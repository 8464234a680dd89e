#pragma once

#include "ir/op.h"

namespace rlx {

struct Softmax {
  std::int64_t axis = 0;
  static constexpr auto fields() { return std::tuple{Field{"axis", &Softmax::axis}}; }
};
struct LogSoftmax {
  std::int64_t axis = 0;
  static constexpr auto fields() { return std::tuple{Field{"axis", &LogSoftmax::axis}}; }
};
extern const OpDef softmax_def, log_softmax_def;

}  // namespace rlx
