// The 8-bit GEMM micro-kernel, read once per instruction set by gemm_int8_*.cpp within their target
// pragma. The including namespace defines `Simd`: V, kLanes, kMaxRows, kVectors, kGroup, zero, set,
// load, store, store_n, add, sub, mul, dot, settle. No include guard and no includes: standard
// headers must not be compiled for the target.

#if defined(__clang__)
#define RLX_UNROLL _Pragma("clang loop unroll(full)")
#else
#define RLX_UNROLL _Pragma("GCC unroll 16")
#endif
#define RLX_INLINE inline __attribute__((always_inline))

template <int kRows, int kVectors>
struct Sums {
  Simd::V v[kRows][kVectors];
};

RLX_INLINE std::int32_t four_bytes(const char* p) {
  std::int32_t value;
  __builtin_memcpy(&value, p, sizeof value);
  return value;
}

/// As in gemm_tile-inl.h: an address for every three rows.
template <int kRows>
struct RowCursor {
  static constexpr int kAddresses = (kRows + 2) / 3;
  RowCursor(const char* a, std::size_t row_stride) : stride(row_stride) {
    RLX_UNROLL
    for (int i = 0; i < kAddresses; ++i) at[i] = a + 3 * i * row_stride;
  }
  const char* row(int i) const { return at[i / 3] + (i % 3) * stride; }
  void advance(int groups) {
    RLX_UNROLL
    for (int i = 0; i < kAddresses; ++i) at[i] += 4 * groups;
  }
  const char* at[kAddresses];
  std::size_t stride;
};

template <int kRows, int kVectors>
RLX_INLINE void step(Sums<kRows, kVectors>& sums, const RowCursor<kRows>& a, int ahead,
                     const char* b) {
  Simd::V column[kVectors];
  RLX_UNROLL
  for (int j = 0; j < kVectors; ++j) column[j] = Simd::load(b + j * Simd::kLanes * 4);
  RLX_UNROLL
  for (int i = 0; i < kRows; ++i) {
    const Simd::V row = Simd::set(four_bytes(a.row(i) + 4 * ahead));
    RLX_UNROLL
    for (int j = 0; j < kVectors; ++j) {
      sums.v[i][j] = Simd::dot(sums.v[i][j], row, column[j]);
    }
  }
}

template <int kRows, int kVectors>
RLX_INLINE void store_tile(const Int8Tile& t, const Sums<kRows, kVectors>& sums) {
  RLX_UNROLL
  for (int j = 0; j < kVectors; ++j) {
    const std::size_t at = j * Simd::kLanes;
    const Simd::V term = Simd::load(t.column_terms + at);
    const Simd::V zeros = t.column_zeros ? Simd::load(t.column_zeros + at) : Simd::zero();
    const std::size_t rest = t.cols - at;
    RLX_UNROLL
    for (int i = 0; i < kRows; ++i) {
      Simd::V x = Simd::add(sums.v[i][j], term);
      if (t.column_zeros) x = Simd::sub(x, Simd::mul(zeros, Simd::set(t.row_sums[i])));
      if (rest >= Simd::kLanes) {
        Simd::store(t.c + i * t.ldc + at, x);
      } else {
        Simd::store_n(t.c + i * t.ldc + at, x, rest);
      }
    }
  }
}

template <int kRows, int kVectors>
void int8_tile(const Int8Tile& t) {
  Sums<kRows, kVectors> sums;
  RLX_UNROLL
  for (int i = 0; i < kRows; ++i) {
    RLX_UNROLL
    for (int j = 0; j < kVectors; ++j) sums.v[i][j] = Simd::zero();
  }
  RowCursor<kRows> a(t.a, t.lda);
  const char* b = t.b;
  const char* prefetch = t.prefetch;
  constexpr int kGroupBytes = kVectors * Simd::kLanes * 4;
  std::size_t groups = t.groups;
  for (; groups >= 4; groups -= 4) {
    for (const char* end = prefetch + t.prefetch_bytes; prefetch < end; prefetch += 64) {
      __builtin_prefetch(prefetch);
    }
    RLX_UNROLL
    for (int u = 0; u < 4; ++u) step(sums, a, u, b + u * kGroupBytes);
    a.advance(4);
    b += 4 * kGroupBytes;
  }
  for (; groups > 0; --groups, a.advance(1), b += kGroupBytes) step(sums, a, 0, b);
  // Without this GCC 12 keeps a second copy of each sum for the code below and spills in the loop.
  RLX_UNROLL
  for (int i = 0; i < kRows; ++i) {
    RLX_UNROLL
    for (int j = 0; j < kVectors; ++j) Simd::settle(sums.v[i][j]);
  }
  store_tile(t, sums);
}

template <int kVectors, int... kRowsLessOne>
constexpr void fill_tiles(Int8TileFunction* tiles, std::integer_sequence<int, kRowsLessOne...>) {
  ((tiles[kRowsLessOne] = int8_tile<kRowsLessOne + 1, kVectors>), ...);
}

struct TileTable {
  Int8TileFunction tiles[Simd::kMaxRows * Simd::kVectors];
};

constexpr TileTable make_tile_table() {
  static_assert(Simd::kVectors == 2);
  TileTable table{};
  constexpr auto kRows = std::make_integer_sequence<int, Simd::kMaxRows>();
  fill_tiles<1>(table.tiles, kRows);
  fill_tiles<2>(table.tiles + Simd::kMaxRows, kRows);
  return table;
}

constexpr TileTable kTable = make_tile_table();
