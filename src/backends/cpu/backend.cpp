#include "backends/cpu/backend.h"

#include "backends/cpu/program.h"

namespace rlx::cpu {
namespace {

class CpuBackend : public Backend {
 public:
  std::string_view device() const override { return "cpu"; }
  bool claims(const Node& node, std::string* why_not) const override {
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
