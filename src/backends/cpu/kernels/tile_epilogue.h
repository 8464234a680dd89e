#pragma once

#include <cstddef>

#include "backends/cpu/activation.h"

namespace rlx::cpu {

/// A block of sums on its way into the output, [rows, cols]. All rows are contiguous.
struct EpilogueBlock {
  const float* from;
  std::size_t from_ld;
  float* to;  ///< may be `from`
  std::size_t to_ld;
  const float* residual;  ///< null if there is none; may be `to`
  std::size_t residual_ld;
  std::size_t rows;
  std::size_t cols;
  float clamp_low;
  float clamp_high;
};

using EpilogueFunction = void (*)(const EpilogueBlock&);

/// The function that applies activation, clamp and residual of `epilogue` to a block, for the
/// current CPU level. alpha and bias are not its business.
EpilogueFunction epilogue_function(const Epilogue& epilogue) noexcept;

}  // namespace rlx::cpu
