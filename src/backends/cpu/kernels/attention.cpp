// Attention without a score matrix in memory: keys pass in tiles, each row keeps its running
// maximum and sum (online softmax, Milakov & Gimelshein 2018, arXiv:1805.02867; tiling as in Dao et
// al. 2022, arXiv:2205.14135).

#include "ops/attention.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "backends/cpu/kernel.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/kernels/attention.cpp"
#include <hwy/foreach_target.h>
// After foreach_target.h, which includes this file again for each instruction set.
#include "backends/cpu/kernels/vector_math-inl.h"

#ifndef RLX_CPU_ATTENTION_STEP
#define RLX_CPU_ATTENTION_STEP
namespace rlx::cpu {
namespace {

constexpr std::size_t kKeys =
    64;  // of a tile: fixed, so that sums do not depend on sizes or threads
constexpr std::size_t kRows = 96;  // queries of a task at most
constexpr std::size_t kMaxLanes = 16;

/// [b, h, s, d] of an operand with its strides in elements; the last stride is 1.
struct HeadStrides {
  std::ptrdiff_t b = 0, h = 0, s = 0;
};

struct AttentionStep {
  Buffer q, k, v, mask, y, lse, scratch;
  HeadStrides q_at, k_at, v_at, y_at;
  std::ptrdiff_t mask_at[4] = {};
  enum class Mask : std::uint8_t { none, boolean, added } mask_kind = Mask::none;
  std::size_t batch = 0, heads = 0, shared = 1, queries = 0, keys = 0, width = 0, value_width = 0;
  std::size_t blocks = 0;          // of queries
  std::size_t scratch_floats = 0;  // of a thread
  std::size_t threads = 1;
  float scale = 1, softcap = 0;
  bool causal = false;
  std::int64_t window = -1;
};
using AttentionFunction = void (*)(const AttentionStep&, const Run&) noexcept;

std::size_t round_up(std::size_t n, std::size_t to) { return (n + to - 1) / to * to; }

}  // namespace
}  // namespace rlx::cpu
#endif

HWY_BEFORE_NAMESPACE();
namespace rlx::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using F = hn::ScalableTag<float>;

// Rows that one pass over a tile handles: as many accumulators as the registers hold.
#if HWY_TARGET == HWY_AVX3
constexpr int kTileRows = 6;
#else
constexpr int kTileRows = 3;
#endif
constexpr int kVectors = 4;  // of keys or of value columns

/// Transposes 4 rows of 4 floats.
HWY_INLINE void transpose_4x4(const float* from, std::ptrdiff_t stride, float* to,
                              std::size_t to_stride) {
  const hn::Full128<float> d;
  const hn::Full128<double> dd;
  const auto a = hn::LoadU(d, from);
  const auto b = hn::LoadU(d, from + stride);
  const auto c = hn::LoadU(d, from + 2 * stride);
  const auto e = hn::LoadU(d, from + 3 * stride);
  const auto ab_low = hn::BitCast(dd, hn::InterleaveLower(d, a, b));
  const auto ab_high = hn::BitCast(dd, hn::InterleaveUpper(d, a, b));
  const auto ce_low = hn::BitCast(dd, hn::InterleaveLower(d, c, e));
  const auto ce_high = hn::BitCast(dd, hn::InterleaveUpper(d, c, e));
  hn::StoreU(hn::BitCast(d, hn::InterleaveLower(dd, ab_low, ce_low)), d, to);
  hn::StoreU(hn::BitCast(d, hn::InterleaveUpper(dd, ab_low, ce_low)), d, to + to_stride);
  hn::StoreU(hn::BitCast(d, hn::InterleaveLower(dd, ab_high, ce_high)), d, to + 2 * to_stride);
  hn::StoreU(hn::BitCast(d, hn::InterleaveUpper(dd, ab_high, ce_high)), d, to + 3 * to_stride);
}

