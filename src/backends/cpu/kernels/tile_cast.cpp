#include <bit>
#include <complex>
#include <limits>
#include <type_traits>

#include "backends/cpu/kernels/strided.h"
#include "backends/cpu/kernels/tile.h"
#include "ops/number_formats.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/kernels/tile_cast.cpp"
#include <hwy/foreach_target.h>
// After foreach_target.h, which includes this file again for each instruction set.
#include <hwy/cache_control.h>
#include <hwy/highway.h>

#include "backends/cpu/kernels/tile_loops-inl.h"

HWY_BEFORE_NAMESPACE();
namespace rlx::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;
namespace {

/// Between real numbers: integers wrap, floats truncate and saturate, NaN becomes 0.
template <class To>
struct CastTo {
  template <class From>
  HWY_INLINE To operator()(From x) const {
    if constexpr (std::is_floating_point_v<From> && std::is_integral_v<To>) {
      // The conversion itself must never meet what does not fit.
      using Whole = std::conditional_t<(sizeof(To) < 4), std::int32_t, To>;
      constexpr From kLow = static_cast<From>(std::numeric_limits<To>::min());
      constexpr From kHalf = static_cast<From>(std::numeric_limits<To>::max() / 2 + 1);
      constexpr From kEnd = 2 * kHalf;  // the least that is too large, a power of two
      const From inside = x > kLow && x < kEnd ? x : From{0};
      const To whole = static_cast<To>(static_cast<Whole>(inside));
      return x >= kEnd   ? std::numeric_limits<To>::max()
             : x <= kLow ? std::numeric_limits<To>::min()
                         : whole;
    } else {
      return static_cast<To>(x);
    }
  }
};
struct ToBool {
  template <class From>
  HWY_INLINE std::uint8_t operator()(From x) const {
    return x != From{0};
  }
};

template <class From>
TileFunction cast_from(DType to) {
  switch (to) {
    case DType::f32:
      return map_blocks1<From, float, CastTo<float>>;
    case DType::f64:
      return map_blocks1<From, double, CastTo<double>>;
    case DType::i8:
      return map_blocks1<From, std::int8_t, CastTo<std::int8_t>>;
    case DType::i16:
      return map_blocks1<From, std::int16_t, CastTo<std::int16_t>>;
    case DType::i32:
      return map_blocks1<From, std::int32_t, CastTo<std::int32_t>>;
    case DType::i64:
      return map_blocks1<From, std::int64_t, CastTo<std::int64_t>>;
    case DType::u8:
      return map_blocks1<From, std::uint8_t, CastTo<std::uint8_t>>;
    case DType::u16:
      return map_blocks1<From, std::uint16_t, CastTo<std::uint16_t>>;
    case DType::u32:
      return map_blocks1<From, std::uint32_t, CastTo<std::uint32_t>>;
    case DType::u64:
      return map_blocks1<From, std::uint64_t, CastTo<std::uint64_t>>;
    case DType::boolean:
      return map_blocks1<From, std::uint8_t, ToBool>;
    default:
      return nullptr;
  }
}

// ---- 16-bit floats, by integer arithmetic that is the same on every instruction set

struct ToBfloat {
  HWY_INLINE std::uint16_t operator()(float x) const {
    const auto bits = std::bit_cast<std::uint32_t>(x);
    const std::uint32_t nearest = bits + 0x7fffU + ((bits >> 16) & 1U);  // ties to even
    const std::uint32_t nan = bits | 0x400000U;
    return static_cast<std::uint16_t>((x == x ? nearest : nan) >> 16);
  }
};

struct ToHalf {
  HWY_INLINE std::uint16_t operator()(float x) const {
    constexpr std::uint32_t kInfinity = 0x7f800000U;
    constexpr std::uint32_t kTooLarge = 0x47800000U;     // 2^16
    constexpr std::uint32_t kLeastNormal = 0x38800000U;  // 2^-14
    const auto bits = std::bit_cast<std::uint32_t>(x);
    const std::uint32_t size = bits & 0x7fffffffU;
    // Adding ½ lines the mantissa up with the subnormals' steps of 2^-24, and rounds.
    const std::uint32_t small =
        std::bit_cast<std::uint32_t>(std::bit_cast<float>(size < kTooLarge ? size : 0U) + 0.5F) -
        0x3f000000U;
    // Rebias the exponent from 127 to 15 and round; a carry into the exponent is right as it is.
    const std::uint32_t normal = (size + 0xc8000fffU + ((size >> 13) & 1U)) >> 13;
    const std::uint32_t special = size > kInfinity ? 0x7e00U : 0x7c00U;
    const std::uint32_t finite = size < kLeastNormal ? small : normal;
    const std::uint32_t code = size < kTooLarge ? finite : special;
    return static_cast<std::uint16_t>(code | ((bits >> 16) & 0x8000U));
  }
};
struct FromHalf {
  HWY_INLINE float operator()(std::uint16_t half) const {
    const std::uint32_t size = (half & 0x7fffU) << 13;
    const std::uint32_t exponent = size & 0x0f800000U;
    const std::uint32_t normal = size + (112U << 23) + (exponent == 0x0f800000U ? 112U << 23 : 0U);
    const std::uint32_t small = std::bit_cast<std::uint32_t>(
        std::bit_cast<float>(size + (113U << 23)) - std::bit_cast<float>(113U << 23));
    const std::uint32_t sign = static_cast<std::uint32_t>(half & 0x8000U) << 16;
    return std::bit_cast<float>((exponent == 0 ? small : normal) | sign);
  }
};
struct FromBfloat {
  HWY_INLINE float operator()(std::uint16_t x) const {
    return std::bit_cast<float>(static_cast<std::uint32_t>(x) << 16);
  }
};
struct RoundBfloat {
  HWY_INLINE float operator()(float x) const { return FromBfloat()(ToBfloat()(x)); }
};
struct RoundHalf {
  HWY_INLINE float operator()(float x) const { return FromHalf()(ToHalf()(x)); }
};

template <int kBits>
struct WrapSigned {
  HWY_INLINE std::int8_t operator()(std::int8_t x) const {
    const auto high = static_cast<std::int8_t>(static_cast<std::uint8_t>(x) << (8 - kBits));
    return static_cast<std::int8_t>(high >> (8 - kBits));
  }
};
template <int kBits>
struct WrapUnsigned {
  HWY_INLINE std::uint8_t operator()(std::uint8_t x) const { return x & ((1U << kBits) - 1); }
};

// ---- copies

struct Same {
  template <class T>
  HWY_INLINE T operator()(T x) const {
    return x;
  }
};

/// `to` is aligned to vectors but for what a tensor's base is not; then it is an ordinary copy.
template <class T>
void stream(const TileArgs& t) {
  const hn::ScalableTag<T> d;
  const std::size_t lanes = hn::Lanes(d);
  const Elements<T> x(t, 0);
  T* to = reinterpret_cast<T*>(t.to);
  if (reinterpret_cast<std::uintptr_t>(to) % (lanes * sizeof(T)) != 0) {
    return map_blocks1<T, T, Same>(t);
  }
  std::size_t i = 0;
  for (; i + lanes <= t.count; i += lanes) hn::Stream(x.load(d, i), d, to + i);
  for (; i < t.count; ++i) to[i] = x.at[i & x.mask];
}

template <class T>
TileFunction copy_of(bool streamed) {
  return streamed ? stream<T> : map_blocks1<T, T, Same>;
}

}  // namespace

