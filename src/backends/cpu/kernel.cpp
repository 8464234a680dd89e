#include "backends/cpu/kernel.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "backends/cpu/kernel_table.h"
#include "ir/leaves.h"

namespace rlx::cpu {

bool Operand::is_dense() const {
  std::int64_t stride = 1;
  for (std::size_t axis = dims.size(); axis-- > 0;) {
    if (dims[axis] == 0) return true;
    if (dims[axis] != 1 && strides[axis] != stride) return false;
    stride *= dims[axis];
  }
  return true;
}

const Tensor* StepBuilder::constant(std::size_t i) const { return constant_of(node_->input(i)); }

std::span<const Kernel* const> all_kernels() {
  static const std::vector<const Kernel*> kernels = [] {
    std::vector<const Kernel*> list;
    for (const auto make : kKernelLists) {
      for (const Kernel& kernel : make()) list.push_back(&kernel);
    }
    return list;
  }();
  return kernels;
}

std::span<const Kernel* const> kernels_for(const OpDef& op) {
  static const std::map<const OpDef*, std::vector<const Kernel*>> table = [] {
    std::map<const OpDef*, std::vector<const Kernel*>> by_op;
    for (const Kernel* kernel : all_kernels()) by_op[kernel->op].push_back(kernel);
    return by_op;
  }();
  const auto at = table.find(&op);
  if (at == table.end()) return {};
  return at->second;
}

const Kernel* choose_kernel(const Node& node, std::string* why) {
  const auto kernels = kernels_for(node.op().def());
  if (kernels.empty() && why != nullptr) *why = fmt::format("no kernel for {}", node.op().name());
  for (const Kernel* kernel : kernels) {
    const Match match = kernel->accepts(node);
    if (match.yes) return kernel;
    if (why != nullptr)
      *why += fmt::format("{}{}: {}", why->empty() ? "" : "; ", kernel->name, match.why);
  }
  return nullptr;
}

}  // namespace rlx::cpu