/// `count` keys as [width][kKeys]; keys past the count are zeros.
void pack_keys(const float* k, std::ptrdiff_t stride, std::size_t count, std::size_t width,
               float* packed) {
  const std::size_t whole_keys = count / 4 * 4;
  const std::size_t whole_width = width / 4 * 4;
  for (std::size_t j = 0; j < whole_keys; j += 4) {
    const float* rows = k + static_cast<std::ptrdiff_t>(j) * stride;
    for (std::size_t i = 0; i < whole_width; i += 4)
      transpose_4x4(rows + i, stride, packed + i * kKeys + j, kKeys);
  }
  for (std::size_t j = 0; j < kKeys; ++j) {
    const float* row = k + static_cast<std::ptrdiff_t>(j) * stride;
    for (std::size_t i = j < whole_keys ? whole_width : 0; i < width; ++i)
      packed[i * kKeys + j] = j < count ? row[i] : 0.0F;
  }
}

/// Rows of values padded to whole vectors.
void pack_values(const float* v, std::ptrdiff_t stride, std::size_t count, std::size_t width,
                 std::size_t padded, float* packed) {
  for (std::size_t j = 0; j < count; ++j) {
    const float* row = v + static_cast<std::ptrdiff_t>(j) * stride;
    std::copy_n(row, width, packed + j * padded);
    std::fill_n(packed + j * padded + width, padded - width, 0.0F);
  }
}

/// scores[r][j] = scale · q[r] · k[j] for R rows and one tile of keys.
template <int R>
HWY_INLINE void score_rows(const float* HWY_RESTRICT q, std::ptrdiff_t q_stride,
                           const float* HWY_RESTRICT keys, std::size_t width, float scale,
                           float* HWY_RESTRICT scores) {
  const F d;
  const std::size_t lanes = hn::Lanes(d);
  for (std::size_t j = 0; j < kKeys; j += kVectors * lanes) {
    hn::Vec<F> acc[R][kVectors];
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r) {
#pragma GCC unroll 8
      for (int c = 0; c < kVectors; ++c) acc[r][c] = hn::Zero(d);
    }
    for (std::size_t i = 0; i < width; ++i) {
      hn::Vec<F> k[kVectors];
#pragma GCC unroll 8
      for (int c = 0; c < kVectors; ++c)
        k[c] = hn::Load(d, keys + i * kKeys + j + static_cast<std::size_t>(c) * lanes);
#pragma GCC unroll 8
      for (int r = 0; r < R; ++r) {
        const auto x = hn::Set(d, q[r * q_stride + static_cast<std::ptrdiff_t>(i)]);
#pragma GCC unroll 8
        for (int c = 0; c < kVectors; ++c) acc[r][c] = hn::MulAdd(x, k[c], acc[r][c]);
      }
    }
    const auto s = hn::Set(d, scale);
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r) {
#pragma GCC unroll 8
      for (int c = 0; c < kVectors; ++c) {
        hn::Store(
            hn::Mul(acc[r][c], s), d,
            scores + static_cast<std::size_t>(r) * kKeys + j + static_cast<std::size_t>(c) * lanes);
      }
    }
  }
}

/// out[r] = out[r] · rescale[r] + Σ_j p[r][j] values[j], for R rows.
template <int R>
HWY_INLINE void accumulate_rows(const float* HWY_RESTRICT p, const float* HWY_RESTRICT rescale,
                                const float* HWY_RESTRICT values, std::ptrdiff_t v_stride,
                                std::size_t count, std::size_t padded, float* HWY_RESTRICT out) {
  const F d;
  const std::size_t lanes = hn::Lanes(d);
  const auto columns = [&](std::size_t i, auto vectors) HWY_ATTR {
    constexpr int C = decltype(vectors)::value;
    hn::Vec<F> acc[R][C];
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r) {
#pragma GCC unroll 8
      for (int c = 0; c < C; ++c) {
        const float* from =
            out + static_cast<std::size_t>(r) * padded + i + static_cast<std::size_t>(c) * lanes;
        acc[r][c] = hn::Mul(hn::Load(d, from), hn::Set(d, rescale[r]));
      }
    }
    for (std::size_t j = 0; j < count; ++j) {
      hn::Vec<F> v[C];
#pragma GCC unroll 8
      for (int c = 0; c < C; ++c)
        v[c] = hn::LoadU(d, values + static_cast<std::ptrdiff_t>(j) * v_stride + i +
                                static_cast<std::size_t>(c) * lanes);
#pragma GCC unroll 8
      for (int r = 0; r < R; ++r) {
        const auto x = hn::Set(d, p[static_cast<std::size_t>(r) * kKeys + j]);
#pragma GCC unroll 8
        for (int c = 0; c < C; ++c) acc[r][c] = hn::MulAdd(x, v[c], acc[r][c]);
      }
    }
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r) {
#pragma GCC unroll 8
      for (int c = 0; c < C; ++c)
        hn::Store(
            acc[r][c], d,
            out + static_cast<std::size_t>(r) * padded + i + static_cast<std::size_t>(c) * lanes);
    }
  };
  std::size_t i = 0;
  for (; i + kVectors * lanes <= padded; i += kVectors * lanes)
    columns(i, std::integral_constant<int, kVectors>());
  for (; i + 2 * lanes <= padded; i += 2 * lanes) columns(i, std::integral_constant<int, 2>());
  for (; i < padded; i += lanes) columns(i, std::integral_constant<int, 1>());
}

