#include "backends/cpu/kernels/convert_half.h"

#include <cstdint>
#include <cstring>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/kernels/convert_half.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace rlx::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

template <class Half>
void convert(const void* from, std::size_t count, float* to) {
  const hn::ScalableTag<float> d;
  const hn::Rebind<Half, decltype(d)> dh;
  const std::size_t lanes = hn::Lanes(d);
  const Half* half = static_cast<const Half*>(from);
  std::size_t i = 0;
  for (; i + lanes <= count; i += lanes) {
    hn::StoreU(hn::PromoteTo(d, hn::LoadU(dh, half + i)), d, to + i);
  }
  if (i == count) return;
  HWY_ALIGN Half rest[hn::MaxLanes(d)] = {};
  HWY_ALIGN float converted[hn::MaxLanes(d)];
  std::memcpy(rest, half + i, (count - i) * sizeof(Half));
  hn::Store(hn::PromoteTo(d, hn::Load(dh, rest)), d, converted);
  std::memcpy(to + i, converted, (count - i) * sizeof(float));
}

void convert_bfloat(const void* from, std::size_t count, float* to) {
  convert<hwy::bfloat16_t>(from, count, to);
}
void convert_half(const void* from, std::size_t count, float* to) {
  convert<hwy::float16_t>(from, count, to);
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
