#include "backends/cpu/kernels/tile_epilogue.h"

#include <cstring>
#include <utility>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/kernels/tile_epilogue.cpp"
#include <hwy/foreach_target.h>
// After foreach_target.h, which includes this file again for each instruction set.
#include <hwy/highway.h>

#include "backends/cpu/kernels/vector_math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace rlx::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

template <Activation kActivation, class D, class V>
HWY_INLINE V activate(D d, V x) {
  if constexpr (kActivation == Activation::kRelu) return at_least(d, 0.0F, x);
  if constexpr (kActivation == Activation::kGeluErf) return gelu_erf(d, x);
  if constexpr (kActivation == Activation::kGeluTanh) return gelu_tanh(d, x);
  if constexpr (kActivation == Activation::kSilu) return silu(d, x);
  if constexpr (kActivation == Activation::kSigmoid) return sigmoid(d, x);
  if constexpr (kActivation == Activation::kTanh) return tanh(d, x);
  if constexpr (kActivation == Activation::kNone) return x;
}

template <Activation kActivation, bool kResidualFirst, class D, class V>
HWY_INLINE V finished(D d, V x, const float* residual, const EpilogueBlock& block) {
  if (kResidualFirst && residual) x = hn::Add(x, hn::LoadU(d, residual));
  x = activate<kActivation>(d, x);
  x = at_least(d, block.clamp_low, at_most(d, block.clamp_high, x));
  if (!kResidualFirst && residual) x = hn::Add(x, hn::LoadU(d, residual));
  return x;
}

/// The last columns, fewer than a vector: through buffers, so that nothing beyond them is touched.
template <Activation kActivation, bool kResidualFirst, class D>
HWY_INLINE void finish_rest(D d, const float* from, const float* residual, float* to,
                            std::size_t count, const EpilogueBlock& block) {
  HWY_ALIGN float x[hn::MaxLanes(d)] = {};
  HWY_ALIGN float r[hn::MaxLanes(d)] = {};
  std::memcpy(x, from, count * sizeof(float));
  if (residual) std::memcpy(r, residual, count * sizeof(float));
  hn::Store(finished<kActivation, kResidualFirst>(d, hn::Load(d, x), residual ? r : nullptr, block),
            d, x);
  std::memcpy(to, x, count * sizeof(float));
}

template <Activation kActivation, bool kResidualFirst>
void finish_block(const EpilogueBlock& block) {
  const hn::ScalableTag<float> d;
  const std::size_t lanes = hn::Lanes(d);
  for (std::size_t row = 0; row < block.rows; ++row) {
    const float* from = block.from + row * block.from_ld;
    const float* residual = block.residual ? block.residual + row * block.residual_ld : nullptr;
    float* to = block.to + row * block.to_ld;
    std::size_t j = 0;
    for (; j + lanes <= block.cols; j += lanes) {
      hn::StoreU(finished<kActivation, kResidualFirst>(d, hn::LoadU(d, from + j),
                                                       residual ? residual + j : nullptr, block),
                 d, to + j);
    }
    if (j < block.cols) {
      finish_rest<kActivation, kResidualFirst>(d, from + j, residual ? residual + j : nullptr,
                                               to + j, block.cols - j, block);
    }
  }
}

constexpr int kActivations = static_cast<int>(Activation::kTanh) + 1;

template <bool kResidualFirst, int... kIndex>
EpilogueFunction function_for(Activation activation, std::integer_sequence<int, kIndex...>) {
  static constexpr EpilogueFunction kFunctions[] = {
      finish_block<static_cast<Activation>(kIndex), kResidualFirst>...};
  return kFunctions[static_cast<int>(activation)];
}

EpilogueFunction function_of(Activation activation, bool residual_first) {
  constexpr auto kAll = std::make_integer_sequence<int, kActivations>();
  return residual_first ? function_for<true>(activation, kAll)
                        : function_for<false>(activation, kAll);
}

}  // namespace rlx::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace rlx::cpu {

HWY_EXPORT(function_of);

EpilogueFunction epilogue_function(const Epilogue& epilogue) noexcept {
  return HWY_DYNAMIC_DISPATCH(function_of)(epilogue.activation, epilogue.activation_after_residual);
}

}  // namespace rlx::cpu
#endif
