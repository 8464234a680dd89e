#pragma once

#include "ir/op.h"

namespace rlx {

/// Statistics over the axes from `axis` on; scale and bias have the extents of those axes.
struct LayerNorm {
  std::int64_t axis = 0;
  double epsilon = 1e-5;
  static constexpr auto fields() {
    return std::tuple{Field{"axis", &LayerNorm::axis}, Field{"epsilon", &LayerNorm::epsilon}};
  }
};
struct RmsNorm {
  std::int64_t axis = 0;
  double epsilon = 1e-5;
  static constexpr auto fields() {
    return std::tuple{Field{"axis", &RmsNorm::axis}, Field{"epsilon", &RmsNorm::epsilon}};
  }
};
/// x [n, c, spatial…]; scale, bias [c]; statistics over each of `groups` runs of channels.
struct GroupNorm {
  std::int64_t groups = 1;
  double epsilon = 1e-5;
  static constexpr auto fields() {
    return std::tuple{Field{"groups", &GroupNorm::groups}, Field{"epsilon", &GroupNorm::epsilon}};
  }
};
/// Inference form: scale, bias, mean and variance have the extent of `axis`.
struct BatchNorm {
  std::int64_t axis = 1;
  double epsilon = 1e-5;
  static constexpr auto fields() {
    return std::tuple{Field{"axis", &BatchNorm::axis}, Field{"epsilon", &BatchNorm::epsilon}};
  }
};
extern const OpDef layer_norm_def, rms_norm_def, group_norm_def, batch_norm_def;

}  // namespace rlx
