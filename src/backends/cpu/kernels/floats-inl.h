// Rows of floating numbers as vectors of the type they are computed in: f32 for f32, f16 and bf16,
// f64 for f64. Include after Highway's foreach_target.h; the file is read once per instruction set.

#if defined(RLX_CPU_FLOATS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef RLX_CPU_FLOATS_INL_H_
#undef RLX_CPU_FLOATS_INL_H_
#else
#define RLX_CPU_FLOATS_INL_H_
#endif

#include <hwy/highway.h>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "rlx/dtype.h"

HWY_BEFORE_NAMESPACE();
namespace rlx::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

/// Elements as they are stored.
using Half = hwy::float16_t;
using BFloat = hwy::bfloat16_t;

/// The type in which elements of type T are computed.
template <class T>
using Computed = std::conditional_t<std::is_same_v<T, double>, double, float>;

/// Whether kernels compute that dtype: f32, f64, f16 or bf16.
inline bool is_computed_float(DType dtype) {
  return dtype == f32 || dtype == f64 || dtype == f16 || dtype == bf16;
}

template <class T>
struct TypeTag {
  using type = T;
};

/// f(TypeTag<T>()) for the stored type T of a dtype that `is_computed_float`.
template <class F>
auto for_float(DType dtype, F&& f) {
  if (dtype == f64) return f(TypeTag<double>());
  if (dtype == f16) return f(TypeTag<Half>());
  if (dtype == bf16) return f(TypeTag<BFloat>());
  return f(TypeTag<float>());
}

template <class T>
inline constexpr bool kIsNarrow = sizeof(T) == 2;

template <class T>
using ComputeTag = hn::ScalableTag<Computed<T>>;

// ---- 16-bit floats. Highway 1.0.3 truncates bf16 and, below AVX2, has no infinities in f16.

/// f16 codes, one in each 32-bit lane, to their values.
template <class D, class VU>
HWY_INLINE hn::Vec<D> half_bits_to_float(D d, VU half) {
  const hn::RebindToUnsigned<D> du;
  const auto magnitude = hn::ShiftLeft<13>(hn::And(half, hn::Set(du, 0x7fff)));
  const auto exponent = hn::And(magnitude, hn::Set(du, 0x0f800000));
  const auto rebased = hn::Add(magnitude, hn::Set(du, (127 - 15) << 23));
  const auto special = hn::Add(rebased, hn::Set(du, (128 - 16) << 23));
  // A denormal's mantissa under the least normal exponent, less the hidden bit.
  const auto least = hn::BitCast(d, hn::Set(du, 113u << 23));
  const auto denormal =
      hn::BitCast(du, hn::Sub(hn::BitCast(d, hn::Add(rebased, hn::Set(du, 1u << 23))), least));
  const auto finite = hn::IfThenElse(hn::Eq(exponent, hn::Zero(du)), denormal, rebased);
  const auto value = hn::IfThenElse(hn::Eq(exponent, hn::Set(du, 0x0f800000)), special, finite);
  const auto sign = hn::ShiftLeft<16>(hn::And(half, hn::Set(du, 0x8000)));
  return hn::BitCast(d, hn::Or(value, sign));
}

/// Values to f16 codes in 32-bit lanes, rounded to nearest even.
template <class D, class V>
HWY_INLINE hn::Vec<hn::RebindToUnsigned<D>> float_to_half_bits(D d, V x) {
  const hn::RebindToUnsigned<D> du;
  const hn::RebindToSigned<D> di;
  const auto bits = hn::BitCast(du, x);
  const auto magnitude = hn::And(bits, hn::Set(du, 0x7fffffff));
  const auto above = [&](std::uint32_t limit) HWY_ATTR {
    return hn::RebindMask(
        du, hn::Gt(hn::BitCast(di, magnitude), hn::Set(di, static_cast<std::int32_t>(limit))));
  };
  const auto odd = hn::And(hn::ShiftRight<13>(magnitude), hn::Set(du, 1));
  const auto normal = hn::ShiftRight<13>(hn::Add(hn::Add(magnitude, hn::Set(du, 0xc8000fffU)),
                                                 odd));  // 15 - 127, half a unit less one
  // Adding 1/2 rounds at 2^-24, the unit of f16 denormals.
  const auto half = hn::Set(d, 0.5F);
  const auto denormal =
      hn::Sub(hn::BitCast(du, hn::Add(hn::BitCast(d, magnitude), half)), hn::BitCast(du, half));
  auto code = hn::IfThenElse(above(0x387fffff), normal, denormal);
  code = hn::IfThenElse(above(0x477fffff), hn::Set(du, 0x7c00), code);
  code = hn::IfThenElse(above(0x7f800000), hn::Set(du, 0x7e00), code);
  return hn::Or(code, hn::And(hn::ShiftRight<16>(bits), hn::Set(du, 0x8000)));
}

