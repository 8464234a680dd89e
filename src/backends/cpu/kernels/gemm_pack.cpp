#include "backends/cpu/kernels/gemm_pack.h"

#include <algorithm>
#include <cstring>

#include "backends/cpu/kernels/convert_half.h"

namespace rlx::cpu {
namespace {

constexpr std::size_t kChunk = 64;  // steps of k converted or transposed at once

const char* at(const MatrixView& b, std::size_t k, std::size_t n) noexcept {
  const auto* base = static_cast<const char*>(b.data);
  return base + (k * b.row_stride + n * b.col_stride) * traits(b.dtype).block_bytes;
}

/// Contiguous elements as float32: in place where they are that, else converted into `buffer`.
const float* as_floats(const char* from, DType dtype, std::size_t count, float* buffer) noexcept {
  if (dtype == DType::f32) return reinterpret_cast<const float*>(from);
  convert_to_float(from, dtype, count, buffer);
  return buffer;
}

void copy_floats(const char* from, DType dtype, std::size_t count, float* to) noexcept {
  if (dtype == DType::f32) {
    std::memcpy(to, from, count * sizeof(float));
  } else {
    convert_to_float(from, dtype, count, to);
  }
}

/// One panel of B, columns [n, n + cols), padded to `width`.
struct Panel {
  std::size_t n;
  std::size_t cols;
  std::size_t width;
  float* packed;
};

void pack_rows_of_b(const MatrixView& b, std::size_t k, const Panel& panel) noexcept {
  for (std::size_t i = 0; i < k; ++i) {
    float* to = panel.packed + i * panel.width;
    copy_floats(at(b, i, panel.n), b.dtype, panel.cols, to);
    std::fill(to + panel.cols, to + panel.width, 0.0F);
  }
}

using Float4 = float __attribute__((vector_size(16)));

Float4 load4(const float* p) noexcept {
  Float4 v;
  std::memcpy(&v, p, sizeof v);
  return v;
}

/// Four columns of B, each contiguous over k, to [count][width].
void transpose_columns(const float* const (&columns)[4], std::size_t count, std::size_t width,
                       float* to) noexcept {
  std::size_t i = 0;
  for (; i + 4 <= count; i += 4, to += 4 * width) {
    const Float4 a = load4(columns[0] + i), b = load4(columns[1] + i);
    const Float4 c = load4(columns[2] + i), d = load4(columns[3] + i);
    const Float4 rows[4] = {{a[0], b[0], c[0], d[0]},
                            {a[1], b[1], c[1], d[1]},
                            {a[2], b[2], c[2], d[2]},
                            {a[3], b[3], c[3], d[3]}};
    for (int r = 0; r < 4; ++r) std::memcpy(to + r * width, &rows[r], sizeof rows[r]);
  }
  for (; i < count; ++i, to += width) {
    for (int j = 0; j < 4; ++j) to[j] = columns[j][i];
  }
}

void pack_columns_of_b(const MatrixView& b, std::size_t k, const Panel& panel) noexcept {
  static constexpr float kZeros[kChunk] = {};
  float converted[4][kChunk];
  for (std::size_t k0 = 0; k0 < k; k0 += kChunk) {
    const std::size_t count = std::min(kChunk, k - k0);
    for (std::size_t j = 0; j < panel.width; j += 4) {
      const float* columns[4];
      for (std::size_t c = 0; c < 4; ++c) {
        columns[c] = j + c < panel.cols
                         ? as_floats(at(b, k0, panel.n + j + c), b.dtype, count, converted[c])
                         : kZeros;
      }
      transpose_columns(columns, count, panel.width, panel.packed + k0 * panel.width + j);
    }
  }
}

void pack_elements_of_b(const MatrixView& b, std::size_t k, const Panel& panel) noexcept {
  for (std::size_t i = 0; i < k; ++i) {
    float* to = panel.packed + i * panel.width;
    for (std::size_t j = 0; j < panel.cols; ++j) {
      to[j] = *as_floats(at(b, i, panel.n + j), b.dtype, 1, to + j);
    }
    std::fill(to + panel.cols, to + panel.width, 0.0F);
  }
}

}  // namespace

void pack_panels(const PackedB& layout, const MatrixView& b, float* packed, std::size_t begin,
                 std::size_t end) noexcept {
  for (std::size_t p = begin; p < end; ++p) {
    const std::size_t n = p * layout.panel;
    const Panel panel = {n, std::min(layout.panel, layout.n - n), layout.width(p),
                         packed + n * layout.k};
    if (b.col_stride == 1) {
      pack_rows_of_b(b, layout.k, panel);
    } else if (b.row_stride == 1) {
      pack_columns_of_b(b, layout.k, panel);
    } else {
      pack_elements_of_b(b, layout.k, panel);
    }
  }
}

void copy_rows(const MatrixView& from, std::size_t rows, std::size_t cols, float* to,
               std::size_t ld) noexcept {
  for (std::size_t r = 0; r < rows; ++r) copy_floats(at(from, r, 0), from.dtype, cols, to + r * ld);
}

}  // namespace rlx::cpu