/// One block of queries of one head.
class Block {
 public:
  Block(const AttentionStep& step, const Run& run, std::size_t task, float* scratch)
      : s_(step), scratch_(scratch) {
    const std::size_t block = task % step.blocks;
    head_ = task / step.blocks % step.heads;
    batch_ = task / step.blocks / step.heads;
    first_ = block * kRows;
    rows_ = std::min(kRows, step.queries - first_);
    padded_ = round_up(step.value_width, hn::Lanes(F()));
    q_ = run.at<const float>(step.q) + at(step.q_at, batch_, head_, first_);
    k_ = run.at<const float>(step.k) + at(step.k_at, batch_, head_ / step.shared, 0);
    v_ = run.at<const float>(step.v) + at(step.v_at, batch_, head_ / step.shared, 0);
    y_ = run.at<float>(step.y) + at(step.y_at, batch_, head_, first_);
    lse_ = run.at<float>(step.lse) + (batch_ * step.heads + head_) * step.queries + first_;
    if (step.mask_kind != AttentionStep::Mask::none) mask_ = run.at<const std::byte>(step.mask);
    keys_ = take(step.width * kKeys);
    values_ = take(kKeys * padded_);
    scores_ = take(kTileRows * kKeys);
    added_ = take(kKeys);
    kept_ = take(kKeys);
    out_ = take(kRows * padded_);
    top_ = take(kRows);
    total_ = take(kRows);
    seen_ = take(kRows);
  }

  void run() {
    std::fill_n(out_, rows_ * padded_, 0.0F);
    std::fill_n(top_, rows_, -std::numeric_limits<float>::infinity());
    std::fill_n(total_, rows_, 0.0F);
    std::fill_n(seen_, rows_, 0.0F);
    const auto [from, to] = visible_keys();
    for (std::size_t j = from / kKeys * kKeys; j < to; j += kKeys)
      tile(j, std::min(kKeys, s_.keys - j));
    for (std::size_t r = 0; r < rows_; ++r) finish(r);
  }

 private:
  static std::ptrdiff_t at(const HeadStrides& x, std::size_t b, std::size_t h, std::size_t s) {
    return static_cast<std::ptrdiff_t>(b) * x.b + static_cast<std::ptrdiff_t>(h) * x.h +
           static_cast<std::ptrdiff_t>(s) * x.s;
  }

  float* take(std::size_t floats) {
    float* p = scratch_;
    scratch_ += round_up(floats, kMaxLanes);
    return p;
  }

  // The row's position among the keys.
  std::int64_t position(std::size_t row) const {
    return static_cast<std::int64_t>(first_ + row) + static_cast<std::int64_t>(s_.keys) -
           static_cast<std::int64_t>(s_.queries);
  }
  std::int64_t first_key(std::size_t row) const {
    return s_.window < 0 ? 0 : std::max<std::int64_t>(0, position(row) - s_.window);
  }
  std::int64_t end_key(std::size_t row) const {
    const auto keys = static_cast<std::int64_t>(s_.keys);
    return s_.causal || s_.window >= 0 ? std::clamp<std::int64_t>(position(row) + 1, 0, keys)
                                       : keys;
  }
  // Keys that any row of the block sees.
  std::pair<std::size_t, std::size_t> visible_keys() const {
    return {static_cast<std::size_t>(std::min(first_key(0), end_key(rows_ - 1))),
            static_cast<std::size_t>(end_key(rows_ - 1))};
  }

