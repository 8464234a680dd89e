#include <algorithm>
#include <array>
#include <cstring>

#include "backends/cpu/accepts.h"
#include "backends/cpu/kernel.h"
#include "backends/cpu/parallel.h"
#include "ops/host_array.h"
#include "ops/indexing.h"

namespace rlx::cpu {
namespace {

/// An index tensor of i32 or i64.
struct Indices {
  Buffer at;
  bool wide = true;

  std::int64_t get(const Run& run, std::size_t i) const noexcept {
    return wide ? run.at<const std::int64_t>(at)[i] : run.at<const std::int32_t>(at)[i];
  }
};

Indices indices_of(const Operand& operand) { return {operand.at, operand.dtype == i64}; }

/// Index i within [0, extent), a negative one counted from the end; -1 and a fault if it is out of
/// range.
std::int64_t resolve(const Run& run, const Indices& indices, std::size_t i,
                     std::int64_t extent) noexcept {
  const std::int64_t index = indices.get(run, i);
  if (index >= 0 && index < extent) return index;
  if (index < 0 && index >= -extent) return index + extent;
  run.faults.report(run.step, FaultKind::index_out_of_range, i, index, extent);
  return -1;
}

/// Copies a piece of `bytes`, or zeros where there is none. Small fixed sizes become plain moves.
void copy_piece(std::byte* to, const std::byte* from, std::size_t bytes) noexcept {
  if (from == nullptr) {
    std::memset(to, 0, bytes);
    return;
  }
  switch (bytes) {
    case 1:
      std::memcpy(to, from, 1);
      return;
    case 2:
      std::memcpy(to, from, 2);
      return;
    case 4:
      std::memcpy(to, from, 4);
      return;
    case 8:
      std::memcpy(to, from, 8);
      return;
    default:
      std::memcpy(to, from, bytes);
  }
}

/// Work of copying so many bytes, in elements of arithmetic.
std::size_t copy_cost(std::size_t bytes) { return bytes / 16 + 4; }

// ---- gather

/// x [outer, extent, piece], y [outer, count, piece].
struct GatherStep {
  Buffer x, y;
  Indices indices;
  std::size_t outer = 1, count = 1, bytes = 1;
  std::int64_t extent = 1;
  std::size_t threads = 1;
};

void gather_pieces(const GatherStep& s, const Run& run) noexcept {
  const auto* x = run.at<const std::byte>(s.x);
  auto* y = run.at<std::byte>(s.y);
  const std::size_t slab = static_cast<std::size_t>(s.extent) * s.bytes;
  parallel_ranges(run, s.outer * s.count, copy_cost(s.bytes), s.threads,
                  [&](std::size_t, std::size_t begin, std::size_t end) {
                    for (std::size_t i = begin; i < end; ++i) {
                      const std::int64_t index = resolve(run, s.indices, i % s.count, s.extent);
                      const std::byte* from =
                          index < 0
                              ? nullptr
                              : x + i / s.count * slab + static_cast<std::size_t>(index) * s.bytes;
                      copy_piece(y + i * s.bytes, from, s.bytes);
                    }
                  });
}

void plan_gather(StepBuilder& step) {
  const Operand& x = step.in(0);
  const AxisView view = fold_axis(x.dims, step.node().as<Gather>()->axis);
  if (step.out().size() == 0) return;
  GatherStep s;
  s.x = x.at;
  s.y = step.out().at;
  s.indices = indices_of(step.in(1));
  s.outer = static_cast<std::size_t>(view.outer);
  s.count = static_cast<std::size_t>(step.in(1).size());
  s.extent = view.length;
  s.bytes = byte_size(x.dtype, static_cast<std::size_t>(view.inner));
  s.threads = static_cast<std::size_t>(step.threads());
  step.launch(gather_pieces, s);
}

/// Pieces of a row-major tensor of which each holds the elements of `axes` from the given one on
/// start at whole bytes if a piece is whole blocks of the dtype.
Match pieces_are_bytes(const TensorType& x, std::size_t first_axis) {
  const DTypeTraits& t = traits(x.dtype);
  if (x.dtype == DType::string) return Match::no("strings live on the host");
  if (t.block_length == 1) return {};
  const Dim last = first_axis < x.rank() ? x.shape.back() : Dim(1);
  if (last.constant() && *last.constant() % t.block_length == 0) return {};
  return Match::no(fmt::format("pieces of {} with a last extent of {} may not be whole bytes",
                               t.name, last.to_string()));
}

Match accepts_gather(const Node& node) {
  const auto axis = static_cast<std::size_t>(node.as<Gather>()->axis);
  return pieces_are_bytes(node.input(0).type(), axis + 1);
}

// ---- gather_elements

constexpr std::size_t kMaxRank = 8;

/// y[i…] = x[i…, with the coordinate of `axis` replaced by indices[i…]].
struct GatherElementsStep {
  Buffer x, y;
  Indices indices;
  std::size_t rank = 1, axis = 0;
  std::size_t rows = 1, cols = 1;               ///< of y, the last axis and all before it
  std::array<std::size_t, kMaxRank> dims{};     ///< of y
  std::array<std::size_t, kMaxRank> strides{};  ///< of x, in elements; 0 for `axis`
  std::size_t axis_stride = 1;
  std::int64_t extent = 1;
  std::size_t threads = 1;
};

/// Where the row's elements start in x, but for the coordinate along the axis.
std::size_t base_of_row(const GatherElementsStep& s, std::size_t row) noexcept {
  std::size_t base = 0;
  for (std::size_t axis = s.rank - 1; axis-- > 0;) {
    base += row % s.dims[axis] * s.strides[axis];
    row /= s.dims[axis];
  }
  return base;
}

template <class T>
void gather_elements(const GatherElementsStep& s, const Run& run) noexcept {
  const T* x = run.at<const T>(s.x);
  T* y = run.at<T>(s.y);
  const std::size_t col_stride = s.strides[s.rank - 1];
  parallel_ranges(run, s.rows, s.cols * 4, s.threads,
                  [&](std::size_t, std::size_t begin, std::size_t end) {
                    for (std::size_t r = begin; r < end; ++r) {
                      const T* from = x + base_of_row(s, r);
                      for (std::size_t c = 0; c < s.cols; ++c) {
                        const std::size_t i = r * s.cols + c;
                        const std::int64_t index = resolve(run, s.indices, i, s.extent);
                        const auto at = static_cast<std::size_t>(index) * s.axis_stride;
                        y[i] = index < 0 ? T() : from[at + c * col_stride];
                      }
                    }
                  });
}

struct Bytes16 {
  std::uint64_t low = 0, high = 0;
};

using GatherElementsFunction = void (*)(const GatherElementsStep&, const Run&) noexcept;

GatherElementsFunction gather_elements_function(std::size_t bytes) {
  switch (bytes) {
    case 1:
      return gather_elements<std::uint8_t>;
    case 2:
      return gather_elements<std::uint16_t>;
    case 4:
      return gather_elements<std::uint32_t>;
    case 8:
      return gather_elements<std::uint64_t>;
    default:
      return gather_elements<Bytes16>;
  }
}

Match accepts_gather_elements(const Node& node) {
  const TensorType& x = node.input(0).type();
  if (x.dtype == DType::string) return Match::no("strings live on the host");
  if (traits(x.dtype).block_length != 1)
    return Match::no(fmt::format("elements of {} are not whole bytes", name(x.dtype)));
  if (x.rank() > kMaxRank) return Match::no(fmt::format("rank {} is above {}", x.rank(), kMaxRank));
  return {};
}

void plan_gather_elements(StepBuilder& step) {
  const Operand& x = step.in(0);
  const Operand& y = step.out();
  if (y.size() == 0) return;
  GatherElementsStep s;
  s.x = x.at;
  s.y = y.at;
  s.indices = indices_of(step.in(1));
  s.rank = x.rank();
  s.axis = static_cast<std::size_t>(step.node().as<GatherElements>()->axis);
  for (std::size_t i = 0; i < s.rank; ++i) {
    s.dims[i] = static_cast<std::size_t>(y.dims[i]);
    s.strides[i] = i == s.axis ? 0 : static_cast<std::size_t>(x.strides[i]);
  }
  s.cols = s.dims[s.rank - 1];
  s.rows = static_cast<std::size_t>(y.size()) / s.cols;
  s.axis_stride = static_cast<std::size_t>(x.strides[s.axis]);
  s.extent = x.dims[s.axis];
  s.threads = static_cast<std::size_t>(step.threads());
  step.launch(gather_elements_function(traits(x.dtype).block_bytes), s);
}

// ---- gather_nd

/// x [batch, extents…, piece], indices [batch, count, depth], y [batch, count, piece].
struct GatherNdStep {
  Buffer x, y;
  Indices indices;
  std::size_t batch = 1, count = 1, depth = 1;
  std::size_t bytes = 1;        ///< of a piece
  std::size_t batch_bytes = 1;  ///< of x, from one batch to the next
  std::array<std::int64_t, kMaxRank> extents{};
  std::size_t threads = 1;
};

/// The piece that row `i` of the indices names, null where one of them is out of range.
const std::byte* piece_of(const GatherNdStep& s, const Run& run, const std::byte* x,
                          std::size_t i) noexcept {
  std::size_t piece = 0;
  bool inside = true;
  for (std::size_t k = 0; k < s.depth; ++k) {
    const std::int64_t index = resolve(run, s.indices, i * s.depth + k, s.extents[k]);
    inside = inside && index >= 0;
    piece = piece * static_cast<std::size_t>(s.extents[k]) + static_cast<std::size_t>(index);
  }
  return inside ? x + i / s.count * s.batch_bytes + piece * s.bytes : nullptr;
}

void gather_nd(const GatherNdStep& s, const Run& run) noexcept {
  const auto* x = run.at<const std::byte>(s.x);
  auto* y = run.at<std::byte>(s.y);
  parallel_ranges(run, s.batch * s.count, copy_cost(s.bytes) + s.depth, s.threads,
                  [&](std::size_t, std::size_t begin, std::size_t end) {
                    for (std::size_t i = begin; i < end; ++i)
                      copy_piece(y + i * s.bytes, piece_of(s, run, x, i), s.bytes);
                  });
}

std::size_t index_depth(const Node& node) {
  return static_cast<std::size_t>(node.input(1).shape().back().constant().value_or(0));
}

Match accepts_gather_nd(const Node& node) {
  const Dim depth = node.input(1).shape().back();
  if (!depth.is_constant())
    return Match::no(fmt::format("an index of {} coordinates is not static", depth.to_string()));
  const auto batch = static_cast<std::size_t>(node.as<GatherNd>()->batch_dims);
  if (index_depth(node) > kMaxRank)
    return Match::no(fmt::format("{} coordinates are more than {}", index_depth(node), kMaxRank));
  return pieces_are_bytes(node.input(0).type(), batch + index_depth(node));
}

void plan_gather_nd(StepBuilder& step) {
  const Operand& x = step.in(0);
  const Operand& indices = step.in(1);
  if (step.out().size() == 0) return;
  const auto batch_dims = static_cast<std::size_t>(step.node().as<GatherNd>()->batch_dims);
  GatherNdStep s;
  s.x = x.at;
  s.y = step.out().at;
  s.indices = indices_of(indices);
  s.depth = static_cast<std::size_t>(indices.dims.back());
  for (std::size_t i = 0; i < batch_dims; ++i) s.batch *= static_cast<std::size_t>(x.dims[i]);
  for (std::size_t i = batch_dims; i + 1 < indices.rank(); ++i)
    s.count *= static_cast<std::size_t>(indices.dims[i]);
  std::size_t pieces = 1, piece = 1;
  for (std::size_t k = 0; k < s.depth; ++k) {
    s.extents[k] = x.dims[batch_dims + k];
    pieces *= static_cast<std::size_t>(s.extents[k]);
  }
  for (std::size_t i = batch_dims + s.depth; i < x.rank(); ++i)
    piece *= static_cast<std::size_t>(x.dims[i]);
  s.bytes = byte_size(x.dtype, piece);
  s.batch_bytes = pieces * s.bytes;
  s.threads = static_cast<std::size_t>(step.threads());
  step.launch(gather_nd, s);
}

}  // namespace

KernelList gather_kernels() {
  static constexpr Kernel kKernels[] = {
      {.name = "gather_pieces", .op = &gather_def, .accepts = accepts_gather, .plan = plan_gather},
      {.name = "gather_elements",
       .op = &gather_elements_def,
       .accepts = accepts_gather_elements,
       .plan = plan_gather_elements},
      {.name = "gather_nd",
       .op = &gather_nd_def,
       .accepts = accepts_gather_nd,
       .plan = plan_gather_nd},
  };
  return kKernels;
}

}  // namespace rlx::cpu
