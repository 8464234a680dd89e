#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>

namespace rlx::cpu {

/// Activations that kernels can apply to a result while it is in cache. NaN propagates through all.
enum class Activation : std::uint8_t {
  kNone,
  kRelu,
  kGeluErf,   ///< x/2·(1 + erf(x/√2))
  kGeluTanh,  ///< x/2·(1 + tanh(√(2/π)·(x + 0.044715·x³)))
  kSilu,      ///< x·sigmoid(x)
  kSigmoid,
  kTanh,
};

/// What happens to `alpha·sum + bias` on its way into the output, in this order: activation, clamp,
/// residual; or, with `activation_after_residual`, residual, activation, clamp.
struct Epilogue {
  float alpha = 1;
  const float* bias = nullptr;      ///< [N], or null
  const float* residual = nullptr;  ///< [M,N], rows `residual_ld` apart, or null; may be the output
  std::size_t residual_ld = 0;
  Activation activation = Activation::kNone;
  bool activation_after_residual = false;
  float clamp_low = -std::numeric_limits<float>::infinity();
  float clamp_high = std::numeric_limits<float>::infinity();
};

/// Whether there is more to do than `alpha·sum + bias`.
inline bool needs_second_pass(const Epilogue& e) noexcept {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  return e.residual != nullptr || e.activation != Activation::kNone || e.clamp_low != -kInfinity ||
         e.clamp_high != kInfinity;
}

}  // namespace rlx::cpu