  void tile(std::size_t j, std::size_t count) {
    pack_keys(k_ + static_cast<std::ptrdiff_t>(j) * s_.k_at.s, s_.k_at.s, count, s_.width, keys_);
    const float* values = v_ + static_cast<std::ptrdiff_t>(j) * s_.v_at.s;
    std::ptrdiff_t v_stride = s_.v_at.s;
    if (padded_ != s_.value_width) {
      pack_values(values, v_stride, count, s_.value_width, padded_, values_);
      values = values_;
      v_stride = static_cast<std::ptrdiff_t>(padded_);
    }
    std::size_t row = 0;
    for (; row + kTileRows <= rows_; row += kTileRows) {
      tile_rows<kTileRows>(row, j, count, values, v_stride);
    }
    if (rows_ - row >= 4) row += tile_rows<std::min(4, kTileRows)>(row, j, count, values, v_stride);
    if (rows_ - row >= 2) row += tile_rows<2>(row, j, count, values, v_stride);
    if (rows_ - row >= 1) tile_rows<1>(row, j, count, values, v_stride);
  }

  template <int R>
  std::size_t tile_rows(std::size_t row, std::size_t j, std::size_t count, const float* values,
                        std::ptrdiff_t v_stride) {
    score_rows<R>(q_ + static_cast<std::ptrdiff_t>(row) * s_.q_at.s, s_.q_at.s, keys_, s_.width,
                  s_.scale, scores_);
    float rescale[R];
    for (int r = 0; r < R; ++r)
      rescale[r] = weigh(row + static_cast<std::size_t>(r), j, count,
                         scores_ + static_cast<std::size_t>(r) * kKeys);
    accumulate_rows<R>(scores_, rescale, values, v_stride, count, padded_, out_ + row * padded_);
    return R;
  }

  // Turns a row of scores into weights relative to the running maximum; returns what earlier sums
  // are to be scaled by.
  float weigh(std::size_t row, std::size_t j, std::size_t count, float* scores) {
    const F d;
    const std::size_t lanes = hn::Lanes(d);
    const auto lowest = hn::Set(d, -std::numeric_limits<float>::infinity());
    if (s_.softcap > 0) cap(scores);
    if (s_.mask_kind == AttentionStep::Mask::added) add_mask(row, j, count, scores);
    const bool all_seen = see_keys(row, j, count);
    auto top = hn::Set(d, top_[row]);
    for (std::size_t i = 0; i < kKeys; i += lanes) {
      auto x = hn::Load(d, scores + i);
      if (!all_seen) {
        x = hn::IfThenElse(hn::Gt(hn::Load(d, kept_ + i), hn::Zero(d)), x, lowest);
        hn::Store(x, d, scores + i);
      }
      top = hn::Max(x, top);
    }
    const float before = top_[row];
    const float now = hn::GetLane(hn::MaxOfLanes(d, top));
    top_[row] = now;
    // Of a row of -inf alone nothing is known yet: weights of 0, not NaN.
    const bool any = now != -std::numeric_limits<float>::infinity();
    const auto shift = hn::Set(d, any ? now : 0.0F);
    auto sum = hn::Zero(d);
    for (std::size_t i = 0; i < kKeys; i += lanes) {
      const auto p = exp(d, hn::Sub(hn::Load(d, scores + i), shift));
      hn::Store(p, d, scores + i);
      sum = hn::Add(sum, p);
    }
    const float factor =
        before == now ? 1.0F : hn::GetLane(exp(d, hn::Sub(hn::Set(d, before), shift)));
    total_[row] = total_[row] * factor + hn::GetLane(hn::SumOfLanes(d, sum));
    return factor;
  }

  void cap(float* scores) const {
    const F d;
    const auto limit = hn::Set(d, s_.softcap);
    for (std::size_t i = 0; i < kKeys; i += hn::Lanes(d)) {
      hn::Store(hn::Mul(limit, tanh(d, hn::Div(hn::Load(d, scores + i), limit))), d, scores + i);
    }
  }

