#pragma once

#include <array>

#include "ir/op.h"
#include "rlx/ops.h"

namespace rlx {

inline namespace v0 {
constexpr auto enum_names(Pooling) { return std::array<std::string_view, 2>{"max", "average"}; }
}  // namespace v0

/// x [n, c, spatial…], w [co, c / groups, kernel…], bias? [co]. All lists have one entry a spatial
/// axis.
struct Conv {
  std::vector<std::int64_t> strides, padding_low, padding_high, dilations;
  std::int64_t groups = 1;
  static constexpr auto fields() {
    return std::tuple{Field{"strides", &Conv::strides}, Field{"padding_low", &Conv::padding_low},
                      Field{"padding_high", &Conv::padding_high},
                      Field{"dilations", &Conv::dilations}, Field{"groups", &Conv::groups}};
  }
};
struct Pool {
  Pooling kind = Pooling::max;
  std::vector<std::int64_t> kernel, strides, padding_low, padding_high, dilations;
  bool ceil_mode = false;
  bool count_include_pad = false;
  static constexpr auto fields() {
    return std::tuple{Field{"kind", &Pool::kind},
                      Field{"kernel", &Pool::kernel},
                      Field{"strides", &Pool::strides},
                      Field{"padding_low", &Pool::padding_low},
                      Field{"padding_high", &Pool::padding_high},
                      Field{"dilations", &Pool::dilations},
                      Field{"ceil_mode", &Pool::ceil_mode},
                      Field{"count_include_pad", &Pool::count_include_pad}};
  }
};
extern const OpDef conv_def, pool_def;

}  // namespace rlx
