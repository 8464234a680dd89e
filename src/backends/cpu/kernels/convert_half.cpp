#include "backends/cpu/kernels/convert_half.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/kernels/convert_half.cpp"
#include <hwy/foreach_target.h>
// After foreach_target.h, which includes this file again for each instruction set.
#include "backends/cpu/kernels/floats-inl.h"

HWY_BEFORE_NAMESPACE();
namespace rlx::cpu::HWY_NAMESPACE {

template <class T>
void convert(const void* from, std::size_t count, float* to) {
  const ComputeTag<T> d;
  const std::size_t lanes = hn::Lanes(d);
  const T* narrow = static_cast<const T*>(from);
  std::size_t i = 0;
  for (; i + lanes <= count; i += lanes) hn::StoreU(load(d, narrow + i), d, to + i);
  if (i != count) store_part(d, load_part(d, narrow + i, count - i), to + i, count - i);
}

void convert_bfloat(const void* from, std::size_t count, float* to) {
  convert<BFloat>(from, count, to);
}
void convert_half(const void* from, std::size_t count, float* to) {
  convert<Half>(from, count, to);
}

}  // namespace rlx::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace rlx::cpu {

HWY_EXPORT(convert_bfloat);
HWY_EXPORT(convert_half);

void convert_to_float(const void* from, DType dtype, std::size_t count, float* to) noexcept {
  if (dtype == DType::bf16) {
    HWY_DYNAMIC_DISPATCH(convert_bfloat)(from, count, to);
  } else {
    HWY_DYNAMIC_DISPATCH(convert_half)(from, count, to);
  }
}

}  // namespace rlx::cpu
#endif
