#include "ops/elementwise.h"

#include <vector>

#include "backends/cpu/kernels/region.h"
#include "compiler/fused.h"

namespace rlx::cpu {
namespace {

// Any input may be strided, and any may be overwritten.
constexpr std::uint32_t kAllInputs = ~0U;

Kernel tiled(const OpDef& op) {
  return {"tiles", &op, accepts_elementwise, plan_elementwise, kAllInputs, kAllInputs};
}

}  // namespace

KernelList elementwise_kernels() {
  static const std::vector<Kernel> kernels = [] {
    std::vector<Kernel> list = {tiled(region_def), tiled(cast_def)};
    for (const OpDef* op : elementwise_ops()) list.push_back(tiled(*op));
    return list;
  }();
  return kernels;
}

}  // namespace rlx::cpu
