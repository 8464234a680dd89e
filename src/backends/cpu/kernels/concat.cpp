#include <cstring>

#include "backends/cpu/accepts.h"
#include "backends/cpu/kernel.h"
#include "backends/cpu/parallel.h"
#include "ops/host_array.h"
#include "ops/movement.h"

namespace rlx::cpu {
namespace {

/// One input: `bytes` of each outer row, which start at `offset` of the output's row.
struct Part {
  Buffer x;
  std::size_t bytes, offset;
};

struct ConcatStep {
  std::span<const Part> parts;
  Buffer y;
  std::size_t outer, row_bytes;
  std::size_t threads;
};

void concat_rows(const ConcatStep& s, const Run& run) noexcept {
  auto* y = run.at<std::byte>(s.y);
  const std::size_t cost = s.row_bytes / 16 / s.parts.size() + 1;
  parallel_ranges(run, s.outer * s.parts.size(), cost, s.threads,
                  [&](std::size_t, std::size_t begin, std::size_t end) {
                    for (std::size_t i = begin; i < end; ++i) {
                      const Part& part = s.parts[i % s.parts.size()];
                      const std::size_t row = i / s.parts.size();
                      const auto* from = run.at<const std::byte>(part.x) + row * part.bytes;
                      std::memcpy(y + row * s.row_bytes + part.offset, from, part.bytes);
                    }
                  });
}

/// Rows must be whole bytes, which extents known only when sizes are bound do not promise.
Match accepts_concat(const Node& node) {
  const DTypeTraits& t = traits(node.type().dtype);
  if (t.kind == DTypeKind::string) return Match::no("strings live on the host");
  if (t.block_length == 1) return {};
  const auto axis = static_cast<std::size_t>(node.as<Concat>()->axis);
  const bool off_last_axis = axis + 1 < node.type().rank();
  for (const Value v : node.inputs()) {
    const auto last = v.shape().back().constant();
    if (off_last_axis && last && *last % t.block_length == 0) continue;
    return Match::no(fmt::format("rows of {} may not be whole bytes", to_string(v.type())));
  }
  return {};
}

void plan_concat(StepBuilder& step) {
  const Operand& y = step.out();
  if (y.size() == 0) return;
  const std::int64_t axis = step.node().as<Concat>()->axis;
  std::vector<Part> parts;
  std::size_t row_bytes = 0;
  for (std::size_t i = 0; i < step.input_count(); ++i) {
    const AxisView view = fold_axis(step.in(i).dims, axis);
    const std::size_t bytes =
        byte_size(y.dtype, static_cast<std::size_t>(view.length * view.inner));
    if (bytes == 0) continue;
    parts.push_back({step.in(i).at, bytes, row_bytes});
    row_bytes += bytes;
  }
  step.launch(concat_rows, ConcatStep{step.keep(parts), y.at,
                                      static_cast<std::size_t>(fold_axis(y.dims, axis).outer),
                                      row_bytes, static_cast<std::size_t>(step.threads())});
}

}  // namespace

KernelList concat_kernels() {
  static constexpr Kernel kKernels[] = {
      {.name = "concat_rows", .op = &concat_def, .accepts = accepts_concat, .plan = plan_concat}};
  return kKernels;
}

}  // namespace rlx::cpu