TileFunction cast_row(DType from, DType to) {
  switch (from) {
    case DType::f32:
      return cast_from<float>(to);
    case DType::f64:
      return cast_from<double>(to);
    case DType::i8:
      return cast_from<std::int8_t>(to);
    case DType::i16:
      return cast_from<std::int16_t>(to);
    case DType::i32:
      return cast_from<std::int32_t>(to);
    case DType::i64:
      return cast_from<std::int64_t>(to);
    case DType::u8:
    case DType::boolean:
      return cast_from<std::uint8_t>(to);
    case DType::u16:
      return cast_from<std::uint16_t>(to);
    case DType::u32:
      return cast_from<std::uint32_t>(to);
    case DType::u64:
      return cast_from<std::uint64_t>(to);
    default:
      return nullptr;
  }
}

TileFunction round_row(DType dtype) {
  switch (dtype) {
    case DType::f16:
      return map_blocks1<float, float, RoundHalf>;
    case DType::bf16:
      return map_blocks1<float, float, RoundBfloat>;
    case DType::i4:
      return map_blocks1<std::int8_t, std::int8_t, WrapSigned<4>>;
    case DType::i2:
      return map_blocks1<std::int8_t, std::int8_t, WrapSigned<2>>;
    case DType::u4:
      return map_blocks1<std::uint8_t, std::uint8_t, WrapUnsigned<4>>;
    case DType::u2:
      return map_blocks1<std::uint8_t, std::uint8_t, WrapUnsigned<2>>;
    default:
      return nullptr;
  }
}

