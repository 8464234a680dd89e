// Plans contractions as calls of the packed GEMM (../gemm.h).

#include <fmt/format.h>

#include <algorithm>

#include "backends/cpu/gemm.h"
#include "backends/cpu/gemm_f64.h"
#include "backends/cpu/gemm_int8.h"
#include "backends/cpu/kernel.h"
#include "backends/cpu/kernels/fused_epilogue.h"
#include "compiler/fused.h"
#include "ops/dot_general.h"

namespace rlx::cpu {
namespace {

struct LinearParams {
  GemmArgs args;
  Buffer x, w, bias, residual, y, scratch;
  bool has_bias, has_residual, is_packed;
};

void run_linear(const LinearParams& p, const Run& run) noexcept {
  GemmArgs args = p.args;
  args.a = run.at<float>(p.x);
  args.c = run.at<float>(p.y);
  if (p.is_packed) {
    args.packed = run.at<float>(p.w);
  } else {
    args.b.data = run.at<float>(p.w);
  }
  if (p.has_bias) args.epilogue.bias = run.at<float>(p.bias);
  if (p.has_residual) args.epilogue.residual = run.at<float>(p.residual);
  args.scratch = run.at<std::byte>(p.scratch);
  gemm(args, run.pool);
}

Match all_f32(const Node& node) {
  for (const Value v : node.inputs()) {
    if (v && v.dtype() != DType::f32)
      return Match::no(fmt::format("takes f32, not {}", name(v.dtype())));
  }
  return {};
}

MatrixView weight_view(const FusedLinear& op, std::size_t k, std::size_t n) {
  return op.transposed ? MatrixView{nullptr, 1, k} : MatrixView{nullptr, n, 1};
}

std::vector<PackedParam> pack_linear(const Node& node) {
  const auto& op = *node.as<FusedLinear>();
  const auto dims = node.input(1).shape().static_extents();
  if (!dims) return {};
  const auto k = static_cast<std::size_t>((*dims)[op.transposed ? 1 : 0]);
  const auto n = static_cast<std::size_t>((*dims)[op.transposed ? 0 : 1]);
  const PackedB layout = packed_b(k, n);
  const MatrixView view = weight_view(op, k, n);
  return {{1, fmt::format("gemm_f32 {} {}", op.transposed, layout.panel), layout.bytes(),
           [=](const Tensor& w, std::byte* to) {
             MatrixView from = view;
             from.data = w.bytes().data();
             pack_b(layout, from, reinterpret_cast<float*>(to), ThreadPool::process());
           }}};
}

void plan_linear(StepBuilder& step) {
  const auto& op = *step.node().as<FusedLinear>();
  const Operand& x = step.in(0);
  const Operand& y = step.out();
  LinearParams p{};
  p.args.k = static_cast<std::size_t>(x.dims.back());
  p.args.n = static_cast<std::size_t>(y.dims.back());
  p.args.m = 1;
  for (std::size_t axis = 0; axis + 1 < x.rank(); ++axis)
    p.args.m *= static_cast<std::size_t>(x.dims[axis]);
  p.args.lda = p.args.k;
  p.args.ldc = p.args.n;
  p.x = x.at;
  p.y = y.at;
  const auto packed = step.packed(1);
  p.is_packed = packed.has_value();
  p.w = packed ? *packed : step.in(1).at;
  p.args.layout = packed_b(p.args.k, p.args.n);
  if (!packed) p.args.b = weight_view(op, p.args.k, p.args.n);
  p.has_bias = step.has(2);
  if (p.has_bias) p.bias = step.in(2).at;
  p.args.epilogue = epilogue_of(op);
  p.has_residual = step.has(3);
  if (p.has_residual) {
    p.residual = step.in(3).at;
    p.args.epilogue.residual_ld = p.args.n;
  }
  // What scratch depends on is which form of B is given; any address will do for that.
  if (packed) p.args.packed = reinterpret_cast<const float*>(alignof(float));
  p.scratch = step.scratch(gemm_scratch_bytes(p.args, step.threads()));
  p.args.packed = nullptr;
  step.launch(run_linear, p);
}

// ---------------------------------------------------------------- dot_general

// A group of axes walked as one: its extent and the stride in each operand.
struct Axis {
  std::int64_t extent = 1;
  std::int64_t first = 0;
  std::int64_t second = 0;
};

// Joins neighbours that step like one axis in both operands; axes of extent 1 vanish.
std::vector<Axis> joined(const std::vector<Axis>& axes) {
  std::vector<Axis> result;
  for (const Axis& axis : axes) {
    if (axis.extent == 1) continue;
    if (!result.empty()) {
      Axis& outer = result.back();
      if (outer.first == axis.first * axis.extent && outer.second == axis.second * axis.extent) {
        outer = {outer.extent * axis.extent, axis.first, axis.second};
        continue;
      }
    }
    result.push_back(axis);
  }
  return result;
}

std::vector<std::int64_t> free_axes(std::size_t rank, const std::vector<std::int64_t>& batch,
                                    const std::vector<std::int64_t>& contracting) {
  std::vector<std::int64_t> free;
  for (std::int64_t axis = 0; axis < static_cast<std::int64_t>(rank); ++axis) {
    const bool taken = std::ranges::find(batch, axis) != batch.end() ||
                       std::ranges::find(contracting, axis) != contracting.end();
    if (!taken) free.push_back(axis);
  }
  return free;
}

// An operand as [batch…, rows…, columns…] by its own axes.
struct DotOperand {
  Operand operand;
  std::vector<std::int64_t> batch, free, contracting;

