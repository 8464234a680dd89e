#pragma once

#include "ir/op.h"

namespace rlx {

/// x, indices -> x.shape[:axis] ‖ indices.shape ‖ x.shape[axis+1:]
struct Gather {
  std::int64_t axis = 0;
  static constexpr auto fields() { return std::tuple{Field{"axis", &Gather::axis}}; }
};
struct GatherElements {
  std::int64_t axis = 0;
  static constexpr auto fields() { return std::tuple{Field{"axis", &GatherElements::axis}}; }
};
struct GatherNd {
  std::int64_t batch_dims = 0;
  static constexpr auto fields() { return std::tuple{Field{"batch_dims", &GatherNd::batch_dims}}; }
};
extern const OpDef gather_def, gather_elements_def, gather_nd_def;

}  // namespace rlx