TileFunction pack_row(DType dtype) {
  if (dtype == DType::f16) return map_blocks1<float, std::uint16_t, ToHalf>;
  if (dtype == DType::bf16) return map_blocks1<float, std::uint16_t, ToBfloat>;
  return nullptr;
}

TileFunction unpack_row(DType dtype) {
  if (dtype == DType::f16) return map_blocks1<std::uint16_t, float, FromHalf>;
  if (dtype == DType::bf16) return map_blocks1<std::uint16_t, float, FromBfloat>;
  return nullptr;
}

TileFunction copy_row(std::size_t bytes, bool streamed) {
  switch (bytes) {
    case 1:
      return copy_of<std::uint8_t>(streamed);
    case 2:
      return copy_of<std::uint16_t>(streamed);
    case 4:
      return copy_of<std::uint32_t>(streamed);
    case 8:
      return copy_of<std::uint64_t>(streamed);
    default:
      return map_blocks1<std::complex<double>, std::complex<double>, Same>;
  }
}

}  // namespace rlx::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace rlx::cpu {
namespace {

template <class T>
const T& element(const TileArgs& t, std::size_t i) {
  return reinterpret_cast<const T*>(t.in[0])[i & t.mask[0]];
}

// ---- complex numbers: casts to real ones take the real part

template <class From, class To>
void real_part(const TileArgs& t) {
  for (std::size_t i = 0; i < t.count; ++i)
    reinterpret_cast<To*>(t.to)[i] = static_cast<To>(element<From>(t, i).real());
}
template <class From, class To>
void with_zero(const TileArgs& t) {
  for (std::size_t i = 0; i < t.count; ++i)
    reinterpret_cast<To*>(t.to)[i] = {static_cast<typename To::value_type>(element<From>(t, i)), 0};
}
template <class From, class To>
void complex_to_complex(const TileArgs& t) {
  for (std::size_t i = 0; i < t.count; ++i)
    reinterpret_cast<To*>(t.to)[i] = static_cast<To>(element<From>(t, i));
}

using C64 = std::complex<float>;
using C128 = std::complex<double>;

// ---- floats of 8 bits and less, and what rounds to narrow floats from wider ones than f32

/// What tiles of the dtype hold.
template <DType kDType>
using Held = std::conditional_t<kDType == DType::f8e8m0, double, float>;

/// The codes' values.
template <DType kDType>
const std::array<Held<kDType>, 256>& values() {
  static const std::array<Held<kDType>, 256> table = [] {
    std::array<Held<kDType>, 256> v{};
    for (std::uint32_t code = 0; code < v.size(); ++code) {
      const unsigned bits = traits(kDType).bits;
      v[code] = static_cast<Held<kDType>>(decode_float(kDType, code & ((1U << bits) - 1)));
    }
    return v;
  }();
  return table;
}

template <DType kDType, class From = Held<kDType>>
void round_codes(const TileArgs& t) {
  auto* to = reinterpret_cast<Held<kDType>*>(t.to);
  for (std::size_t i = 0; i < t.count; ++i) {
    const std::uint32_t code = encode_float(kDType, static_cast<double>(element<From>(t, i)));
    to[i] = static_cast<Held<kDType>>(decode_float(kDType, code));
  }
}

/// Truncates and saturates to an integer of a few bits.
template <class To, int kBits>
void saturate(const TileArgs& t) {
  constexpr int kHigh = std::is_signed_v<To> ? (1 << (kBits - 1)) - 1 : (1 << kBits) - 1;
  constexpr int kLow = std::is_signed_v<To> ? -(1 << (kBits - 1)) : 0;
  for (std::size_t i = 0; i < t.count; ++i) {
    const double x = element<double>(t, i);
    const int whole = x >= kHigh ? kHigh : x <= kLow ? kLow : x == x ? static_cast<int>(x) : 0;
    reinterpret_cast<To*>(t.to)[i] = static_cast<To>(whole);
  }
}

TileFunction round_from_f64(DType to) {
  switch (to) {
    case DType::f16:
      return round_codes<DType::f16, double>;
    case DType::bf16:
      return round_codes<DType::bf16, double>;
    case DType::f8e4m3:
      return round_codes<DType::f8e4m3, double>;
    case DType::f8e5m2:
      return round_codes<DType::f8e5m2, double>;
    case DType::f8e4m3fnuz:
      return round_codes<DType::f8e4m3fnuz, double>;
    case DType::f8e5m2fnuz:
      return round_codes<DType::f8e5m2fnuz, double>;
    case DType::f8e8m0:
      return round_codes<DType::f8e8m0, double>;
    case DType::f6e2m3:
      return round_codes<DType::f6e2m3, double>;
    case DType::f6e3m2:
      return round_codes<DType::f6e3m2, double>;
    case DType::f4e2m1:
      return round_codes<DType::f4e2m1, double>;
    case DType::i4:
      return saturate<std::int8_t, 4>;
    case DType::i2:
      return saturate<std::int8_t, 2>;
    case DType::u4:
      return saturate<std::uint8_t, 4>;
    case DType::u2:
      return saturate<std::uint8_t, 2>;
    default:
      return nullptr;
  }
}

TileFunction round_small_float(DType dtype) {
  switch (dtype) {
    case DType::f8e4m3:
      return round_codes<DType::f8e4m3>;
    case DType::f8e5m2:
      return round_codes<DType::f8e5m2>;
    case DType::f8e4m3fnuz:
      return round_codes<DType::f8e4m3fnuz>;
    case DType::f8e5m2fnuz:
      return round_codes<DType::f8e5m2fnuz>;
    case DType::f8e8m0:
      return round_codes<DType::f8e8m0>;
    case DType::f6e2m3:
      return round_codes<DType::f6e2m3>;
    case DType::f6e3m2:
      return round_codes<DType::f6e3m2>;
    case DType::f4e2m1:
      return round_codes<DType::f4e2m1>;
    default:
      return nullptr;
  }
}

// ---- packed codes, from the lowest bit up

std::uint32_t code_at(const std::byte* bytes, std::size_t i, unsigned bits) {
  const std::size_t at = i * bits;
  std::uint32_t word = std::to_integer<std::uint32_t>(bytes[at / 8]);
  if (at % 8 + bits > 8) word |= std::to_integer<std::uint32_t>(bytes[at / 8 + 1]) << 8;
  return (word >> (at % 8)) & ((1U << bits) - 1);
}
/// Into bytes that were zero.
void set_code(std::byte* bytes, std::size_t i, unsigned bits, std::uint32_t code) {
  const std::size_t at = i * bits;
  const std::uint32_t word = (code & ((1U << bits) - 1)) << (at % 8);
  bytes[at / 8] |= static_cast<std::byte>(word);
  if (at % 8 + bits > 8) bytes[at / 8 + 1] |= static_cast<std::byte>(word >> 8);
}
void clear_codes(const TileArgs& t, unsigned bits) {
  std::memset(t.to, 0, stored_bytes(bits, t.count));
}

template <DType kDType>
void unpack_floats(const TileArgs& t) {
  const unsigned bits = traits(kDType).bits;
  const auto& table = values<kDType>();
  for (std::size_t i = 0; i < t.count; ++i)
    reinterpret_cast<Held<kDType>*>(t.to)[i] = table[code_at(t.in[0], i & t.mask[0], bits)];
}
template <DType kDType>
void pack_floats(const TileArgs& t) {
  const unsigned bits = traits(kDType).bits;
  clear_codes(t, bits);
  for (std::size_t i = 0; i < t.count; ++i)
    set_code(t.to, i, bits, encode_float(kDType, static_cast<double>(element<Held<kDType>>(t, i))));
}
template <class T, unsigned kBits>
void unpack_integers(const TileArgs& t) {
  for (std::size_t i = 0; i < t.count; ++i) {
    const auto high = static_cast<T>(code_at(t.in[0], i & t.mask[0], kBits) << (8 - kBits));
    reinterpret_cast<T*>(t.to)[i] = static_cast<T>(high >> (8 - kBits));
  }
}
template <class T, unsigned kBits>
void pack_integers(const TileArgs& t) {
  clear_codes(t, kBits);
  for (std::size_t i = 0; i < t.count; ++i)
    set_code(t.to, i, kBits, static_cast<std::uint8_t>(element<T>(t, i)));
}

struct Packing {
  DType dtype;
  TileFunction unpack, pack;
};
template <DType kDType>
constexpr Packing kFloatPacking{kDType, unpack_floats<kDType>, pack_floats<kDType>};

constexpr Packing kPackings[] = {
    kFloatPacking<DType::f8e4m3>,
    kFloatPacking<DType::f8e5m2>,
    kFloatPacking<DType::f8e4m3fnuz>,
    kFloatPacking<DType::f8e5m2fnuz>,
    kFloatPacking<DType::f8e8m0>,
    kFloatPacking<DType::f6e2m3>,
    kFloatPacking<DType::f6e3m2>,
    kFloatPacking<DType::f4e2m1>,
    {DType::i4, unpack_integers<std::int8_t, 4>, pack_integers<std::int8_t, 4>},
    {DType::i2, unpack_integers<std::int8_t, 2>, pack_integers<std::int8_t, 2>},
    {DType::u4, unpack_integers<std::uint8_t, 4>, pack_integers<std::uint8_t, 4>},
    {DType::u2, unpack_integers<std::uint8_t, 2>, pack_integers<std::uint8_t, 2>},
};

const Packing* packing_of(DType dtype) {
  for (const Packing& p : kPackings) {
    if (p.dtype == dtype) return &p;
  }
  return nullptr;
}

}  // namespace

