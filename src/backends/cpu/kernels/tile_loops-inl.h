// Loops over tiles, shared by the files of tile operations. Include after Highway's
// foreach_target.h; the file is read once per instruction set.

#if defined(RLX_CPU_TILE_LOOPS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef RLX_CPU_TILE_LOOPS_INL_H_
#undef RLX_CPU_TILE_LOOPS_INL_H_
#else
#define RLX_CPU_TILE_LOOPS_INL_H_
#endif

#include <hwy/highway.h>

#include <cstring>

#include "backends/cpu/kernels/tile.h"

HWY_BEFORE_NAMESPACE();
namespace rlx::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

/// Operand `i` of a tile as elements of T.
template <class T>
struct Elements {
  const T* at;
  std::size_t mask;
  Elements(const TileArgs& t, std::size_t i)
      : at(reinterpret_cast<const T*>(t.in[i])), mask(t.mask[i]) {}
  template <class D>
  HWY_INLINE auto load(D d, std::size_t i) const {
    return hn::LoadU(d, at + (i & mask));
  }
  /// The last elements, fewer than a vector: through a buffer, so that nothing beyond is touched.
  template <class D>
  HWY_INLINE auto load_rest(D d, std::size_t i, std::size_t count) const {
    if (mask == 0) return hn::LoadU(d, at);
    HWY_ALIGN T rest[hn::MaxLanes(D())] = {};
    std::memcpy(rest, at + i, count * sizeof(T));
    return hn::Load(d, rest);
  }
};

template <class D, class V, class T>
HWY_INLINE void store_rest(D d, V v, T* to, std::size_t count) {
  HWY_ALIGN T rest[hn::MaxLanes(D())];
  hn::Store(v, d, rest);
  std::memcpy(to, rest, count * sizeof(T));
}

/// An operand that is one element: its vector stays in a register for the whole tile.
template <class T>
struct Repeated {
  hn::Vec<hn::ScalableTag<T>> vector;
  explicit Repeated(const Elements<T>& x) : vector(hn::LoadU(hn::ScalableTag<T>(), x.at)) {}
  template <class D>
  HWY_INLINE auto load(D, std::size_t) const {
    return vector;
  }
  template <class D>
  HWY_INLINE auto load_rest(D, std::size_t, std::size_t) const {
    return vector;
  }
};

/// An operand that is known to have an element of its own at each place.
template <class T>
struct Own : Elements<T> {
  explicit Own(const Elements<T>& x) : Elements<T>(x) {}
  template <class D>
  HWY_INLINE auto load(D d, std::size_t i) const {
    return hn::LoadU(d, this->at + i);
  }
};

template <class T, class F, class... Operands>
HWY_INLINE void map_all(const TileArgs& t, const Operands&... x) {
  const hn::ScalableTag<T> d;
  const std::size_t lanes = hn::Lanes(d);
  T* to = reinterpret_cast<T*>(t.to);
  std::size_t i = 0;
  for (; i + lanes <= t.count; i += lanes) hn::StoreU(F()(d, x.load(d, i)...), d, to + i);
  if (i < t.count) {
    const std::size_t rest = t.count - i;
    store_rest(d, F()(d, x.load_rest(d, i, rest)...), to + i, rest);
  }
}

/// to[i] = f(d, x[i]) on vectors of T.
template <class T, class F>
void map1(const TileArgs& t) {
  const Elements<T> x(t, 0);
  if (x.mask != 0) return map_all<T, F>(t, Own<T>(x));
  map_all<T, F>(t, Repeated<T>(x));
}

template <class T, class F>
void map2(const TileArgs& t) {
  const Elements<T> a(t, 0), b(t, 1);
  if (a.mask != 0 && b.mask != 0) return map_all<T, F>(t, Own<T>(a), Own<T>(b));
  if (a.mask != 0) return map_all<T, F>(t, Own<T>(a), Repeated<T>(b));
  map_all<T, F>(t, Repeated<T>(a), b);
}

/// As `map2`; the cases with loops of their own are those that scales, shifts and limits make.
template <class T, class F>
void map3(const TileArgs& t) {
  const Elements<T> a(t, 0), b(t, 1), c(t, 2);
  if (a.mask != 0 && b.mask == 0 && c.mask == 0)
    return map_all<T, F>(t, Own<T>(a), Repeated<T>(b), Repeated<T>(c));
  if (a.mask != 0 && b.mask == 0 && c.mask != 0)
    return map_all<T, F>(t, Own<T>(a), Repeated<T>(b), Own<T>(c));
  map_all<T, F>(t, a, b, c);
}

