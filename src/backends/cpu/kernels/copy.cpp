#include <hwy/highway.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "backends/cpu/kernels/strided.h"

// Copies of strided tensors. Memory is the limit, so 128-bit vectors, which every instruction set
// here has, do.

namespace rlx::cpu {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

constexpr std::size_t kPartBytes = 64 << 10;  ///< worth waking a thread for

/// What a copy does: `dims` and `strides` of the source, joined; the target is dense.
struct Copy {
  Buffer from, to;
  unsigned bits;
  std::span<const std::int64_t> dims, strides;
  std::size_t size;
  std::size_t parts = 1;
};

/// Calls f(begin, end) for parts of [0, count) that begin at multiples of `unit`.
template <class F>
void in_parts(const Run& run, std::size_t parts, std::size_t count, std::size_t unit, F&& f) {
  const std::size_t units = (count + unit - 1) / unit;
  parallel_for(run.pool, std::min(parts, units), [&](std::size_t part) noexcept {
    const std::size_t n = std::min(parts, units);
    f(units * part / n * unit, std::min(count, units * (part + 1) / n * unit));
  });
}

void copy_dense(const Copy& c, const Run& run) noexcept {
  const auto* from = run.at<const std::byte>(c.from);
  auto* to = run.at<std::byte>(c.to);
  in_parts(run, c.parts, stored_bytes(c.bits, c.size), kPartBytes,
           [&](std::size_t begin, std::size_t end) {
             std::memcpy(to + begin, from + begin, end - begin);
           });
}

void copy_gathered(const Copy& c, const Run& run) noexcept {
  const auto* from = run.at<const std::byte>(c.from);
  auto* to = run.at<std::byte>(c.to);
  in_parts(run, c.parts, c.size, 1024, [&](std::size_t begin, std::size_t end) {
    gather_strided(from, c.bits, c.dims, c.strides, begin, end - begin, to + begin * c.bits / 8);
  });
}

// ---- transposes: the axis that is contiguous in the source is not the last of the target

/// One block of rows × cols: to[r][c] = from[c][r]; row distances in elements.
template <class T>
void transpose_block(const T* from, std::size_t from_ld, T* to, std::size_t to_ld, std::size_t rows,
                     std::size_t cols) {
  for (std::size_t r = 0; r < rows; ++r) {
    for (std::size_t c = 0; c < cols; ++c) to[r * to_ld + c] = from[c * from_ld + r];
  }
}

void transpose_4x4(const std::uint32_t* from, std::size_t from_ld, std::uint32_t* to,
                   std::size_t to_ld) {
  const hn::Full128<std::uint32_t> d;
  const hn::Full128<std::uint64_t> d2;
  const auto a = hn::LoadU(d, from), b = hn::LoadU(d, from + from_ld);
  const auto c = hn::LoadU(d, from + 2 * from_ld), e = hn::LoadU(d, from + 3 * from_ld);
  const auto ab_low = hn::BitCast(d2, hn::InterleaveLower(d, a, b));
  const auto ab_high = hn::BitCast(d2, hn::InterleaveUpper(d, a, b));
  const auto ce_low = hn::BitCast(d2, hn::InterleaveLower(d, c, e));
  const auto ce_high = hn::BitCast(d2, hn::InterleaveUpper(d, c, e));
  hn::StoreU(hn::BitCast(d, hn::InterleaveLower(d2, ab_low, ce_low)), d, to);
  hn::StoreU(hn::BitCast(d, hn::InterleaveUpper(d2, ab_low, ce_low)), d, to + to_ld);
  hn::StoreU(hn::BitCast(d, hn::InterleaveLower(d2, ab_high, ce_high)), d, to + 2 * to_ld);
  hn::StoreU(hn::BitCast(d, hn::InterleaveUpper(d2, ab_high, ce_high)), d, to + 3 * to_ld);
}

template <>
void transpose_block(const std::uint32_t* from, std::size_t from_ld, std::uint32_t* to,
                     std::size_t to_ld, std::size_t rows, std::size_t cols) {
  const std::size_t whole_rows = rows / 4 * 4, whole_cols = cols / 4 * 4;
  for (std::size_t r = 0; r < whole_rows; r += 4) {
    for (std::size_t c = 0; c < whole_cols; c += 4)
      transpose_4x4(from + c * from_ld + r, from_ld, to + r * to_ld + c, to_ld);
  }
  for (std::size_t r = 0; r < rows; ++r) {
    for (std::size_t c = r < whole_rows ? whole_cols : 0; c < cols; ++c)
      to[r * to_ld + c] = from[c * from_ld + r];
  }
}

/// The axes of one transposition, and those outside of it.
struct Transposition {
  Copy copy;
  std::size_t axis;  ///< stride 1 in the source; the last axis is the other one
};

/// Rows and columns of a block: lines of the source and of the target are used whole, and a block
/// of each fits the first-level cache.
constexpr std::int64_t kBlockSide = 32;

/// Block `index` of all: the last two coordinates say which of the two axes' blocks, the others
/// where it lies.
template <class T>
void transpose_nth_block(const Transposition& t, const T* from, T* to, std::size_t index) {
  const auto& dims = t.copy.dims;
  const auto& strides = t.copy.strides;
  const std::size_t last = dims.size() - 1;
  std::array<std::int64_t, kMaxAxes> target_strides{};
  std::int64_t stride = 1;
  for (std::size_t axis = dims.size(); axis-- > 0; stride *= dims[axis])
    target_strides[axis] = stride;

  auto rest = static_cast<std::int64_t>(index);
  const std::int64_t col_blocks = (dims[last] + kBlockSide - 1) / kBlockSide;
  const std::int64_t row_blocks = (dims[t.axis] + kBlockSide - 1) / kBlockSide;
  const std::int64_t col = rest % col_blocks * kBlockSide;
  rest /= col_blocks;
  const std::int64_t row = rest % row_blocks * kBlockSide;
  rest /= row_blocks;
  std::int64_t source = row + col * strides[last];
  std::int64_t target = row * target_strides[t.axis] + col;
  for (std::size_t axis = last; axis-- > 0;) {
    if (axis == t.axis) continue;
    source += rest % dims[axis] * strides[axis];
    target += rest % dims[axis] * target_strides[axis];
    rest /= dims[axis];
  }
  transpose_block(from + source, static_cast<std::size_t>(strides[last]), to + target,
                  static_cast<std::size_t>(target_strides[t.axis]),
                  static_cast<std::size_t>(std::min(kBlockSide, dims[t.axis] - row)),
                  static_cast<std::size_t>(std::min(kBlockSide, dims[last] - col)));
}

template <class T>
void copy_transposed(const Transposition& t, const Run& run) noexcept {
  const T* from = run.at<const T>(t.copy.from);
  T* to = run.at<T>(t.copy.to);
  std::size_t blocks = 1;
  for (std::size_t axis = 0; axis < t.copy.dims.size(); ++axis) {
    const bool blocked = axis == t.axis || axis + 1 == t.copy.dims.size();
    const std::int64_t d = t.copy.dims[axis];
    blocks *= static_cast<std::size_t>(blocked ? (d + kBlockSide - 1) / kBlockSide : d);
  }
  in_parts(run, t.copy.parts, blocks, 1, [&](std::size_t begin, std::size_t end) {
    for (std::size_t i = begin; i < end; ++i) transpose_nth_block(t, from, to, i);
  });
}

using TransposeFunction = void (*)(const Transposition&, const Run&) noexcept;

TransposeFunction transpose_of(unsigned bits) {
  switch (bits) {
    case 8:
      return copy_transposed<std::uint8_t>;
    case 16:
      return copy_transposed<std::uint16_t>;
    case 32:
      return copy_transposed<std::uint32_t>;
    case 64:
      return copy_transposed<std::uint64_t>;
    default:
      return nullptr;
  }
}

/// The axis to swap with the last, if blocks pay.
std::optional<std::size_t> transposed_axis(const Copy& c) {
  const std::size_t last = c.dims.size() - 1;
  if (c.strides[last] <= 1 || c.dims[last] < 4) return std::nullopt;
  for (std::size_t axis = 0; axis < last; ++axis) {
    if (c.strides[axis] == 1 && c.dims[axis] >= 4) return axis;
  }
  return std::nullopt;
}

}  // namespace

void plan_copy(StepBuilder& step, const Operand& from, const Operand& to) {
  if (to.size() == 0) return;
  const Operand* operands[] = {&from};
  const IndexSpace space = joined_space(to.dims, operands);
  Copy copy{from.at,
            to.at,
            traits(to.dtype).bits,
            step.keep(space.dims),
            step.keep(space.strides[0]),
            static_cast<std::size_t>(space.size())};
  const auto threads = static_cast<std::size_t>(std::max(1, step.threads()));
  copy.parts = std::clamp<std::size_t>(stored_bytes(copy.bits, copy.size) / kPartBytes, 1, threads);

  if (copy.dims.size() == 1 && copy.strides[0] == 1) return step.launch(copy_dense, copy);
  const TransposeFunction transpose = transpose_of(copy.bits);
  if (const auto axis = transposed_axis(copy); axis && transpose != nullptr)
    return step.launch(transpose, Transposition{copy, *axis});
  step.launch(copy_gathered, copy);
}

}  // namespace rlx::cpu
