#include <algorithm>
#include <cstring>

#include "backends/cpu/accepts.h"
#include "backends/cpu/kernel.h"
#include "backends/cpu/parallel.h"
#include "ops/host_array.h"
#include "ops/movement.h"

namespace rlx::cpu {
namespace {

/// One axis of the output: where each of its coordinates reads x, in elements along the axis, -1
/// where the filler stands.
struct PadAxis {
  std::span<const std::int64_t> source;
  std::size_t stride;  ///< of x, in elements
};

struct PadStep {
  Buffer x, y, value;
  bool has_value;
  std::span<const PadAxis> axes;  ///< all but the last
  std::span<const std::int64_t> columns;
  std::size_t inside, low;  ///< of the last axis: x's extent, and where it starts in y
  std::size_t rows;
  std::size_t threads;
};
using PadFunction = void (*)(const PadStep&, const Run&) noexcept;

/// Where x's row for row `r` of y starts; -1 for a row of fillers.
std::int64_t source_row(const PadStep& s, std::size_t r) noexcept {
  std::int64_t offset = 0;
  for (std::size_t axis = s.axes.size(); axis-- > 0;) {
    const PadAxis& a = s.axes[axis];
    const std::int64_t i = a.source[r % a.source.size()];
    r /= a.source.size();
    if (i < 0) return -1;
    offset += i * static_cast<std::int64_t>(a.stride);
  }
  return offset;
}

template <class T>
void pad_row(const PadStep& s, const T* from, T* to, T filler) noexcept {
  const auto edge = [&](std::size_t begin, std::size_t end) {
    for (std::size_t j = begin; j < end; ++j) {
      to[j] = s.columns[j] < 0 ? filler : from[static_cast<std::size_t>(s.columns[j])];
    }
  };
  edge(0, s.low);
  std::memcpy(to + s.low, from, s.inside * sizeof(T));
  edge(s.low + s.inside, s.columns.size());
}

template <class T>
void pad_rows(const PadStep& s, const Run& run) noexcept {
  const T* x = run.at<const T>(s.x);
  T* y = run.at<T>(s.y);
  const T filler = s.has_value ? *run.at<const T>(s.value) : T();
  const std::size_t cols = s.columns.size();
  parallel_ranges(run, s.rows, cols, s.threads,
                  [&](std::size_t, std::size_t begin, std::size_t end) {
                    for (std::size_t r = begin; r < end; ++r) {
                      const std::int64_t from = source_row(s, r);
                      if (from < 0) {
                        std::fill_n(y + r * cols, cols, filler);
                      } else {
                        pad_row(s, x + from, y + r * cols, filler);
                      }
                    }
                  });
}

struct Bytes16 {
  std::uint64_t low = 0, high = 0;
};

PadFunction pad_function(std::size_t bytes) {
  switch (bytes) {
    case 1:
      return pad_rows<std::uint8_t>;
    case 2:
      return pad_rows<std::uint16_t>;
    case 4:
      return pad_rows<std::uint32_t>;
    case 8:
      return pad_rows<std::uint64_t>;
    default:
      return pad_rows<Bytes16>;
  }
}

std::int64_t padded_index(std::int64_t i, std::int64_t extent, PadMode mode) {
  if (i >= 0 && i < extent) return i;
  switch (mode) {
    case PadMode::constant:
      return -1;
    case PadMode::reflect:
      return i < 0 ? -i : 2 * (extent - 1) - i;
    case PadMode::edge:
      return i < 0 ? 0 : extent - 1;
    case PadMode::wrap:
      return i < 0 ? i + extent : i - extent;
  }
  return -1;
}

Match accepts_pad(const Node& node) {
  const DTypeTraits& t = traits(node.type().dtype);
  if (t.kind == DTypeKind::string) return Match::no("strings live on the host");
  if (t.block_length != 1) return Match::no(fmt::format("elements of {} are not bytes", t.name));
  return {};
}

void plan_pad(StepBuilder& step) {
  const auto& op = *step.node().as<Pad>();
  const Operand& x = step.in(0);
  const Operand& y = step.out();
  if (y.size() == 0) return;
  std::vector<PadAxis> axes;
  for (std::size_t axis = 0; axis < x.rank(); ++axis) {
    const std::int64_t low = op.low[axis].evaluate(step.sizes());
    std::vector<std::int64_t> source;
    for (std::int64_t i = 0; i < y.dims[axis]; ++i)
      source.push_back(padded_index(i - low, x.dims[axis], op.mode));
    axes.push_back({step.keep(source), static_cast<std::size_t>(x.strides[axis])});
  }
  const std::size_t rank = x.rank();
  if (rank == 0) axes.push_back({step.keep(std::vector<std::int64_t>{0}), 1});
  PadStep s{};
  s.x = x.at;
  s.y = y.at;
  s.has_value = step.has(1);
  if (s.has_value) s.value = step.in(1).at;
  s.columns = axes.back().source;
  s.inside = rank == 0 ? 1 : static_cast<std::size_t>(x.dims.back());
  s.low = rank == 0 ? 0 : static_cast<std::size_t>(op.low.back().evaluate(step.sizes()));
  axes.pop_back();
  s.axes = step.keep(axes);
  s.rows = static_cast<std::size_t>(y.size()) / s.columns.size();
  s.threads = static_cast<std::size_t>(step.threads());
  step.launch(pad_function(traits(x.dtype).block_bytes), s);
}

}  // namespace

KernelList pad_kernels() {
  static constexpr Kernel kKernels[] = {
      {.name = "pad_rows", .op = &pad_def, .accepts = accepts_pad, .plan = plan_pad}};
  return kKernels;
}

}  // namespace rlx::cpu
