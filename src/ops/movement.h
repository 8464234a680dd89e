#pragma once

#include <array>

#include "ir/op.h"
#include "rlx/ops.h"

namespace rlx {

inline namespace v0 {
constexpr auto enum_names(PadMode) {
  return std::array<std::string_view, 4>{"constant", "reflect", "edge", "wrap"};
}
}  // namespace v0

/// The same elements in row-major order under other extents of the same product.
struct Reshape {
  Shape to;
  static constexpr auto fields() { return std::tuple{Field{"to", &Reshape::to}}; }
};
/// Axis i of the result is axis permutation[i] of x.
struct Transpose {
  std::vector<std::int64_t> permutation;
  static constexpr auto fields() {
    return std::tuple{Field{"permutation", &Transpose::permutation}};
  }
};
/// Repeats axes of extent 1, aligned at the trailing axes.
struct Broadcast {
  Shape to;
  static constexpr auto fields() { return std::tuple{Field{"to", &Broadcast::to}}; }
};
/// y[i] = x[starts + i steps]; one entry an axis.
struct Slice {
  std::vector<Dim> starts, sizes;
  std::vector<std::int64_t> steps;
  static constexpr auto fields() {
    return std::tuple{Field{"starts", &Slice::starts}, Field{"sizes", &Slice::sizes},
                      Field{"steps", &Slice::steps}};
  }
};
/// low and high are >= 0, one an axis. reflect leaves the edge out and needs low, high < extent;
/// wrap <= extent.
struct Pad {
  std::vector<Dim> low, high;
  PadMode mode = PadMode::constant;
  static constexpr auto fields() {
    return std::tuple{Field{"low", &Pad::low}, Field{"high", &Pad::high},
                      Field{"mode", &Pad::mode}};
  }
};
struct Concat {
  std::int64_t axis = 0;
  static constexpr auto fields() { return std::tuple{Field{"axis", &Concat::axis}}; }
};
struct Iota {
  TensorType type;
  std::int64_t axis = 0;
  static constexpr auto fields() {
    return std::tuple{Field{"type", &Iota::type}, Field{"axis", &Iota::axis}};
  }
};

extern const OpDef reshape_def, transpose_def, broadcast_def, slice_def, pad_def, concat_def,
    iota_def;

}  // namespace rlx