  std::ptrdiff_t mask_offset(std::size_t row, std::size_t j) const {
    return static_cast<std::ptrdiff_t>(batch_) * s_.mask_at[0] +
           static_cast<std::ptrdiff_t>(head_) * s_.mask_at[1] +
           static_cast<std::ptrdiff_t>(first_ + row) * s_.mask_at[2] +
           static_cast<std::ptrdiff_t>(j) * s_.mask_at[3];
  }

  void add_mask(std::size_t row, std::size_t j, std::size_t count, float* scores) const {
    const float* mask = reinterpret_cast<const float*>(mask_) + mask_offset(row, j);
    if (s_.mask_at[3] == 1 && count == kKeys) {
      const F d;
      for (std::size_t i = 0; i < kKeys; i += hn::Lanes(d))
        hn::Store(hn::Add(hn::Load(d, scores + i), hn::LoadU(d, mask + i)), d, scores + i);
      return;
    }
    for (std::size_t i = 0; i < count; ++i)
      scores[i] += mask[static_cast<std::ptrdiff_t>(i) * s_.mask_at[3]];
  }

  // Marks in `kept_` the keys of the tile that the row sees; whether it sees all of them.
  bool see_keys(std::size_t row, std::size_t j, std::size_t count) {
    const std::int64_t from = std::clamp<std::int64_t>(
        first_key(row) - static_cast<std::int64_t>(j), 0, static_cast<std::int64_t>(count));
    const std::int64_t to = std::clamp<std::int64_t>(end_key(row) - static_cast<std::int64_t>(j),
                                                     from, static_cast<std::int64_t>(count));
    if (s_.mask_kind != AttentionStep::Mask::boolean && to > from) seen_[row] = 1;
    if (from == 0 && to == static_cast<std::int64_t>(kKeys) &&
        s_.mask_kind != AttentionStep::Mask::boolean)
      return true;
    std::fill_n(kept_, kKeys, 0.0F);
    if (s_.mask_kind != AttentionStep::Mask::boolean) {
      std::fill(kept_ + from, kept_ + to, 1.0F);
      return false;
    }
    const std::byte* mask = mask_ + mask_offset(row, j);
    for (std::int64_t i = from; i < to; ++i) {
      const bool on = mask[i * s_.mask_at[3]] != std::byte{0};
      kept_[i] = on ? 1.0F : 0.0F;
      if (on) seen_[row] = 1;
    }
    return false;
  }

  void finish(std::size_t row) const {
    float* y = y_ + static_cast<std::ptrdiff_t>(row) * s_.y_at.s;
    if (seen_[row] == 0) {
      std::fill_n(y, s_.value_width, 0.0F);
      lse_[row] = -std::numeric_limits<float>::infinity();
      return;
    }
    // Scores of -inf alone are 0/0, as in softmax.
    const float* out = out_ + row * padded_;
    const float total = total_[row];
    for (std::size_t i = 0; i < s_.value_width; ++i) y[i] = out[i] / total;
    const bool none = top_[row] == -std::numeric_limits<float>::infinity();
    lse_[row] = none ? std::numeric_limits<float>::quiet_NaN() : top_[row] + std::log(total);
  }

  const AttentionStep& s_;
  float* scratch_;
  std::size_t head_ = 0, batch_ = 0, first_ = 0, rows_ = 0, padded_ = 0;
  const float *q_ = nullptr, *k_ = nullptr, *v_ = nullptr;
  float *y_ = nullptr, *lse_ = nullptr;
  const std::byte* mask_ = nullptr;
  float *keys_, *values_, *scores_, *added_, *kept_, *out_, *top_, *total_, *seen_;
};

void run_attention(const AttentionStep& step, const Run& run) noexcept {
  const std::size_t tasks = step.batch * step.heads * step.blocks;
  const std::size_t parts = std::min(tasks, step.threads);
  float* scratch = run.at<float>(step.scratch);
  parallel_for(run.pool, parts, [&](std::size_t part) noexcept {
    for (std::size_t task = tasks * part / parts; task < tasks * (part + 1) / parts; ++task) {
      Block(step, run, task, scratch + part * step.scratch_floats).run();
    }
  });
}

