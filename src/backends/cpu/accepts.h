#pragma once

#include <fmt/format.h>

#include "backends/cpu/kernel.h"

namespace rlx::cpu {

/// Yes for the floating dtypes that vector kernels compute: f32, f64, and f16 and bf16 in f32.
inline Match computes_float(DType dtype) {
  if (dtype == f32 || dtype == f64 || dtype == f16 || dtype == bf16) return {};
  return Match::no(fmt::format("{} is neither f32, f64, f16 nor bf16", name(dtype)));
}

}  // namespace rlx::cpu