  std::vector<Axis> axes(const std::vector<std::int64_t>& list) const {
    std::vector<Axis> result;
    for (const std::int64_t a : list) {
      const auto axis = static_cast<std::size_t>(a);
      result.push_back({operand.dims[axis], operand.strides[axis], operand.strides[axis]});
    }
    return joined(result);
  }
};

// Copies the operand to scratch in the order batch, free, contracting, so that each group is one
// axis.
void make_dense(StepBuilder& step, DotOperand& x) {
  Operand from = x.operand;
  from.dims.clear();
  from.strides.clear();
  for (auto* list : {&x.batch, &x.free, &x.contracting}) {
    for (std::int64_t& axis : *list) {
      from.dims.push_back(x.operand.dims[static_cast<std::size_t>(axis)]);
      from.strides.push_back(x.operand.strides[static_cast<std::size_t>(axis)]);
      axis = static_cast<std::int64_t>(from.dims.size()) - 1;
    }
  }
  Operand to = from;
  to.at = step.scratch(byte_size(from.dtype, static_cast<std::size_t>(from.size())));
  std::int64_t stride = 1;
  for (std::size_t axis = to.dims.size(); axis-- > 0;) {
    to.strides[axis] = stride;
    stride *= to.dims[axis];
  }
  plan_copy(step, from, to);
  x.operand = to;
}

/// A contraction as matrix products: where the operands lie and how far their rows, columns and
/// problems are apart.
struct DotGeometry {
  std::size_t m = 1, n = 1, k = 1, batch = 1;
  std::size_t lda = 0, a_batch = 0, b_row_stride = 0, b_col_stride = 0, b_batch = 0;
  Buffer a, b, c;
  std::span<const Axis> outer;  // further batch axes; the result's problems follow one another
  std::int64_t problems = 1;    // of the outer axes
};

// Calls f(a, b, c) for the addresses of each problem of the outer axes.
template <class T, class R = T, class F>
void for_each_problem(const DotGeometry& g, const Run& run, F&& f) noexcept {
  for (std::int64_t i = 0; i < g.problems; ++i) {
    std::int64_t rest = i;
    std::int64_t a_offset = 0;
    std::int64_t b_offset = 0;
    for (std::size_t axis = g.outer.size(); axis-- > 0;) {
      const std::int64_t at = rest % g.outer[axis].extent;
      rest /= g.outer[axis].extent;
      a_offset += at * g.outer[axis].first;
      b_offset += at * g.outer[axis].second;
    }
    f(run.at<T>(g.a) + a_offset, run.at<T>(g.b) + b_offset,
      run.at<R>(g.c) + i * static_cast<std::int64_t>(g.batch * g.m * g.n));
  }
}

std::vector<Axis> batch_axes(const DotOperand& a, const DotOperand& b) {
  std::vector<Axis> axes;
  for (std::size_t i = 0; i < a.batch.size(); ++i) {
    const auto x = static_cast<std::size_t>(a.batch[i]);
    const auto y = static_cast<std::size_t>(b.batch[i]);
    axes.push_back({a.operand.dims[x], a.operand.strides[x], b.operand.strides[y]});
  }
  return joined(axes);
}

Axis only(const std::vector<Axis>& axes) { return axes.empty() ? Axis{1, 1, 1} : axes[0]; }

DotGeometry geometry_of(StepBuilder& step) {
  const auto& op = *step.node().as<DotGeneral>();
  DotOperand a{step.in(0), op.a_batch, free_axes(step.in(0).rank(), op.a_batch, op.a_contracting),
               op.a_contracting};
  DotOperand b{step.in(1), op.b_batch, free_axes(step.in(1).rank(), op.b_batch, op.b_contracting),
               op.b_contracting};
  const auto k_of = [](const DotOperand& x) { return x.axes(x.contracting); };
  // Rows of A must be contiguous along K and stand at one stride; B may have any two strides.
  if (a.axes(a.free).size() > 1 || k_of(a).size() > 1 || only(k_of(a)).first != 1)
    make_dense(step, a);
  if (b.axes(b.free).size() > 1 || k_of(b).size() > 1) make_dense(step, b);

  const Axis m = only(a.axes(a.free));
  const Axis n = only(b.axes(b.free));
  const Axis k = only(k_of(b));
  DotGeometry g;
  g.m = static_cast<std::size_t>(m.extent);
  g.n = static_cast<std::size_t>(n.extent);
  g.k = static_cast<std::size_t>(k.extent);
  g.lda = static_cast<std::size_t>(a.axes(a.free).empty() ? k.extent : m.first);
  g.b_row_stride = static_cast<std::size_t>(k.first);
  g.b_col_stride = static_cast<std::size_t>(n.first);
  std::vector<Axis> batches = batch_axes(a, b);
  if (!batches.empty()) {
    g.batch = static_cast<std::size_t>(batches.back().extent);
    g.a_batch = static_cast<std::size_t>(batches.back().first);
    g.b_batch = static_cast<std::size_t>(batches.back().second);
    batches.pop_back();
  }
  for (const Axis& axis : batches) g.problems *= axis.extent;
  g.outer = step.keep(batches);
  g.a = a.operand.at;
  g.b = b.operand.at;
  g.c = step.out().at;
  return g;
}

// What the arguments of the floating GEMMs have in common.
template <class Args>
void take_geometry(Args& args, const DotGeometry& g) {
  args.m = g.m;
  args.n = g.n;
  args.k = g.k;
  args.batch = g.batch;
  args.lda = g.lda;
  args.a_batch = g.a_batch;
  args.b_batch = g.b_batch;
  args.ldc = g.n;
  args.c_batch = g.m * g.n;
}

struct DotF32 {
  DotGeometry geometry;
  GemmArgs args;
  Buffer scratch;
};

void run_dot_f32(const DotF32& p, const Run& run) noexcept {
  GemmArgs args = p.args;
  args.scratch = run.at<std::byte>(p.scratch);
  for_each_problem<float>(p.geometry, run, [&](const float* a, const float* b, float* c) noexcept {
    args.a = a;
    args.b.data = b;
    args.c = c;
    gemm(args, run.pool);
  });
}

void plan_dot_f32(StepBuilder& step) {
  DotF32 p{};
  p.geometry = geometry_of(step);
  const DotGeometry& g = p.geometry;
  take_geometry(p.args, g);
  p.args.b = {nullptr, g.b_row_stride, g.b_col_stride};
  p.args.layout = packed_b(g.k, g.n);
  p.scratch = step.scratch(gemm_scratch_bytes(p.args, step.threads()));
  step.launch(run_dot_f32, p);
}

struct DotF64 {
  DotGeometry geometry;
  Gemm64Args args;
  Buffer scratch;
};

void run_dot_f64(const DotF64& p, const Run& run) noexcept {
  Gemm64Args args = p.args;
  args.scratch = run.at<std::byte>(p.scratch);
  for_each_problem<double>(p.geometry, run,
                           [&](const double* a, const double* b, double* c) noexcept {
                             args.a = a;
                             args.b = b;
                             args.c = c;
                             gemm_f64(args, run.pool);
                           });
}

void plan_dot_f64(StepBuilder& step) {
  DotF64 p{};
  p.geometry = geometry_of(step);
  const DotGeometry& g = p.geometry;
  take_geometry(p.args, g);
  p.args.b_row_stride = g.b_row_stride;
  p.args.b_col_stride = g.b_col_stride;
  p.scratch = step.scratch(gemm_f64_scratch_bytes(p.args, step.threads()));
  step.launch(run_dot_f64, p);
}

struct DotInt8 {
  DotGeometry geometry;
  Int8GemmArgs args;
  Int8Matrix b;
  Buffer packed, scratch;
};

// One product with a matrix that is packed for it.
void multiply_int8(const DotInt8& p, const std::byte* a, const std::byte* b, std::int32_t* c,
                   const Run& run) noexcept {
  Int8Matrix from = p.b;
  from.data = b;
  auto* packed = run.at<std::byte>(p.packed);
  pack_int8_b(p.args.layout, from, packed, run.pool);
  Int8GemmArgs args = p.args;
  args.a = a;
  args.packed = packed;
  args.c = c;
  args.scratch = run.at<std::byte>(p.scratch);
  int8_gemm(args, run.pool);
}

void run_dot_int8(const DotInt8& p, const Run& run) noexcept {
  const DotGeometry& g = p.geometry;
  for_each_problem<std::byte, std::int32_t>(
      g, run, [&](const std::byte* a, const std::byte* b, std::int32_t* c) noexcept {
        for (std::size_t i = 0; i < g.batch; ++i) {
          multiply_int8(p, a + i * g.a_batch, b + i * g.b_batch, c + i * g.m * g.n, run);
        }
      });
}

void plan_dot_int8(StepBuilder& step) {
  DotInt8 p{};
  p.geometry = geometry_of(step);
  const DotGeometry& g = p.geometry;
  p.b = {nullptr, step.in(1).dtype == DType::i8, g.b_row_stride, g.b_col_stride};
  p.args.m = g.m;
  p.args.n = g.n;
  p.args.k = g.k;
  p.args.a_signed = step.in(0).dtype == DType::i8;
  p.args.lda = g.lda;
  p.args.layout = packed_int8_b(g.k, g.n);
  p.args.b_signed = p.b.is_signed;
  p.args.ldc = g.n;
  p.packed = step.scratch(p.args.layout.bytes());
  p.scratch = step.scratch(int8_gemm_scratch_bytes(p.args, step.threads()));
  step.launch(run_dot_int8, p);
}

Match accepts_linear(const Node& node) { return all_f32(node); }

template <DType dtype>
Match accepts_dot(const Node& node) {
  for (const Value v : node.inputs()) {
    if (v.dtype() != dtype)
      return Match::no(fmt::format("takes {}, not {}", name(dtype), name(v.dtype())));
  }
  return {};
}

Match accepts_dot_int8(const Node& node) {
  for (const Value v : node.inputs()) {
    if (v.dtype() != DType::i8 && v.dtype() != DType::u8) {
      return Match::no(fmt::format("takes i8 and u8, not {}", name(v.dtype())));
    }
  }
  return {};
}

constexpr std::uint32_t kBoth = 3;

}  // namespace

KernelList matmul_kernels() {
  static const Kernel kKernels[] = {
      {.name = "gemm_linear_f32",
       .op = &fused_linear_def,
       .accepts = accepts_linear,
       .plan = plan_linear,
       .packing = pack_linear},
      {.name = "gemm_f32",
       .op = &dot_general_def,
       .accepts = accepts_dot<DType::f32>,
       .plan = plan_dot_f32,
       .strided_inputs = kBoth},
      {.name = "gemm_f64",
       .op = &dot_general_def,
       .accepts = accepts_dot<DType::f64>,
       .plan = plan_dot_f64,
       .strided_inputs = kBoth},
      {.name = "gemm_int8",
       .op = &dot_general_def,
       .accepts = accepts_dot_int8,
       .plan = plan_dot_int8,
       .strided_inputs = kBoth},
  };
  return kKernels;
}

}  // namespace rlx::cpu
