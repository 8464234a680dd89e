// The float32 GEMM micro-kernel, read once per instruction set by gemm_{avx512,avx2,baseline}.cpp
// within their target pragma. The including namespace defines `Simd`: V, kLanes, kMaxRows,
// kVectors, zero, set, load, load_n, store, store_n, fma, transpose.
// No include guard and no includes: standard headers must not be compiled for the target.

// Full unrolling keeps the accumulators in registers at every optimisation level.
#if defined(__clang__)
#define RLX_UNROLL _Pragma("clang loop unroll(full)")
#else
#define RLX_UNROLL _Pragma("GCC unroll 16")
#endif

template <int kRows, int kVectors>
struct Accumulators {
  Simd::V v[kRows][kVectors];
};

template <int kRows, int kVectors>
inline __attribute__((always_inline)) void step(Accumulators<kRows, kVectors>& acc, const float* a,
                                                const float* b) {
  Simd::V column[kVectors];
  RLX_UNROLL
  for (int j = 0; j < kVectors; ++j) column[j] = Simd::load(b + j * Simd::kLanes);
  RLX_UNROLL
  for (int i = 0; i < kRows; ++i) {
    const Simd::V row = Simd::set(a[i]);
    RLX_UNROLL
    for (int j = 0; j < kVectors; ++j) acc.v[i][j] = Simd::fma(row, column[j], acc.v[i][j]);
  }
}

/// The output of a tile where all its columns exist.
template <int kRows, int kVectors>
struct WholeTile {
  static Simd::V load(const float* p, std::size_t) { return Simd::load(p); }
  static void store(float* p, Simd::V v, std::size_t) { Simd::store(p, v); }
};

/// The output of a tile that ends within its last vector.
template <int kRows, int kVectors>
struct CutTile {
  static Simd::V load(const float* p, std::size_t n) { return Simd::load_n(p, n); }
  static void store(float* p, Simd::V v, std::size_t n) { Simd::store_n(p, v, n); }
};

template <int kRows, int kVectors, class Output>
inline __attribute__((always_inline)) void load_tile(const GemmTile& t,
                                                     Accumulators<kRows, kVectors>& acc) {
  const std::size_t rest = t.cols - (kVectors - 1) * Simd::kLanes;
  RLX_UNROLL
  for (int i = 0; i < kRows; ++i) {
    RLX_UNROLL
    for (int j = 0; j < kVectors; ++j) {
      const float* p = t.partial + i * t.partial_ld + j * Simd::kLanes;
      acc.v[i][j] = j + 1 < kVectors ? Simd::load(p) : Output::load(p, rest);
    }
  }
}

template <int kRows, int kVectors, class Output>
inline __attribute__((always_inline)) void finish_tile(const GemmTile& t,
                                                       Accumulators<kRows, kVectors>& acc) {
  const std::size_t rest = t.cols - (kVectors - 1) * Simd::kLanes;
  const Simd::V alpha = Simd::set(t.alpha);
  RLX_UNROLL
  for (int j = 0; j < kVectors; ++j) {
    const float* p = t.bias + j * Simd::kLanes;
    Simd::V bias = Simd::zero();
    if (t.bias) bias = j + 1 < kVectors ? Simd::load(p) : Output::load(p, rest);
    RLX_UNROLL
    for (int i = 0; i < kRows; ++i) acc.v[i][j] = Simd::fma(alpha, acc.v[i][j], bias);
  }
}

template <int kRows, int kVectors, class Output>
inline __attribute__((always_inline)) void store_tile(const GemmTile& t,
                                                      const Accumulators<kRows, kVectors>& acc) {
  const std::size_t rest = t.cols - (kVectors - 1) * Simd::kLanes;
  RLX_UNROLL
  for (int i = 0; i < kRows; ++i) {
    RLX_UNROLL
    for (int j = 0; j < kVectors; ++j) {
      float* p = t.out + i * t.out_ld + j * Simd::kLanes;
      if (j + 1 < kVectors) {
        Simd::store(p, acc.v[i][j]);
      } else {
        Output::store(p, acc.v[i][j], rest);
      }
    }
  }
}

