// Plans contractions as calls of the packed GEMM (../gemm.h).

#include <fmt/format.h>

#include <algorithm>

#include "backends/cpu/gemm.h"
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

struct DotParams {
  GemmArgs args;  // one batch axis, the innermost
  Buffer a, b, c, scratch;
  std::span<const Axis> outer;  // further batch axes; the result's problems follow one another
  std::int64_t problems;        // of the outer axes
};

void run_dot(const DotParams& p, const Run& run) noexcept {
  GemmArgs args = p.args;
  const auto* a = run.at<float>(p.a);
  const auto* b = run.at<float>(p.b);
  auto* c = run.at<float>(p.c);
  args.scratch = run.at<std::byte>(p.scratch);
  for (std::int64_t i = 0; i < p.problems; ++i) {
    std::int64_t rest = i;
    std::int64_t a_offset = 0;
    std::int64_t b_offset = 0;
    for (std::size_t axis = p.outer.size(); axis-- > 0;) {
      const std::int64_t at = rest % p.outer[axis].extent;
      rest /= p.outer[axis].extent;
      a_offset += at * p.outer[axis].first;
      b_offset += at * p.outer[axis].second;
    }
    args.a = a + a_offset;
    args.b.data = b + b_offset;
    args.c = c + i * static_cast<std::int64_t>(args.batch * args.c_batch);
    gemm(args, run.pool);
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

void plan_dot(StepBuilder& step) {
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

  DotParams p{};
  const Axis m = only(a.axes(a.free));
  const Axis n = only(b.axes(b.free));
  const Axis k = only(k_of(b));
  p.args.m = static_cast<std::size_t>(m.extent);
  p.args.n = static_cast<std::size_t>(n.extent);
  p.args.k = static_cast<std::size_t>(k.extent);
  p.args.lda = static_cast<std::size_t>(a.axes(a.free).empty() ? k.extent : m.first);
  p.args.b = {nullptr, static_cast<std::size_t>(k.first), static_cast<std::size_t>(n.first)};
  p.args.ldc = p.args.n;
  p.args.c_batch = p.args.m * p.args.n;
  std::vector<Axis> batches = batch_axes(a, b);
  if (!batches.empty()) {
    p.args.batch = static_cast<std::size_t>(batches.back().extent);
    p.args.a_batch = static_cast<std::size_t>(batches.back().first);
    p.args.b_batch = static_cast<std::size_t>(batches.back().second);
    batches.pop_back();
  }
  p.problems = 1;
  for (const Axis& axis : batches) p.problems *= axis.extent;
  p.outer = step.keep(batches);
  p.a = a.operand.at;
  p.b = b.operand.at;
  p.c = step.out().at;
  p.args.layout = packed_b(p.args.k, p.args.n);
  p.scratch = step.scratch(gemm_scratch_bytes(p.args, step.threads()));
  step.launch(run_dot, p);
}

Match accepts_linear(const Node& node) { return all_f32(node); }

Match accepts_dot(const Node& node) {
  if (node.as<DotGeneral>()->result != DType::f32) return Match::no("gives f32 only");
  return all_f32(node);
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
       .accepts = accepts_dot,
       .plan = plan_dot,
       .strided_inputs = kBoth},
  };
  return kKernels;
}

}  // namespace rlx::cpu