HWY_EXPORT(cast_row);
HWY_EXPORT(round_row);
HWY_EXPORT(pack_row);
HWY_EXPORT(unpack_row);
HWY_EXPORT(copy_row);

namespace {

template <class From>
TileFunction complex_from(DType to) {
  if (to == DType::c64) return with_zero<From, C64>;
  return with_zero<From, C128>;
}
/// To complex dtypes. A float of a 64-bit integer is rounded twice, as the reference does.
TileFunction cast_to_complex(DType from, DType to) {
  switch (from) {
    case DType::f32:
      return complex_from<float>(to);
    case DType::f64:
      return complex_from<double>(to);
    case DType::c64:
      return to == DType::c64 ? complex_to_complex<C64, C64> : complex_to_complex<C64, C128>;
    case DType::c128:
      return to == DType::c64 ? complex_to_complex<C128, C64> : complex_to_complex<C128, C128>;
    default:
      return nullptr;
  }
}

TileFunction to_f64(DType from) {
  if (from == DType::c64) return real_part<C64, double>;
  if (from == DType::c128) return real_part<C128, double>;
  return HWY_DYNAMIC_DISPATCH(cast_row)(from, DType::f64);
}

bool is_exact_in_f32(DType tile) {
  return is_floating(tile) ? tile == DType::f32 : traits(tile).bits <= 16;
}

}  // namespace

