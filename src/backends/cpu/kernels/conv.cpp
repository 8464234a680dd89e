// Convolution as W[co, k]·X[k, pixels], where X holds a column of taps for each output pixel. X is
// never whole in memory: each task gathers a tile of it, a slice of k at a time, in the form that
// the GEMM micro-kernels read (../gemm.h).

#include "ops/conv.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "backends/cpu/gemm_cut.h"
#include "backends/cpu/kernel.h"
#include "backends/cpu/kernels/fused_epilogue.h"
#include "backends/cpu/kernels/gemm_pack.h"
#include "backends/cpu/kernels/gemm_tile.h"
#include "backends/cpu/kernels/tile_epilogue.h"
#include "backends/cpu/kernels/window.h"
#include "backends/cpu/parallel.h"
#include "compiler/fused.h"

namespace rlx::cpu {
namespace {

constexpr std::size_t kMaxK = 384;               // of one slice: 14 rows of weights stay in the L1
constexpr std::size_t kTileFloats = 64 * 1024;   // of gathered taps: a quarter MiB stays in the L2
constexpr std::size_t kMaxTileFloats = 14 * 32;  // of any instruction set's micro-kernel
constexpr std::size_t kMaxPanel = 32;
constexpr std::size_t kChunk = 16;  // floats copied at once, beyond the end of a run if need be

struct ConvStep {
  Buffer x, w, bias, residual, y, scratch;
  bool has_bias = false, has_residual = false;
  Window window;
  bool is_pointwise = false;  // each output pixel reads one input pixel
  std::size_t batch = 0, groups = 1;
  std::size_t channels = 0, outputs = 0;  // of one group
  std::size_t k = 0, k_step = 0, w_stride = 0;
  std::size_t input_size = 0, pixels = 0;  // of one channel
  std::size_t tile_pixels = 0, tiles = 0, row_parts = 1;
  std::size_t threads = 1;
  std::size_t tap_floats = 0, scratch_bytes = 0;  // of a thread: gathered taps, then `Piece`s
  const GemmKernels* kernels = nullptr;
  Epilogue epilogue;
};

// ---------------------------------------------------------------- gathering taps

/// Output pixels that follow one another in a row of the output.
struct Segment {
  std::size_t column = 0;  // of the panel
  std::int64_t count = 0;
  std::int64_t at[3] = {};  // where the first tap of the first pixel stands in the input
};

/// The segments of a panel of pixels; returns how many there are.
std::size_t cut_segments(const Window& window, Range pixels, Segment* segments) {
  const auto& [depth, height, width] = window.axes;
  std::size_t count = 0;
  for (std::size_t pixel = pixels.begin; pixel < pixels.end; ++count) {
    const auto column = static_cast<std::int64_t>(pixel) % width.output;
    const auto row = static_cast<std::int64_t>(pixel) / width.output;
    const auto left = static_cast<std::int64_t>(pixels.end - pixel);
    Segment& s = segments[count];
    s.column = pixel - pixels.begin;
    s.count = std::min(left, width.output - column);
    s.at[0] = row / height.output * depth.stride - depth.padding_low;
    s.at[1] = row % height.output * height.stride - height.padding_low;
    s.at[2] = column * width.stride - width.padding_low;
    pixel += static_cast<std::size_t>(s.count);
  }
  return count;
}

// These write whole chunks: what they write too much is written again, or is slack.

void write_zeros(float* to, std::int64_t count) {
  for (std::int64_t i = 0; i < count; i += kChunk) std::memset(to + i, 0, kChunk * sizeof(float));
}

using Float4 = float __attribute__((vector_size(16)));

/// Every other one of eight floats.
Float4 even_floats(const float* from) {
  Float4 a, b;
  std::memcpy(&a, from, sizeof a);
  std::memcpy(&b, from + 4, sizeof b);
  return Float4{a[0], a[2], b[0], b[2]};
}

void copy_every(const float* from, std::int64_t stride, std::int64_t count, const float* end,
                float* to) {
  const auto whole = static_cast<std::int64_t>(round_up(static_cast<std::size_t>(count), kChunk));
  const bool has_room = whole * stride <= end - from;
  if (has_room && stride == 1) {
    for (std::int64_t i = 0; i < count; i += kChunk)
      std::memcpy(to + i, from + i, kChunk * sizeof(float));
  } else if (has_room && stride == 2) {
    for (std::int64_t i = 0; i < count; i += 4) {
      const Float4 even = even_floats(from + 2 * i);
      std::memcpy(to + i, &even, sizeof even);
    }
  } else {
    for (std::int64_t i = 0; i < count; ++i) to[i] = from[i * stride];
  }
}

std::int64_t ceil_ratio(std::int64_t a, std::int64_t b) { return b == 1 ? a : (a + b - 1) / b; }

/// What one tap reads for a segment, in any channel: pixels [low, high) read the input from `from`
/// on, the others its padding.
struct Piece {
  std::int64_t from = 0;
  std::uint8_t column = 0, count = 0, low = 0, high = 0;
};

/// The piece of the tap at `at` in the kernel.
Piece piece_of(const Window& window, const Segment& s, const std::int64_t (&at)[3]) {
  const auto& [depth, height, width] = window.axes;
  Piece piece;
  piece.column = static_cast<std::uint8_t>(s.column);
  piece.count = static_cast<std::uint8_t>(s.count);
  const std::int64_t z = s.at[0] + at[0] * depth.dilation;
  const std::int64_t y = s.at[1] + at[1] * height.dilation;
  const std::int64_t x = s.at[2] + at[2] * width.dilation;
  const bool inside = z >= 0 && z < depth.input && y >= 0 && y < height.input && x < width.input;
  if (!inside) return piece;
  const std::int64_t low = x < 0 ? std::min(s.count, ceil_ratio(-x, width.stride)) : 0;
  const std::int64_t high =
      std::max(low, std::min(s.count, ceil_ratio(width.input - x, width.stride)));
  piece.from = (z * height.input + y) * width.input + x + low * width.stride;
  piece.low = static_cast<std::uint8_t>(low);
  piece.high = static_cast<std::uint8_t>(high);
  return piece;
}

/// The pieces of a panel of pixels, [taps][segments]; returns how many segments there are.
std::size_t cut_pieces(const Window& window, Range pixels, Piece* pieces) {
  Segment segments[kMaxPanel];
  const std::size_t count = cut_segments(window, pixels, segments);
  const auto& [depth, height, width] = window.axes;
  for (std::int64_t z = 0; z < depth.kernel; ++z) {
    for (std::int64_t y = 0; y < height.kernel; ++y) {
      for (std::int64_t x = 0; x < width.kernel; ++x) {
        for (std::size_t j = 0; j < count; ++j)
          *pieces++ = piece_of(window, segments[j], {z, y, x});
      }
    }
  }
  return count;
}

std::size_t most_segments(const Window& window, std::size_t panel) {
  const auto row = static_cast<std::size_t>(window.axes[2].output);
  return std::min(panel, (panel - 1) / row + 2);
}

void gather_piece(const Piece& piece, std::int64_t stride, const float* channel, const float* end,
                  float* to) {
  to += piece.column;
  if (piece.low > 0) write_zeros(to, piece.low);
  if (piece.high > piece.low)
    copy_every(channel + piece.from, stride, piece.high - piece.low, end, to + piece.low);
  if (piece.high < piece.count) write_zeros(to + piece.high, piece.count - piece.high);
}

/// X[k, pixels] as a panel [k][width]; up to kChunk floats behind it may be overwritten.
void gather_panel(const Window& window, Range k, Range pixels, std::size_t width,
                  const float* channels, const float* end, Piece* pieces, float* to) {
  const std::size_t taps = window.taps();
  const std::size_t channel_size = window.input_size();
  const std::int64_t stride = window.axes[2].stride;
  const std::size_t count = cut_pieces(window, pixels, pieces);
  const float* channel = channels + k.begin / taps * channel_size;
  std::size_t tap = k.begin % taps;
  for (std::size_t i = k.begin; i < k.end; ++i, to += width) {
    for (std::size_t j = 0; j < count; ++j)
      gather_piece(pieces[tap * count + j], stride, channel, end, to);
    std::fill(to + pixels.size(), to + width, 0.0F);
    if (++tap < taps) continue;
    tap = 0;
    channel += channel_size;
  }
}

/// The same where each output pixel reads one input pixel.
void copy_panel(Range k, Range pixels, std::size_t width, const float* channels,
                std::size_t channel_size, float* to) {
  const float* from = channels + k.begin * channel_size + pixels.begin;
  const bool is_whole = pixels.size() == kMaxPanel;
  for (std::size_t i = k.begin; i < k.end; ++i, from += channel_size, to += width) {
    if (is_whole) {
      std::memcpy(to, from, kMaxPanel * sizeof(float));
      continue;
    }
    std::copy_n(from, pixels.size(), to);
    std::fill(to + pixels.size(), to + width, 0.0F);
  }
}

// ---------------------------------------------------------------- multiplying

/// Some rows and pixels of one group of one sample.
struct Task {
  const float* x;         // channels of the group
  const float* x_end;     // of the whole batch
  const float* w;         // rows of the group
  const float* bias;      // of the group, or null
  const float* residual;  // where y's first row of the group is, or null
  float* y;
  Range rows, pixels;
};

std::size_t panel_width(const ConvStep& s, std::size_t pixels) {
  return round_up(std::min(pixels, s.kernels->panel()), s.kernels->lanes);
}

/// y[rows, pixels] (+)= w·panel for one micro-kernel's rows and one panel. Sums start from `start`,
/// [rows, panel], or from zero if it is null.
void multiply_tile(const ConvStep& s, const Task& task, Range rows, Range pixels, Range k,
                   const float* panel, const float* start, EpilogueFunction second_pass) {
  const std::size_t width = panel_width(s, pixels.size());
  float* y = task.y + rows.begin * s.pixels + pixels.begin;
  alignas(64) float sums[kMaxTileFloats];
  GemmTile tile = {};
  tile.k = k.size();
  tile.a = task.w + rows.begin * s.w_stride + k.begin;
  tile.lda = s.w_stride;
  tile.b = panel;
  tile.cols = pixels.size();
  tile.prefetch = reinterpret_cast<const char*>(panel);
  tile.partial = y;
  tile.partial_ld = tile.out_ld = s.pixels;
  tile.out = y;
  if (k.begin == 0) {
    tile.partial = start;
    tile.partial_ld = s.kernels->panel();
  }
  const bool finishes = k.end == s.k && second_pass != nullptr;
  if (finishes) {
    tile.out = sums;
    tile.out_ld = width;
  }
  s.kernels->tiles[(width / s.kernels->lanes - 1) * s.kernels->max_rows + rows.size() - 1](tile);
  if (!finishes) return;
  const float* residual = task.residual;
  if (residual != nullptr) residual += rows.begin * s.pixels + pixels.begin;
  second_pass({sums, width, y, s.pixels, residual, s.pixels, rows.size(), pixels.size(),
               s.epilogue.clamp_low, s.epilogue.clamp_high});
}

/// The tile's pixels that panel `p` holds.
Range panel_pixels(const ConvStep& s, const Task& task, std::size_t p) {
  const std::size_t begin = task.pixels.begin + p * s.kernels->panel();
  return {begin, std::min(task.pixels.end, begin + s.kernels->panel())};
}

/// Gathers a slice of k for all panels of the task, `panel_floats` apart.
void gather_taps(const ConvStep& s, const Task& task, Range k, std::size_t panel_floats,
                 std::byte* scratch) {
  auto* taps = reinterpret_cast<float*>(scratch);
  auto* pieces = reinterpret_cast<Piece*>(scratch + s.tap_floats * sizeof(float));
  if (k.size() == 0) return;
  for (std::size_t p = 0; p * s.kernels->panel() < task.pixels.size(); ++p) {
    const Range pixels = panel_pixels(s, task, p);
    const std::size_t width = panel_width(s, pixels.size());
    float* to = taps + p * panel_floats;
    if (s.is_pointwise) {
      copy_panel(k, pixels, width, task.x, s.input_size, to);
    } else {
      gather_panel(s.window, k, pixels, width, task.x, task.x_end, pieces, to);
    }
  }
}

/// The biases of some rows, each as wide as a panel; null where there are none.
const float* spread_bias(const ConvStep& s, const Task& task, Range rows, float* to) {
  if (task.bias == nullptr) return nullptr;
  const std::size_t panel = s.kernels->panel();
  for (std::size_t r = 0; r < rows.size(); ++r)
    std::fill_n(to + r * panel, panel, task.bias[rows.begin + r]);
  return to;
}

void run_task(const ConvStep& s, const Task& task, EpilogueFunction second_pass,
              std::byte* scratch) {
  const auto* taps = reinterpret_cast<const float*>(scratch);
  const std::size_t panels = ceil_div(task.pixels.size(), s.kernels->panel());
  const std::size_t tiles = ceil_div(task.rows.size(), s.kernels->max_rows);
  std::size_t begin = 0;
  do {  // once for no taps at all: the epilogue of an empty sum
    const Range k{begin, std::min(s.k, begin + s.k_step)};
    const std::size_t panel_floats = s.kernels->panel() * k.size();
    gather_taps(s, task, k, panel_floats, scratch);
    for (std::size_t t = 0; t < tiles; ++t) {
      const Range part = part_of(task.rows.size(), t, tiles);
      const Range rows{task.rows.begin + part.begin, task.rows.begin + part.end};
      alignas(64) float biases[kMaxTileFloats];
      const float* start = k.begin == 0 ? spread_bias(s, task, rows, biases) : nullptr;
      for (std::size_t p = 0; p < panels; ++p) {
        multiply_tile(s, task, rows, panel_pixels(s, task, p), k, taps + p * panel_floats, start,
                      second_pass);
      }
    }
    begin = k.end;
  } while (begin < s.k);
}

Task task_at(const ConvStep& s, const Run& run, std::size_t index) {
  const std::size_t row_part = index % s.row_parts;
  const std::size_t tile = index / s.row_parts % s.tiles;
  const std::size_t group = index / s.row_parts / s.tiles % s.groups;
  const std::size_t block = index / s.row_parts / s.tiles;  // of all samples' groups
  const std::size_t block_floats = s.channels * s.input_size;
  const std::size_t first = block * s.outputs * s.pixels;
  Task task = {};
  const float* x = run.at<const float>(s.x);
  task.x = x + block * block_floats;
  task.x_end = x + s.batch * s.groups * block_floats;
  task.w = run.at<const float>(s.w) + group * s.outputs * s.w_stride;
  if (s.has_bias) task.bias = run.at<const float>(s.bias) + group * s.outputs;
  if (s.has_residual) task.residual = run.at<const float>(s.residual) + first;
  task.y = run.at<float>(s.y) + first;
  task.rows = part_of(s.outputs, row_part, s.row_parts);
  task.pixels = {tile * s.tile_pixels, std::min(s.pixels, (tile + 1) * s.tile_pixels)};
  return task;
}

void run_conv(const ConvStep& s, const Run& run) noexcept {
  Epilogue epilogue = s.epilogue;
  if (s.has_residual) epilogue.residual = run.at<const float>(s.residual);
  const EpilogueFunction second_pass =
      needs_second_pass(epilogue) ? epilogue_function(epilogue) : nullptr;
  auto* scratch = run.at<std::byte>(s.scratch);
  const std::size_t tasks = s.batch * s.groups * s.tiles * s.row_parts;
  const std::size_t cost = s.outputs / s.row_parts * s.tile_pixels * (s.k + 1) / 16;
  parallel_ranges(run, tasks, cost, s.threads,
                  [&](std::size_t part, std::size_t begin, std::size_t end) noexcept {
                    for (std::size_t i = begin; i < end; ++i)
                      run_task(s, task_at(s, run, i), second_pass,
                               scratch + part * s.scratch_bytes);
                  });
}

// ---------------------------------------------------------------- planning

std::span<const std::int64_t> spatial(const std::vector<std::int64_t>& dims) {
  return std::span(dims).subspan(2);
}

/// In how many parts rows are split where there are too few tiles of pixels for the threads; each
/// part gathers the taps anew.
std::size_t row_parts(std::size_t tasks, std::size_t row_tiles, std::size_t threads) {
  std::size_t best = 1;
  std::size_t best_rounds = ceil_div(tasks, threads) * threads;  // in units of 1 / threads
  for (std::size_t parts = 2; parts <= std::min(threads, row_tiles); ++parts) {
    const std::size_t rounds = ceil_div(ceil_div(tasks * parts, threads) * threads, parts);
    if (rounds * 10 >= best_rounds * 9) continue;
    best = parts;
    best_rounds = rounds;
  }
  return best;
}

void cut_tasks(ConvStep& s) {
  const std::size_t panel = s.kernels->panel();
  const std::size_t passes = std::max<std::size_t>(1, ceil_div(s.k, kMaxK));
  s.k_step = round_up(ceil_div(s.k, passes), 4);
  const std::size_t fit =
      std::max<std::size_t>(1, kTileFloats / std::max<std::size_t>(1, s.k_step * panel));
  const std::size_t panels = ceil_div(s.pixels, panel);
  // Tiles of one size, none of them much smaller than the others.
  const std::size_t tile_panels = ceil_div(panels, ceil_div(panels, fit));
  s.tile_pixels = tile_panels * panel;
  s.tiles = ceil_div(s.pixels, s.tile_pixels);
  s.row_parts =
      row_parts(s.batch * s.groups * s.tiles, ceil_div(s.outputs, s.kernels->max_rows), s.threads);
  s.tap_floats = round_up(tile_panels * panel * s.k_step + kChunk, kChunk);
  const std::size_t pieces = s.is_pointwise ? 0 : s.window.taps() * most_segments(s.window, panel);
  s.scratch_bytes = round_up(s.tap_floats * sizeof(float) + pieces * sizeof(Piece), 64);
}

/// Row stride of packed weights: rows a multiple of 2 KiB apart would share a few sets of the L1.
std::size_t packed_stride(std::size_t k) { return k + kChunk; }
bool wants_packing(std::size_t k) { return k % 512 == 0; }

std::vector<PackedParam> pack_conv(const Node& node) {
  const auto dims = node.input(1).shape().static_extents();
  if (!dims || node.input(1).shape().rank() == 0) return {};
  const auto rows = static_cast<std::size_t>((*dims)[0]);
  std::size_t k = 1;
  for (std::size_t axis = 1; axis < dims->size(); ++axis)
    k *= static_cast<std::size_t>((*dims)[axis]);
  if (rows * k == 0 || !wants_packing(k)) return {};
  const std::size_t stride = packed_stride(k);
  return {{1, fmt::format("conv_rows {}", stride), rows * stride * sizeof(float),
           [=](const Tensor& w, std::byte* to) {
             copy_rows({w.bytes().data(), k, 1, DType::f32}, rows, k, reinterpret_cast<float*>(to),
                       stride);
           }}};
}

template <class Attributes>
void plan(StepBuilder& step, const Attributes& op, const Epilogue& epilogue) {
  const Operand& x = step.in(0);
  const Operand& y = step.out();
  if (y.size() == 0) return;
  const std::vector<std::int64_t> w = step.node().input(1).shape().evaluate(step.sizes());
  ConvStep s;
  s.window = make_window({spatial(x.dims), spatial(y.dims), spatial(w), op.strides, op.padding_low,
                          op.padding_high, op.dilations});
  s.batch = static_cast<std::size_t>(x.dims[0]);
  s.groups = static_cast<std::size_t>(op.groups);
  s.channels = static_cast<std::size_t>(w[1]);
  s.outputs = static_cast<std::size_t>(w[0]) / s.groups;
  s.k = s.channels * s.window.taps();
  s.input_size = s.window.input_size();
  s.pixels = s.window.output_size();
  s.is_pointwise = std::ranges::all_of(s.window.axes, &WindowAxis::copies);
  s.threads = static_cast<std::size_t>(step.threads());
  s.kernels = &gemm_kernels(cpu_level());
  s.epilogue = epilogue;
  s.x = x.at;
  s.y = y.at;
  const auto packed = step.packed(1);
  s.w = packed ? *packed : step.in(1).at;
  s.w_stride = packed ? packed_stride(s.k) : s.k;
  s.has_bias = step.has(2);
  if (s.has_bias) s.bias = step.in(2).at;
  s.has_residual = step.has(3);
  if (s.has_residual) s.residual = step.in(3).at;
  cut_tasks(s);
  s.scratch = step.scratch(s.threads * s.scratch_bytes);
  step.launch(run_conv, s);
}

void plan_conv(StepBuilder& step) { plan(step, *step.node().as<Conv>(), {}); }

void plan_fused_conv(StepBuilder& step) {
  const auto& op = *step.node().as<FusedConv>();
  plan(step, op, epilogue_of(op));
}

/// Few outputs for each input channel leave little to multiply with what was gathered; the direct
/// kernel gathers less.
Match accepts(const Node& node, std::int64_t groups) {
  if (node.type().dtype != DType::f32)
    return Match::no(fmt::format("takes f32, not {}", name(node.type().dtype)));
  const Shape& w = node.input(1).shape();
  if (w[1] == Dim(1) && (w[0] - 4 * groups).upper_bound() <= 0) return Match::no("depthwise");
  return {};
}

Match accepts_conv(const Node& node) { return accepts(node, node.as<Conv>()->groups); }
Match accepts_fused_conv(const Node& node) { return accepts(node, node.as<FusedConv>()->groups); }

}  // namespace

KernelList conv_kernels() {
  static const Kernel kKernels[] = {
      {.name = "conv_gemm_f32",
       .op = &conv_def,
       .accepts = accepts_conv,
       .plan = plan_conv,
       .packing = pack_conv},
      {.name = "fused_conv_gemm_f32",
       .op = &fused_conv_def,
       .accepts = accepts_fused_conv,
       .plan = plan_fused_conv,
       .packing = pack_conv},
  };
  return kKernels;
}

}  // namespace rlx::cpu
