// The float32 GEMM micro-kernel, read once per instruction set by gemm_{avx512,avx2,baseline}.cpp
// within their target pragma. The including namespace defines `Simd`: V, kLanes, kMaxRows,
// kVectors, zero, set, load, load_n, store, store_n, fma.
// No include guard and no includes: standard headers must not be compiled for the target.

// Full unrolling keeps the accumulators in registers at every optimisation level.
#if defined(__clang__)
#define RLX_UNROLL _Pragma("clang loop unroll(full)")
#else
#define RLX_UNROLL _Pragma("GCC unroll 16")
#endif
#define RLX_INLINE inline __attribute__((always_inline))

/// The shape of a tile: rows, vectors across a panel, panels. It ends within its last vector if it
/// is `kCut`.
template <int kRowCount, int kPanelVectors, int kPanelCount, bool kCutLast>
struct TileShape {
  static constexpr int kRows = kRowCount, kPanels = kPanelCount;
  static constexpr int kVectors = kPanelVectors * kPanelCount;
  static constexpr std::size_t kWidth = kPanelVectors * Simd::kLanes;
  static constexpr bool kCut = kCutLast;

  /// Where vector `j` of a row of B stands.
  static const float* in_b(const float* b, std::size_t panel_stride, int j) {
    return b + (j / kPanelVectors) * panel_stride + (j % kPanelVectors) * Simd::kLanes;
  }
  static Simd::V load(const float* row, int j, std::size_t cols) {
    const float* p = row + j * Simd::kLanes;
    if (kCut && j + 1 == kVectors) return Simd::load_n(p, cols - j * Simd::kLanes);
    return Simd::load(p);
  }
  static void store(float* row, int j, std::size_t cols, Simd::V v) {
    float* p = row + j * Simd::kLanes;
    if (kCut && j + 1 == kVectors) return Simd::store_n(p, v, cols - j * Simd::kLanes);
    Simd::store(p, v);
  }
};

template <class Shape>
struct Accumulators {
  Simd::V v[Shape::kRows][Shape::kVectors];
};

/// Where the rows of A stand: an address for every three of them, since x86 adds one or two strides
/// to an address for free.
template <class Shape>
struct RowCursor {
  static constexpr int kAddresses = (Shape::kRows + 2) / 3;

  RowCursor(const float* a, std::size_t row_stride) : stride(row_stride) {
    RLX_UNROLL
    for (int i = 0; i < kAddresses; ++i) at[i] = a + 3 * i * row_stride;
  }
  const float* row(int i) const { return at[i / 3] + (i % 3) * stride; }
  void advance(int steps) {
    RLX_UNROLL
    for (int i = 0; i < kAddresses; ++i) at[i] += steps;
  }

  const float* at[kAddresses];
  std::size_t stride;
};

template <class Shape>
RLX_INLINE void step(Accumulators<Shape>& acc, const RowCursor<Shape>& a, int ahead, const float* b,
                     std::size_t panel_stride) {
  Simd::V column[Shape::kVectors];
  RLX_UNROLL
  for (int j = 0; j < Shape::kVectors; ++j) {
    column[j] = Simd::load(Shape::in_b(b, panel_stride, j));
  }
  RLX_UNROLL
  for (int i = 0; i < Shape::kRows; ++i) {
    const Simd::V row = Simd::set(a.row(i)[ahead]);
    RLX_UNROLL
    for (int j = 0; j < Shape::kVectors; ++j) acc.v[i][j] = Simd::fma(row, column[j], acc.v[i][j]);
  }
}

template <class Shape>
RLX_INLINE void start_tile(const GemmTile& t, Accumulators<Shape>& acc) {
  RLX_UNROLL
  for (int i = 0; i < Shape::kRows; ++i) {
    __builtin_prefetch(t.out + i * t.out_ld, 1);
    RLX_UNROLL
    for (int j = 0; j < Shape::kVectors; ++j) acc.v[i][j] = Simd::zero();
  }
  if (!t.partial) return;
  RLX_UNROLL
  for (int i = 0; i < Shape::kRows; ++i) {
    RLX_UNROLL
    for (int j = 0; j < Shape::kVectors; ++j) {
      acc.v[i][j] = Shape::load(t.partial + i * t.partial_ld, j, t.cols);
    }
  }
}

