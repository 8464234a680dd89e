#pragma once

#include "ir/op.h"

namespace rlx {

/// Contraction with the semantics of StableHLO's dot_general: result axes are batch, free axes of
/// a, free axes of b. Sums in f64 for f64, in f32 for smaller floats, in i32 for 8-bit integers
/// (result i32), else in the dtype itself.
struct DotGeneral {
  std::vector<std::int64_t> a_batch, b_batch, a_contracting, b_contracting;
  DType result = DType::f32;
  static constexpr auto fields() {
    return std::tuple{
        Field{"a_batch", &DotGeneral::a_batch}, Field{"b_batch", &DotGeneral::b_batch},
        Field{"a_contracting", &DotGeneral::a_contracting},
        Field{"b_contracting", &DotGeneral::b_contracting}, Field{"result", &DotGeneral::result}};
  }
};
extern const OpDef dot_general_def;

}  // namespace rlx