AttentionFunction attention_function() { return run_attention; }

}  // namespace rlx::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace rlx::cpu {
namespace {

HWY_EXPORT(attention_function);

HeadStrides head_strides(const Operand& x, AttentionLayout layout) {
  const std::size_t heads = layout == AttentionLayout::bhsd ? 1 : 2;
  return {x.strides[0], x.strides[heads], x.strides[3 - heads]};
}

// The operand, copied to scratch unless its rows are contiguous.
Operand with_rows(StepBuilder& step, std::size_t i) {
  const Operand& x = step.in(i);
  if (x.dims[3] <= 1 || x.strides[3] == 1) return x;
  Operand to = x;
  to.at = step.scratch(static_cast<std::size_t>(x.size()) * sizeof(float));
  std::int64_t stride = 1;
  for (std::size_t axis = 4; axis-- > 0;) {
    to.strides[axis] = stride;
    stride *= to.dims[axis];
  }
  plan_copy(step, x, to);
  return to;
}

void plan_mask(StepBuilder& step, AttentionStep& p) {
  if (!step.has(3)) return;
  const Operand& mask = step.in(3);
  p.mask = mask.at;
  p.mask_kind =
      mask.dtype == DType::boolean ? AttentionStep::Mask::boolean : AttentionStep::Mask::added;
  for (std::size_t axis = 0; axis < mask.rank(); ++axis) {
    if (mask.dims[axis] != 1) p.mask_at[4 - mask.rank() + axis] = mask.strides[axis];
  }
}

void plan_attention(StepBuilder& step) {
  const auto& op = *step.node().as<Attention>();
  const Operand q = with_rows(step, 0);
  const Operand k = with_rows(step, 1);
  const Operand v = with_rows(step, 2);
  const std::size_t heads = op.layout == AttentionLayout::bhsd ? 1 : 2;
  AttentionStep p;
  p.q = q.at;
  p.k = k.at;
  p.v = v.at;
  p.y = step.out(0).at;
  p.lse = step.out(1).at;
  p.q_at = head_strides(q, op.layout);
  p.k_at = head_strides(k, op.layout);
  p.v_at = head_strides(v, op.layout);
  p.y_at = head_strides(step.out(0), op.layout);
  plan_mask(step, p);
  const auto extent = [](const Operand& x, std::size_t axis) {
    return static_cast<std::size_t>(x.dims[axis]);
  };
  p.batch = extent(q, 0);
  p.heads = extent(q, heads);
  p.shared = extent(k, heads) == 0 ? 1 : p.heads / extent(k, heads);
  p.queries = extent(q, 3 - heads);
  p.keys = extent(k, 3 - heads);
  p.width = extent(q, 3);
  p.value_width = extent(v, 3);
  p.blocks = (p.queries + kRows - 1) / kRows;
  p.scale = static_cast<float>(op.scale);
  p.softcap = static_cast<float>(op.softcap);
  p.causal = op.causal;
  p.window = op.window;
  const std::size_t padded = round_up(p.value_width, kMaxLanes);
  constexpr std::size_t kMaxTileRows = 6;
  p.scratch_floats = round_up(p.width * kKeys, kMaxLanes) + kKeys * padded + kMaxTileRows * kKeys +
                     2 * kKeys + kRows * padded + 3 * kRows;
  p.threads = static_cast<std::size_t>(step.threads());
  p.scratch = step.scratch(p.threads * p.scratch_floats * sizeof(float));
  if (p.batch * p.heads * p.blocks == 0) return;
  const AttentionFunction function = HWY_DYNAMIC_DISPATCH(attention_function)();
  struct Call {
    AttentionFunction function;
    AttentionStep step;
  };
  step.launch<Call>(
      [](const Call& call, const Run& run) noexcept { call.function(call.step, run); },
      {function, p});
}

Match accepts_attention(const Node& node) {
  if (node.type().dtype != DType::f32)
    return Match::no(fmt::format("takes f32, not {}", name(node.type().dtype)));
  return {};
}

}  // namespace

KernelList attention_kernels() {
  static const Kernel kKernels[] = {{.name = "attention_tiles_f32",
                                     .op = &attention_def,
                                     .accepts = accepts_attention,
                                     .plan = plan_attention,
                                     .strided_inputs = 0xF}};
  return kKernels;
}

}  // namespace rlx::cpu
#endif