template <int kRows, int kVectors, class Output>
inline __attribute__((always_inline)) void run_tile(const GemmTile& t) {
  constexpr std::size_t kWidth = kVectors * Simd::kLanes;
  Accumulators<kRows, kVectors> acc;
  RLX_UNROLL
  for (int i = 0; i < kRows; ++i) {
    __builtin_prefetch(t.out + i * t.out_ld, 1);
    RLX_UNROLL
    for (int j = 0; j < kVectors; ++j) acc.v[i][j] = Simd::zero();
  }
  if (t.partial) load_tile<kRows, kVectors, Output>(t, acc);

  const float* a = t.a;
  const float* b = t.b;
  const char* prefetch = t.prefetch;
  std::size_t k = t.k;
  for (; k >= 4; k -= 4) {
    for (const char* end = prefetch + t.prefetch_bytes; prefetch < end; prefetch += 64) {
      __builtin_prefetch(prefetch);
    }
    RLX_UNROLL
    for (int u = 0; u < 4; ++u) step(acc, a + u * kRows, b + u * kWidth);
    a += 4 * kRows;
    b += 4 * kWidth;
  }
  for (; k > 0; --k, a += kRows, b += kWidth) step(acc, a, b);

  if (t.last) finish_tile<kRows, kVectors, Output>(t, acc);
  store_tile<kRows, kVectors, Output>(t, acc);
}

template <int kRows, int kVectors>
void gemm_tile(const GemmTile& t) {
  if (t.cols == kVectors * Simd::kLanes) {
    run_tile<kRows, kVectors, WholeTile<kRows, kVectors>>(t);
  } else {
    run_tile<kRows, kVectors, CutTile<kRows, kVectors>>(t);
  }
}

/// Transposes lanes × lanes blocks in registers. Each stored column of a tile narrower than a
/// vector runs over into the next one, which is written later.
void pack_a(const float* a, std::size_t lda, std::size_t rows, std::size_t k, float* packed) {
  for (std::size_t r0 = 0; r0 < rows; r0 += Simd::kLanes) {
    const std::size_t count = std::min<std::size_t>(Simd::kLanes, rows - r0);
    for (std::size_t k0 = 0; k0 < k; k0 += Simd::kLanes) {
      const std::size_t width = std::min<std::size_t>(Simd::kLanes, k - k0);
      Simd::V block[Simd::kLanes];
      for (std::size_t i = 0; i < Simd::kLanes; ++i) {
        const float* p = a + (r0 + i) * lda + k0;
        block[i] = i >= count              ? Simd::zero()
                   : width == Simd::kLanes ? Simd::load(p)
                                           : Simd::load_n(p, width);
      }
      Simd::transpose(block);
      for (std::size_t i = 0; i < width; ++i) {
        float* to = packed + (k0 + i) * rows + r0;
        if (r0 == 0 || count == Simd::kLanes) {
          Simd::store(to, block[i]);
        } else {
          Simd::store_n(to, block[i], count);  // the next column's first rows are there already
        }
      }
    }
  }
}

template <int kVectors, int... kRowsLessOne>
constexpr void fill_row_counts(void (**tiles)(const GemmTile&),
                               std::integer_sequence<int, kRowsLessOne...>) {
  ((tiles[kRowsLessOne] = gemm_tile<kRowsLessOne + 1, kVectors>), ...);
}

struct TileTable {
  void (*tiles[Simd::kMaxRows * Simd::kVectors])(const GemmTile&);
};

template <int... kVectorsLessOne>
constexpr TileTable make_tile_table(std::integer_sequence<int, kVectorsLessOne...>) {
  TileTable table{};
  (fill_row_counts<kVectorsLessOne + 1>(table.tiles + kVectorsLessOne * Simd::kMaxRows,
                                        std::make_integer_sequence<int, Simd::kMaxRows>()),
   ...);
  return table;
}

constexpr TileTable kTileTable = make_tile_table(std::make_integer_sequence<int, Simd::kVectors>());
