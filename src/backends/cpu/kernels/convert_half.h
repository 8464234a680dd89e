#pragma once

#include <cstddef>

#include "rlx/dtype.h"

namespace rlx::cpu {

/// Converts `count` contiguous bf16 or f16 to float32, exactly (denormals, infinities and NaN
/// included).
void convert_to_float(const void* from, DType dtype, std::size_t count, float* to) noexcept;

}  // namespace rlx::cpu