/// Values to bf16 codes in 32-bit lanes, rounded to nearest even.
template <class D, class V>
HWY_INLINE hn::Vec<hn::RebindToUnsigned<D>> float_to_bfloat_bits(D, V x) {
  const hn::RebindToUnsigned<D> du;
  const auto bits = hn::BitCast(du, x);
  const auto high = hn::ShiftRight<16>(bits);
  const auto odd = hn::And(high, hn::Set(du, 1));
  const auto rounded = hn::ShiftRight<16>(hn::Add(hn::Add(bits, hn::Set(du, 0x7fff)), odd));
  const auto quiet = hn::Or(high, hn::Set(du, 0x40));
  return hn::IfThenElse(hn::RebindMask(du, hn::IsNaN(x)), quiet, rounded);
}

#if HWY_TARGET <= HWY_AVX2
inline constexpr bool kHardwareHalf = true;  // F16C
#else
inline constexpr bool kHardwareHalf = false;
#endif

// ---- loads and stores

/// A vector of elements from p, which needs no alignment.
template <class D, class T>
HWY_INLINE hn::Vec<D> load(D d, const T* p) {
  if constexpr (std::is_same_v<T, Half> && !kHardwareHalf) {
    const hn::RebindToUnsigned<D> du;
    const hn::Rebind<std::uint16_t, D> du16;
    const auto codes = hn::LoadU(du16, reinterpret_cast<const std::uint16_t*>(p));
    return half_bits_to_float(d, hn::PromoteTo(du, codes));
  } else if constexpr (kIsNarrow<T>) {
    return hn::PromoteTo(d, hn::LoadU(hn::Rebind<T, D>(), p));
  } else {
    return hn::LoadU(d, p);
  }
}

/// Stores a vector at p, rounded to nearest even.
template <class D, class V, class T>
HWY_INLINE void store(D d, V x, T* p) {
  const hn::Rebind<std::uint16_t, D> du16;
  if constexpr (std::is_same_v<T, Half> && kHardwareHalf) {
    const hn::Rebind<T, D> dh;
    hn::StoreU(hn::DemoteTo(dh, x), dh, p);
  } else if constexpr (kIsNarrow<T>) {
    const hn::RebindToSigned<D> di;
    hn::Vec<hn::RebindToUnsigned<D>> codes;
    if constexpr (std::is_same_v<T, Half>) {
      codes = float_to_half_bits(d, x);
    } else {
      codes = float_to_bfloat_bits(d, x);
    }
    hn::StoreU(hn::DemoteTo(du16, hn::BitCast(di, codes)), du16,
               reinterpret_cast<std::uint16_t*>(p));
  } else {
    hn::StoreU(x, d, p);
  }
}

/// The first `count` lanes from p, fewer than a vector; the others are zero. Reads nothing beyond.
template <class D, class T>
HWY_INLINE hn::Vec<D> load_part(D d, const T* p, std::size_t count) {
  if constexpr (!kIsNarrow<T> && HWY_TARGET <= HWY_AVX2) {
    return hn::MaskedLoad(hn::FirstN(d, count), d, p);
  } else {
    HWY_ALIGN T buffer[hn::MaxLanes(D())] = {};
    std::memcpy(buffer, p, count * sizeof(T));
    return load(d, buffer);
  }
}