TileCast tile_cast(DType from, DType to) noexcept {
  const DType tile = tile_dtype(to);
  if (is_complex(to)) {
    if (is_complex(from) || is_floating(from)) return {cast_to_complex(from, to)};
    return {to_f64(from), DType::f64, cast_to_complex(DType::f64, to)};
  }
  if (is_complex(from)) {
    const TileFunction narrow =
        tile == to ? HWY_DYNAMIC_DISPATCH(cast_row)(DType::f64, to) : round_from_f64(to);
    return {to_f64(from), DType::f64, narrow};
  }
  if (tile == to) return {HWY_DYNAMIC_DISPATCH(cast_row)(from, to)};
  if (is_floating(to)) {
    if (from == DType::f32 && tile == DType::f32) return {tile_round(to)};
    if (is_exact_in_f32(from) && tile == DType::f32)
      return {HWY_DYNAMIC_DISPATCH(cast_row)(from, DType::f32), DType::f32, tile_round(to)};
    return {to_f64(from), DType::f64, round_from_f64(to)};
  }
  if (is_floating(from)) return {to_f64(from), DType::f64, round_from_f64(to)};
  return {HWY_DYNAMIC_DISPATCH(cast_row)(from, tile), tile, tile_round(to)};
}

TileFunction tile_round(DType dtype) noexcept {
  if (const TileFunction f = HWY_DYNAMIC_DISPATCH(round_row)(dtype)) return f;
  return round_small_float(dtype);
}

