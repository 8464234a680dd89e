#include <limits>
#include <type_traits>

#include "backends/cpu/kernels/tile.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/kernels/tile_integer.cpp"
#include <hwy/foreach_target.h>
// After foreach_target.h, which includes this file again for each instruction set.
#include <hwy/highway.h>

#include "backends/cpu/kernels/tile_loops-inl.h"

HWY_BEFORE_NAMESPACE();
namespace rlx::cpu::HWY_NAMESPACE {
namespace {

// Integers of 8 to 64 bits and bools. Arithmetic wraps: it runs on an unsigned type of the width,
// or on `unsigned` where the language would promote to int.
template <class T>
using Wrapping =
    std::conditional_t<sizeof(T) < sizeof(unsigned), unsigned, std::make_unsigned_t<T>>;

struct Neg {
  template <class T>
  HWY_INLINE T operator()(T x) const {
    return static_cast<T>(Wrapping<T>{0} - static_cast<Wrapping<T>>(x));
  }
};
struct Abs {
  template <class T>
  HWY_INLINE T operator()(T x) const {
    return x < 0 ? Neg()(x) : x;
  }
};
struct Sign {
  template <class T>
  HWY_INLINE T operator()(T x) const {
    return static_cast<T>((x > 0) - (x < 0));
  }
};
struct BitNot {
  template <class T>
  HWY_INLINE T operator()(T x) const {
    return static_cast<T>(~x);
  }
};
struct Add {
  template <class T>
  HWY_INLINE T operator()(T a, T b) const {
    return static_cast<T>(static_cast<Wrapping<T>>(a) + static_cast<Wrapping<T>>(b));
  }
};
struct Sub {
  template <class T>
  HWY_INLINE T operator()(T a, T b) const {
    return static_cast<T>(static_cast<Wrapping<T>>(a) - static_cast<Wrapping<T>>(b));
  }
};
struct Mul {
  template <class T>
  HWY_INLINE T operator()(T a, T b) const {
    return static_cast<T>(static_cast<Wrapping<T>>(a) * static_cast<Wrapping<T>>(b));
  }
};
struct Max {
  template <class T>
  HWY_INLINE T operator()(T a, T b) const {
    return a > b ? a : b;
  }
};
struct Min {
  template <class T>
  HWY_INLINE T operator()(T a, T b) const {
    return a < b ? a : b;
  }
};
struct BitAnd {
  template <class T>
  HWY_INLINE T operator()(T a, T b) const {
    return static_cast<T>(a & b);
  }
};
struct BitOr {
  template <class T>
  HWY_INLINE T operator()(T a, T b) const {
    return static_cast<T>(a | b);
  }
};
struct BitXor {
  template <class T>
  HWY_INLINE T operator()(T a, T b) const {
    return static_cast<T>(a ^ b);
  }
};
// Counts of the width or more, and negative ones, shift everything out; the mask keeps the shift
// itself defined.
struct ShiftLeft {
  template <class T>
  HWY_INLINE T operator()(T a, T b) const {
    using U = std::make_unsigned_t<T>;
    constexpr U kBits = 8 * sizeof(T);
    const auto shifted = static_cast<Wrapping<T>>(a) << (static_cast<U>(b) & (kBits - 1));
    return static_cast<U>(b) < kBits ? static_cast<T>(shifted) : T{0};
  }
};
struct ShiftRight {
  template <class T>
  HWY_INLINE T operator()(T a, T b) const {
    using U = std::make_unsigned_t<T>;
    constexpr U kBits = 8 * sizeof(T);
    const T sign = a < 0 ? static_cast<T>(-1) : T{0};
    const T shifted = static_cast<T>(a >> (static_cast<U>(b) & (kBits - 1)));
    return static_cast<U>(b) < kBits ? shifted : sign;
  }
};
struct Clamp {
  template <class T>
  HWY_INLINE T operator()(T x, T low, T high) const {
    return Min()(Max()(x, low), high);
  }
};
struct Fma {
  template <class T>
  HWY_INLINE T operator()(T a, T b, T c) const {
    return Add()(Mul()(a, b), c);
  }
};
/// By squaring. A negative exponent gives the truncated quotient.
struct Pow {
  template <class T>
  HWY_INLINE T operator()(T a, T b) const {
    if constexpr (std::is_signed_v<T>) {
      if (b < 0) return a == 1 ? 1 : a == -1 ? (b % 2 == 0 ? 1 : -1) : 0;
    }
    Wrapping<T> result = 1, base = static_cast<Wrapping<T>>(a);
    for (auto n = static_cast<std::make_unsigned_t<T>>(b); n != 0; n >>= 1, base *= base) {
      if (n & 1) result *= base;
    }
    return static_cast<T>(result);
  }
};

struct LogicalNot {
  HWY_INLINE std::uint8_t operator()(std::uint8_t x) const { return x ^ 1; }
};

// Quotients, element by element (no instruction set here divides integers). A divisor of 0 is a
// fault of the run and gives 0.
struct Div {
  template <class T>
  HWY_INLINE T operator()(T a, T b) const {
    if constexpr (std::is_signed_v<T>) {
      if (b == -1) return Neg()(a);
    }
    return static_cast<T>(a / b);
  }
};
struct Remainder {
  template <class T>
  HWY_INLINE T operator()(T a, T b) const {
    if constexpr (std::is_signed_v<T>) {
      if (b == -1) return 0;
    }
    return static_cast<T>(a % b);
  }
};
struct Modulo {
  template <class T>
  HWY_INLINE T operator()(T a, T b) const {
    const T r = Remainder()(a, b);
    return r != 0 && (r < 0) != (b < 0) ? static_cast<T>(r + b) : r;
  }
};

template <class T, class F>
void divide(const TileArgs& t) {
  const Elements<T> a(t, 0), b(t, 1);
  T* to = reinterpret_cast<T*>(t.to);
  for (std::size_t i = 0; i < t.count; ++i) {
    const T dividend = a.at[i & a.mask], divisor = b.at[i & b.mask];
    if (HWY_LIKELY(divisor != 0)) {
      to[i] = F()(dividend, divisor);
      continue;
    }
    t.run->faults.report(t.run->step, FaultKind::division_by_zero, t.first + i,
                         static_cast<std::int64_t>(dividend), 0);
    to[i] = 0;
  }
}

template <class T>
TileFunction find(const OpDef& op) {
  using Bool = std::uint8_t;
  static constexpr TileRow kRows[] = {
      {&neg_def, map_blocks1<T, T, Neg>},
      {&abs_def, map_blocks1<T, T, Abs>},
      {&sign_def, map_blocks1<T, T, Sign>},
      {&bitwise_not_def, map_blocks1<T, T, BitNot>},
      {&add_def, map_blocks2<T, T, Add>},
      {&sub_def, map_blocks2<T, T, Sub>},
      {&mul_def, map_blocks2<T, T, Mul>},
      {&div_def, divide<T, Div>},
      {&max_def, map_blocks2<T, T, Max>},
      {&min_def, map_blocks2<T, T, Min>},
      {&pow_def, map_blocks2<T, T, Pow>},
      {&remainder_def, divide<T, Remainder>},
      {&modulo_def, divide<T, Modulo>},
      {&bitwise_and_def, map_blocks2<T, T, BitAnd>},
      {&bitwise_or_def, map_blocks2<T, T, BitOr>},
      {&bitwise_xor_def, map_blocks2<T, T, BitXor>},
      {&shift_left_def, map_blocks2<T, T, ShiftLeft>},
      {&shift_right_def, map_blocks2<T, T, ShiftRight>},
      {&equal_def, map_blocks2<T, Bool, Equal>},
      {&not_equal_def, map_blocks2<T, Bool, NotEqual>},
      {&less_def, map_blocks2<T, Bool, Less>},
      {&less_equal_def, map_blocks2<T, Bool, LessEqual>},
      {&greater_def, map_blocks2<T, Bool, Greater>},
      {&greater_equal_def, map_blocks2<T, Bool, GreaterEqual>},
      {&select_def, map_blocks3<Bool, T, T, Select>},
      {&clamp_def, map_blocks3<T, T, T, Clamp>},
      {&fma_def, map_blocks3<T, T, T, Fma>},
  };
  return find_row(kRows, op);
}

TileFunction find_bool(const OpDef& op) {
  using Bool = std::uint8_t;
  static constexpr TileRow kRows[] = {
      {&logical_not_def, map_blocks1<Bool, Bool, LogicalNot>},
      {&logical_and_def, map_blocks2<Bool, Bool, BitAnd>},
      {&logical_or_def, map_blocks2<Bool, Bool, BitOr>},
      {&logical_xor_def, map_blocks2<Bool, Bool, BitXor>},
      {&equal_def, map_blocks2<Bool, Bool, Equal>},
      {&not_equal_def, map_blocks2<Bool, Bool, NotEqual>},
      {&select_def, map_blocks3<Bool, Bool, Bool, Select>},
  };
  return find_row(kRows, op);
}

}  // namespace

TileFunction integer_row(const OpDef& op, DType tile) {
  switch (tile) {
    case DType::i8:
      return find<std::int8_t>(op);
    case DType::i16:
      return find<std::int16_t>(op);
    case DType::i32:
      return find<std::int32_t>(op);
    case DType::i64:
      return find<std::int64_t>(op);
    case DType::u8:
      return find<std::uint8_t>(op);
    case DType::u16:
      return find<std::uint16_t>(op);
    case DType::u32:
      return find<std::uint32_t>(op);
    case DType::u64:
      return find<std::uint64_t>(op);
    case DType::boolean:
      return find_bool(op);
    default:
      return nullptr;
  }
}

}  // namespace rlx::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace rlx::cpu {

HWY_EXPORT(integer_row);

TileFunction integer_tile(const OpDef& op, DType tile) noexcept {
  return HWY_DYNAMIC_DISPATCH(integer_row)(op, tile);
}

}  // namespace rlx::cpu
#endif