template <class Shape>
RLX_INLINE void finish_tile(const GemmTile& t, Accumulators<Shape>& acc) {
  const Simd::V alpha = Simd::set(t.alpha);
  RLX_UNROLL
  for (int j = 0; j < Shape::kVectors; ++j) {
    const Simd::V bias = t.bias ? Shape::load(t.bias, j, t.cols) : Simd::zero();
    RLX_UNROLL
    for (int i = 0; i < Shape::kRows; ++i) acc.v[i][j] = Simd::fma(alpha, acc.v[i][j], bias);
  }
}

template <class Shape>
RLX_INLINE void store_tile(const GemmTile& t, const Accumulators<Shape>& acc) {
  RLX_UNROLL
  for (int i = 0; i < Shape::kRows; ++i) {
    RLX_UNROLL
    for (int j = 0; j < Shape::kVectors; ++j) {
      Shape::store(t.out + i * t.out_ld, j, t.cols, acc.v[i][j]);
    }
  }
}

template <class Shape>
RLX_INLINE void prefetch_b(const char* from, std::size_t bytes, std::size_t panel_stride) {
  RLX_UNROLL
  for (int p = 0; p < Shape::kPanels; ++p) {
    const char* line = from + p * panel_stride * sizeof(float);
    for (const char* end = line + bytes; line < end; line += 64) __builtin_prefetch(line);
  }
}

template <class Shape>
RLX_INLINE void run_tile(const GemmTile& t) {
  Accumulators<Shape> acc;
  start_tile(t, acc);
  RowCursor<Shape> a(t.a, t.lda);
  const float* b = t.b;
  const char* prefetch = t.prefetch;
  const std::size_t panel_stride = t.panel_stride;
  std::size_t k = t.k;
  for (; k >= 4; k -= 4) {
    prefetch_b<Shape>(prefetch, t.prefetch_bytes, panel_stride);
    prefetch += t.prefetch_bytes;
    RLX_UNROLL
    for (int u = 0; u < 4; ++u) {
      step(acc, a, u, b + u * Shape::kWidth, panel_stride);
    }
    a.advance(4);
    b += 4 * Shape::kWidth;
  }
  for (; k > 0; --k, a.advance(1), b += Shape::kWidth) step(acc, a, 0, b, panel_stride);
  if (t.last) finish_tile(t, acc);
  store_tile(t, acc);
}

template <int kRows, int kVectors>
void gemm_tile(const GemmTile& t) {
  if (t.cols == kVectors * Simd::kLanes) {
    run_tile<TileShape<kRows, kVectors, 1, false>>(t);
  } else {
    run_tile<TileShape<kRows, kVectors, 1, true>>(t);
  }
}

template <int kRows>
void gemm_wide_tile(const GemmTile& t) {
  run_tile<TileShape<kRows, Simd::kVectors, panels_at_once(kRows), false>>(t);
}

/// The kernels of this instruction set by vectors and rows.
struct KernelTable {
  GemmTileFunction tiles[Simd::kMaxRows * Simd::kVectors];
  GemmTileFunction wide_tiles[Simd::kMaxRows];
};

template <int kVectors, int... kRowsLessOne>
constexpr void fill_tiles(GemmTileFunction* tiles, std::integer_sequence<int, kRowsLessOne...>) {
  ((tiles[kRowsLessOne] = gemm_tile<kRowsLessOne + 1, kVectors>), ...);
}

template <int... kRowsLessOne>
constexpr KernelTable make_kernel_table(std::integer_sequence<int, kRowsLessOne...> rows) {
  static_assert(Simd::kVectors == 2);
  KernelTable table{};
  fill_tiles<1>(table.tiles, rows);
  fill_tiles<2>(table.tiles + Simd::kMaxRows, rows);
  ((table.wide_tiles[kRowsLessOne] = gemm_wide_tile<kRowsLessOne + 1>), ...);
  return table;
}

constexpr KernelTable kTable = make_kernel_table(std::make_integer_sequence<int, Simd::kMaxRows>());
