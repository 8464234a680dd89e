#include "backends/cpu/backend.h"

#include <fmt/format.h>

#include "backends/cpu/program.h"
#include "compiler/views.h"

namespace rlx::cpu {
namespace {

// Views are copied where their readers cannot take the strides.
bool can_copy(DType dtype, std::string* why_not) {
  const DTypeTraits& t = traits(dtype);
  if (t.kind != DTypeKind::string && (t.bits == 0 || t.bits >= 8)) return true;
  if (why_not != nullptr) *why_not = fmt::format("no kernel steps over the elements of {}", t.name);
  return false;
}

class CpuBackend : public Backend {
 public:
  std::string_view device() const override { return "cpu"; }
  bool claims(const Node& node, std::string* why_not) const override {
    if (is_view_candidate(node)) return can_copy(node.type().dtype, why_not);
    return choose_kernel(node, why_not) != nullptr;
  }
  bool has_kernels(const OpDef& op) const override { return !kernels_for(op).empty(); }
  std::shared_ptr<Program> build(std::shared_ptr<const Graph> graph, const CompileOptions& options,
                                 CompileReport& report) override {
    return std::make_shared<CpuProgram>(std::move(graph), options, report);
  }
};

}  // namespace

Backend& backend() {
  static CpuBackend instance;
  return instance;
}

}  // namespace rlx::cpu