/// Elements of T that a block loop takes at once.
inline constexpr std::size_t kBlock = 64;

/// One block of an operand in memory of its own.
template <class T>
struct Block {
  alignas(64) T at[kBlock];

  HWY_INLINE void load(const Elements<T>& x, std::size_t i, std::size_t count) {
    if (x.mask == 0) {
      for (T& v : at) v = x.at[0];
    } else if (count == kBlock) {
      std::memcpy(at, x.at + i, sizeof(at));
    } else {
      // What lies beyond is computed too and must be a number that no function minds.
      std::memcpy(at, x.at + i, count * sizeof(T));
      for (std::size_t j = count; j < kBlock; ++j) at[j] = x.at[i];
    }
  }
  HWY_INLINE void store(T* to, std::size_t i, std::size_t count) const {
    if (count == kBlock) {
      std::memcpy(to + i, at, sizeof(at));
    } else {
      std::memcpy(to + i, at, count * sizeof(T));
    }
  }
};

// The block loops run scalar functors over blocks of fixed length that alias nothing, which the
// compiler turns into vectors of the instruction set, whatever the element types.

/// to[i] = f(x[i]), elements of T to elements of R.
template <class T, class R, class F>
void map_blocks1(const TileArgs& t) {
  const Elements<T> x(t, 0);
  for (std::size_t i = 0; i < t.count; i += kBlock) {
    const std::size_t count = HWY_MIN(kBlock, t.count - i);
    Block<T> a;
    Block<R> y;
    a.load(x, i, count);
    for (std::size_t j = 0; j < kBlock; ++j) y.at[j] = static_cast<R>(F()(a.at[j]));
    y.store(reinterpret_cast<R*>(t.to), i, count);
  }
}

template <class T, class R, class F>
void map_blocks2(const TileArgs& t) {
  const Elements<T> u(t, 0), v(t, 1);
  for (std::size_t i = 0; i < t.count; i += kBlock) {
    const std::size_t count = HWY_MIN(kBlock, t.count - i);
    Block<T> a, b;
    Block<R> y;
    a.load(u, i, count);
    b.load(v, i, count);
    for (std::size_t j = 0; j < kBlock; ++j) y.at[j] = static_cast<R>(F()(a.at[j], b.at[j]));
    y.store(reinterpret_cast<R*>(t.to), i, count);
  }
}

/// The first operand has elements of C.
template <class C, class T, class R, class F>
void map_blocks3(const TileArgs& t) {
  const Elements<C> u(t, 0);
  const Elements<T> v(t, 1), w(t, 2);
  for (std::size_t i = 0; i < t.count; i += kBlock) {
    const std::size_t count = HWY_MIN(kBlock, t.count - i);
    Block<C> a;
    Block<T> b, c;
    Block<R> y;
    a.load(u, i, count);
    b.load(v, i, count);
    c.load(w, i, count);
    for (std::size_t j = 0; j < kBlock; ++j)
      y.at[j] = static_cast<R>(F()(a.at[j], b.at[j], c.at[j]));
    y.store(reinterpret_cast<R*>(t.to), i, count);
  }
}

struct Equal {
  template <class T>
  HWY_INLINE bool operator()(T a, T b) const {
    return a == b;
  }
};
struct NotEqual {
  template <class T>
  HWY_INLINE bool operator()(T a, T b) const {
    return a != b;
  }
};
struct Less {
  template <class T>
  HWY_INLINE bool operator()(T a, T b) const {
    return a < b;
  }
};
struct LessEqual {
  template <class T>
  HWY_INLINE bool operator()(T a, T b) const {
    return a <= b;
  }
};
struct Greater {
  template <class T>
  HWY_INLINE bool operator()(T a, T b) const {
    return a > b;
  }
};
struct GreaterEqual {
  template <class T>
  HWY_INLINE bool operator()(T a, T b) const {
    return a >= b;
  }
};
struct Select {
  template <class T>
  HWY_INLINE T operator()(std::uint8_t on, T a, T b) const {
    return on != 0 ? a : b;
  }
};

/// Rows of a table of tile functions.
struct TileRow {
  const OpDef* op;
  TileFunction function;
};

template <std::size_t N>
TileFunction find_row(const TileRow (&rows)[N], const OpDef& op) {
  for (const TileRow& row : rows) {
    if (row.op == &op) return row.function;
  }
  return nullptr;
}

}  // namespace rlx::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