/// Stores the first `count` lanes, fewer than a vector, and writes nothing beyond.
template <class D, class V, class T>
HWY_INLINE void store_part(D d, V x, T* p, std::size_t count) {
  if constexpr (!kIsNarrow<T> && HWY_TARGET <= HWY_AVX3) {
    hn::BlendedStore(x, hn::FirstN(d, count), d, p);
  } else {
    HWY_ALIGN T buffer[hn::MaxLanes(D())];
    store(d, x, buffer);
    std::memcpy(p, buffer, count * sizeof(T));
  }
}

template <class T>
HWY_INLINE Computed<T> load_one(const T* p) {
  if constexpr (kIsNarrow<T>) {
    return hn::GetLane(load_part(ComputeTag<T>(), p, 1));
  } else {
    return *p;
  }
}
template <class T>
HWY_INLINE void store_one(Computed<T> x, T* p) {
  if constexpr (kIsNarrow<T>) {
    store_part(ComputeTag<T>(), hn::Set(ComputeTag<T>(), x), p, 1);
  } else {
    *p = x;
  }
}

// ---- loops over one row

/// to[i] = f(from[i]). f(v, i, count) also learns which `count` elements these are, so that it can
/// read others beside them with `load_at`. Either row may be the other.
template <class From, class To, class F>
HWY_INLINE void map(const From* from, To* to, std::size_t size, F&& f) {
  const ComputeTag<From> d;
  const std::size_t lanes = hn::Lanes(d);
  std::size_t i = 0;
  for (; i + lanes <= size; i += lanes) store(d, f(load(d, from + i), i, lanes), to + i);
  const std::size_t rest = size - i;
  if (rest != 0) store_part(d, f(load_part(d, from + i, rest), i, rest), to + i, rest);
}

/// The elements of another row at the position that `map` names.
template <class D, class T>
HWY_INLINE hn::Vec<D> load_at(D d, const T* row, std::size_t i, std::size_t count) {
  return count == hn::Lanes(d) ? load(d, row + i) : load_part(d, row + i, count);
}

/// Sums f(v) over the row. Four accumulators, so that additions overlap; their order depends on
/// the size alone.
template <class T, class F>
HWY_INLINE Computed<T> map_sum(const T* from, std::size_t size, F&& f) {
  const ComputeTag<T> d;
  const std::size_t lanes = hn::Lanes(d);
  auto a = hn::Zero(d), b = a, c = a, e = a;
  std::size_t i = 0;
  for (; i + 4 * lanes <= size; i += 4 * lanes) {
    a = hn::Add(a, f(load(d, from + i)));
    b = hn::Add(b, f(load(d, from + i + lanes)));
    c = hn::Add(c, f(load(d, from + i + 2 * lanes)));
    e = hn::Add(e, f(load(d, from + i + 3 * lanes)));
  }
  for (; i + lanes <= size; i += lanes) a = hn::Add(a, f(load(d, from + i)));
  const std::size_t rest = size - i;
  if (rest != 0) {
    const auto last = f(load_part(d, from + i, rest));
    b = hn::Add(b, hn::IfThenElseZero(hn::FirstN(d, rest), last));
  }
  return hn::GetLane(hn::SumOfLanes(d, hn::Add(hn::Add(a, b), hn::Add(c, e))));
}

/// The greatest element, NaNs left out; -infinity if there is none.
template <class T>
HWY_INLINE Computed<T> greatest(const T* from, std::size_t size) {
  const ComputeTag<T> d;
  const std::size_t lanes = hn::Lanes(d);
  const auto lowest = hn::Set(d, -HUGE_VALF);
  auto a = lowest, b = lowest;
  std::size_t i = 0;
  // x86's maximum returns its second operand if either is NaN.
  for (; i + 2 * lanes <= size; i += 2 * lanes) {
    a = hn::Max(load(d, from + i), a);
    b = hn::Max(load(d, from + i + lanes), b);
  }
  for (; i + lanes <= size; i += lanes) a = hn::Max(load(d, from + i), a);
  const std::size_t rest = size - i;
  if (rest != 0) {
    const auto last = load_part(d, from + i, rest);
    b = hn::Max(hn::IfThenElse(hn::FirstN(d, rest), last, lowest), b);
  }
  return hn::GetLane(hn::MaxOfLanes(d, hn::Max(a, b)));
}

}  // namespace rlx::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
