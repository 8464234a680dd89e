#include <cmath>
#include <limits>

#include "backends/cpu/kernels/tile.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/kernels/tile_float.cpp"
#include <hwy/foreach_target.h>
// After foreach_target.h, which includes this file again for each instruction set.
#include <hwy/highway.h>

#include "backends/cpu/kernels/tile_loops-inl.h"
#include "backends/cpu/kernels/vector_math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace rlx::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;
namespace {

// Arithmetic of f32 and f64: each result is the IEEE one, rounded once, unless said otherwise.

struct Neg {
  template <class D, class V>
  HWY_INLINE V operator()(D, V x) const {
    return hn::Neg(x);
  }
};
struct Abs {
  template <class D, class V>
  HWY_INLINE V operator()(D, V x) const {
    return hn::Abs(x);
  }
};
struct Sign {
  template <class D, class V>
  HWY_INLINE V operator()(D d, V x) const {
    const V one = hn::CopySign(hn::Set(d, 1), x);
    return hn::IfThenElse(hn::Gt(hn::Abs(x), hn::Zero(d)), one, x);  // zeros and NaN stay
  }
};
struct Ceil {
  template <class D, class V>
  HWY_INLINE V operator()(D, V x) const {
    return hn::Ceil(x);
  }
};
struct Floor {
  template <class D, class V>
  HWY_INLINE V operator()(D, V x) const {
    return hn::Floor(x);
  }
};
struct Round {
  template <class D, class V>
  HWY_INLINE V operator()(D, V x) const {
    return hn::Round(x);
  }
};
struct Trunc {
  template <class D, class V>
  HWY_INLINE V operator()(D, V x) const {
    return hn::Trunc(x);
  }
};
struct Sqrt {
  template <class D, class V>
  HWY_INLINE V operator()(D, V x) const {
    return hn::Sqrt(x);
  }
};
struct Rsqrt {  // 1.5 ulp
  template <class D, class V>
  HWY_INLINE V operator()(D d, V x) const {
    return hn::Div(hn::Set(d, 1), hn::Sqrt(x));
  }
};
struct Reciprocal {
  template <class D, class V>
  HWY_INLINE V operator()(D d, V x) const {
    return hn::Div(hn::Set(d, 1), x);
  }
};
struct Relu {
  template <class D, class V>
  HWY_INLINE V operator()(D d, V x) const {
    return at_least(d, 0, x);
  }
};

// Products of a factor that is 0 at infinity: the other one must be finite there.
template <class D, class V>
HWY_INLINE V above_minus_infinity(D d, V x) {
  return hn::Max(hn::Set(d, std::numeric_limits<hn::TFromD<D>>::lowest()), x);
}

struct HardSwish {  // 1.5 ulp; x/6·gate instead would lose the large ones
  template <class D, class V>
  HWY_INLINE V operator()(D d, V x) const {
    const V gate = at_least(d, 0, at_most(d, 6, hn::Add(x, hn::Set(d, 3))));
    return hn::Mul(above_minus_infinity(d, x), hn::Div(gate, hn::Set(d, 6)));
  }
};
struct Softsign {  // 1 ulp
  template <class D, class V>
  HWY_INLINE V operator()(D d, V x) const {
    const V largest = hn::Set(d, std::numeric_limits<hn::TFromD<D>>::max());
    const V finite = above_minus_infinity(d, hn::Min(largest, x));
    return hn::Div(finite, hn::Add(hn::Set(d, 1), hn::Abs(finite)));
  }
};

struct Add {
  template <class D, class V>
  HWY_INLINE V operator()(D, V a, V b) const {
    return hn::Add(a, b);
  }
};
struct Sub {
  template <class D, class V>
  HWY_INLINE V operator()(D, V a, V b) const {
    return hn::Sub(a, b);
  }
};
struct Mul {
  template <class D, class V>
  HWY_INLINE V operator()(D, V a, V b) const {
    return hn::Mul(a, b);
  }
};
struct Div {
  template <class D, class V>
  HWY_INLINE V operator()(D, V a, V b) const {
    return hn::Div(a, b);
  }
};
// x86's instructions give the second operand where one is NaN, and of two zeros.
struct Max {
  template <class D, class V>
  HWY_INLINE V operator()(D, V a, V b) const {
    const V greater = hn::IfThenElse(hn::Eq(a, b), hn::And(a, b), hn::Max(a, b));
    return hn::IfThenElse(hn::IsNaN(a), a, greater);
  }
};
struct Min {
  template <class D, class V>
  HWY_INLINE V operator()(D, V a, V b) const {
    const V lesser = hn::IfThenElse(hn::Eq(a, b), hn::Or(a, b), hn::Min(a, b));
    return hn::IfThenElse(hn::IsNaN(a), a, lesser);
  }
};
struct Clamp {
  template <class D, class V>
  HWY_INLINE V operator()(D d, V x, V low, V high) const {
    return Min()(d, Max()(d, x, low), high);
  }
};
struct MulAdd {
  template <class D, class V>
  HWY_INLINE V operator()(D, V a, V b, V c) const {
    return hn::Add(hn::Mul(a, b), c);
  }
};

#if HWY_TARGET == HWY_AVX2 || HWY_TARGET == HWY_AVX3
struct Fma {
  template <class D, class V>
  HWY_INLINE V operator()(D, V a, V b, V c) const {
    return hn::MulAdd(a, b, c);
  }
};
template <class T>
constexpr TileFunction kFma = map3<T, Fma>;
#else
// Without the instruction: the C library's, which rounds once in software.
struct Fma {
  template <class T>
  HWY_INLINE T operator()(T a, T b, T c) const {
    return std::fma(a, b, c);
  }
};
template <class T>
constexpr TileFunction kFma = map_blocks3<T, T, T, Fma>;
#endif

struct IsNan {
  template <class T>
  HWY_INLINE bool operator()(T x) const {
    return x != x;
  }
};
struct IsInf {
  template <class T>
  HWY_INLINE bool operator()(T x) const {
    return std::fabs(x) == std::numeric_limits<T>::infinity();
  }
};

template <class T>
TileFunction find(const OpDef& op) {
  using Bool = std::uint8_t;
  static constexpr TileRow kRows[] = {
      {&neg_def, map1<T, Neg>},
      {&abs_def, map1<T, Abs>},
      {&sign_def, map1<T, Sign>},
      {&ceil_def, map1<T, Ceil>},
      {&floor_def, map1<T, Floor>},
      {&round_def, map1<T, Round>},
      {&trunc_def, map1<T, Trunc>},
      {&sqrt_def, map1<T, Sqrt>},
      {&rsqrt_def, map1<T, Rsqrt>},
      {&reciprocal_def, map1<T, Reciprocal>},
      {&relu_def, map1<T, Relu>},
      {&hard_swish_def, map1<T, HardSwish>},
      {&softsign_def, map1<T, Softsign>},
      {&add_def, map2<T, Add>},
      {&sub_def, map2<T, Sub>},
      {&mul_def, map2<T, Mul>},
      {&div_def, map2<T, Div>},
      {&max_def, map2<T, Max>},
      {&min_def, map2<T, Min>},
      {&clamp_def, map3<T, Clamp>},
      {&fma_def, kFma<T>},
      {&is_nan_def, map_blocks1<T, Bool, IsNan>},
      {&is_inf_def, map_blocks1<T, Bool, IsInf>},
      {&equal_def, map_blocks2<T, Bool, Equal>},
      {&not_equal_def, map_blocks2<T, Bool, NotEqual>},
      {&less_def, map_blocks2<T, Bool, Less>},
      {&less_equal_def, map_blocks2<T, Bool, LessEqual>},
      {&greater_def, map_blocks2<T, Bool, Greater>},
      {&greater_equal_def, map_blocks2<T, Bool, GreaterEqual>},
      {&select_def, map_blocks3<Bool, T, T, Select>},
  };
  return find_row(kRows, op);
}

}  // namespace

TileFunction float_row(const OpDef& op, DType tile) {
  if (tile == DType::f32) return find<float>(op);
  if (tile == DType::f64) return find<double>(op);
  return nullptr;
}

TileFunction mul_add_row(DType tile) {
  if (tile == DType::f32) return map3<float, MulAdd>;
  if (tile == DType::f64) return map3<double, MulAdd>;
  return nullptr;
}

}  // namespace rlx::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace rlx::cpu {

HWY_EXPORT(float_row);
HWY_EXPORT(mul_add_row);

TileFunction float_tile(const OpDef& op, DType tile) noexcept {
  return HWY_DYNAMIC_DISPATCH(float_row)(op, tile);
}
TileFunction tile_mul_add(DType tile) noexcept { return HWY_DYNAMIC_DISPATCH(mul_add_row)(tile); }

}  // namespace rlx::cpu
#endif