TileFunction tile_unpack(DType dtype) noexcept {
  if (const TileFunction f = HWY_DYNAMIC_DISPATCH(unpack_row)(dtype)) return f;
  const Packing* p = packing_of(dtype);
  return p != nullptr ? p->unpack : nullptr;
}

TileFunction tile_pack(DType dtype) noexcept {
  if (const TileFunction f = HWY_DYNAMIC_DISPATCH(pack_row)(dtype)) return f;
  const Packing* p = packing_of(dtype);
  return p != nullptr ? p->pack : nullptr;
}

TileFunction tile_copy(std::size_t bytes, bool streamed) noexcept {
  return HWY_DYNAMIC_DISPATCH(copy_row)(bytes, streamed);
}
void tile_stream_fence() noexcept { hwy::FlushStream(); }

DType tile_dtype(DType dtype) noexcept {
  const DTypeTraits& t = traits(dtype);
  switch (t.kind) {
    case DTypeKind::floating:
      if (dtype == DType::f8e8m0) return DType::f64;  // its least values are subnormal in f32
      return t.bits < 32 ? DType::f32 : dtype;
    case DTypeKind::signed_integer:
      return t.bits < 8 ? DType::i8 : dtype;
    case DTypeKind::unsigned_integer:
      return t.bits < 8 ? DType::u8 : dtype;
    default:
      return dtype;
  }
}

std::size_t tile_bytes(DType tile) noexcept { return traits(tile).bits / 8; }

TileFunction tile_function(const OpDef& op, DType tile) noexcept {
  for (const auto table : {float_tile, math_tile, integer_tile, complex_tile}) {
    if (const TileFunction f = table(op, tile)) return f;
  }
  return nullptr;
}

}  // namespace rlx::cpu
#endif
