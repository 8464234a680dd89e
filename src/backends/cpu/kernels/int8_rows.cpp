#include "backends/cpu/kernels/int8_rows.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/kernels/int8_rows.cpp"
#include <hwy/foreach_target.h>
// After foreach_target.h, which includes this file again for each instruction set.
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace rlx::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

std::int32_t copy(const std::uint8_t* from, std::size_t count, std::uint8_t flip,
                  std::uint8_t* to) {
  const hn::ScalableTag<std::uint8_t> d;
  const hn::Repartition<std::uint64_t, decltype(d)> d64;
  const auto mask = hn::Set(d, flip);
  auto sums = hn::Zero(d64);
  std::size_t i = 0;
  for (; i + hn::Lanes(d) <= count; i += hn::Lanes(d)) {
    const auto v = hn::Xor(hn::LoadU(d, from + i), mask);
    hn::StoreU(v, d, to + i);
    sums = hn::Add(sums, hn::SumsOf8(v));
  }
  auto sum = static_cast<std::uint32_t>(hn::GetLane(hn::SumOfLanes(d64, sums)));
  for (; i < count; ++i) {
    to[i] = from[i] ^ flip;
    sum += to[i];
  }
  return static_cast<std::int32_t>(sum);
}

std::int32_t widen(const std::uint8_t* from, std::size_t count, std::uint8_t flip,
                   std::int16_t* to) {
  const hn::ScalableTag<std::int16_t> d;
  const hn::ScalableTag<std::int32_t> d32;
  const hn::Rebind<std::uint8_t, decltype(d)> d8;
  const auto mask = hn::Set(d8, flip);
  std::uint32_t sum = 0;
  std::size_t i = 0;
  for (; i + hn::Lanes(d) <= count; i += hn::Lanes(d)) {
    const auto v = hn::PromoteTo(d, hn::Xor(hn::LoadU(d8, from + i), mask));
    hn::StoreU(v, d, to + i);
  }
  for (; i < count; ++i) to[i] = from[i] ^ flip;
  auto odd = hn::Zero(d32), even = hn::Zero(d32);
  std::size_t j = 0;
  for (; j + hn::Lanes(d) <= count; j += hn::Lanes(d)) {
    const auto pairs = hn::BitCast(d32, hn::LoadU(d, to + j));
    even = hn::Add(even, hn::And(pairs, hn::Set(d32, 0xFFFF)));
    odd = hn::Add(odd, hn::ShiftRight<16>(pairs));
  }
  sum = static_cast<std::uint32_t>(hn::GetLane(hn::SumOfLanes(d32, hn::Add(even, odd))));
  for (; j < count; ++j) sum += static_cast<std::uint32_t>(to[j]);
  return static_cast<std::int32_t>(sum);
}

}  // namespace rlx::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace rlx::cpu {

HWY_EXPORT(copy);
HWY_EXPORT(widen);

std::int32_t copy_bytes(const void* from, std::size_t count, bool flip, std::uint8_t* to) noexcept {
  return HWY_DYNAMIC_DISPATCH(copy)(static_cast<const std::uint8_t*>(from), count, flip ? 0x80 : 0,
                                    to);
}

std::int32_t widen_bytes(const void* from, std::size_t count, bool flip,
                         std::int16_t* to) noexcept {
  return HWY_DYNAMIC_DISPATCH(widen)(static_cast<const std::uint8_t*>(from), count, flip ? 0x80 : 0,
                                     to);
}

}  // namespace rlx::cpu
#endif
