#include "backends/cpu/program.h"

#include <fmt/format.h>

#include <cstdlib>
#include <new>

#include "backends/cpu/context.h"
#include "backends/cpu/planner.h"
#include "base/check.h"
#include "ir/leaves.h"

namespace rlx::cpu {
namespace {

bool is_step(const Node& node) {
  return !node.is(input_def) && !node.is(param_def) && !node.is(constant_def) &&
         !node.is(size_def) && !node.is(state_def) && !is_view_candidate(node);
}

// What a value is a view of.
const Node* source_of(Value value) {
  const Node* node = value.node();
  while (is_view_candidate(*node)) node = node->input(0).node();
  return node;
}

}  // namespace

CpuProgram::CpuProgram(std::shared_ptr<const Graph> graph, const CompileOptions& options,
                       CompileReport& report)
    : graph_(std::move(graph)), options_(options) {
  for (const auto& param : graph_->params()) params_[param.name];
  choose_kernels(report);
}

void CpuProgram::choose_kernels(CompileReport& report) {
  for (const Node* node : graph_->topological_order()) {
    if (!is_step(*node)) continue;
    const Kernel* kernel = choose_kernel(*node);
    RLX_ASSERT(kernel != nullptr);  // legalisation left none without
    kernels_[node] = kernel;
    collect_packings(*node, *kernel);
    report.steps.push_back(
        {node->name(), std::string(node->op().name()), std::string(kernel->name), {}});
  }
  for (const auto& output : graph_->outputs()) read_plainly(output.value);
  for (const auto& update : graph_->updates()) read_plainly(update.next);
}

// A param that leaves the graph, as it is or as a view, is copied from its plain bytes.
void CpuProgram::read_plainly(Value value) {
  if (const auto* param = source_of(value)->as<Param>()) params_[param->name].read_plain = true;
}

void CpuProgram::collect_packings(const Node& node, const Kernel& kernel) {
  std::vector<PackedParam> wanted;
  if (kernel.packing != nullptr) wanted = kernel.packing(node);
  for (std::size_t i = 0; i < node.inputs().size(); ++i) {
    const Value v = node.inputs()[i];
    // Views of a param read its plain bytes.
    const Node* source = v ? source_of(v) : nullptr;
    const auto* param = source != nullptr ? source->as<Param>() : nullptr;
    if (param == nullptr) continue;
    const auto is_it = [&](const PackedParam& p) { return p.input == i; };
    const auto at = std::ranges::find_if(wanted, is_it);
    if (at == wanted.end() || source != v.node()) {
      params_[param->name].read_plain = true;
      continue;
    }
    auto& packings = params_[param->name].packings;
    const auto same = [&](const auto& p) { return p.second.layout == at->layout; };
    auto found = std::ranges::find_if(packings, same);
    if (found == packings.end()) {
      packed_storage_.push_back(std::make_unique<Weights>(at->bytes));
      packed_.push_back(packed_storage_.back().get());
      found = packings.insert(packings.end(), {packed_.size() - 1, *at});
    }
    packed_inputs_[{&node, i}] = found->first;
  }
}

void CpuProgram::set_param(std::string_view name, const Tensor& value) {
  const ParamUse& use = params_.find(name)->second;
  for (const auto& [index, packing] : use.packings) packing.pack(value, packed_[index]->data());
  if (use.read_plain) plain_.insert_or_assign(std::string(name), value);
}

std::size_t CpuProgram::param_bytes() const {
  std::size_t total = 0;
  for (const Weights* weights : packed_) total += weights->bytes();
  for (const auto& [name, tensor] : plain_) total += tensor.bytes().size();
  return total;
}

const Kernel* CpuProgram::kernel_of(const Node* node) const { return kernels_.at(node); }

std::optional<std::size_t> CpuProgram::packed_index(const Node* node, std::size_t input) const {
  const auto at = packed_inputs_.find({node, input});
  if (at == packed_inputs_.end()) return std::nullopt;
  return at->second;
}

const std::byte* CpuProgram::param(std::string_view name) const {
  const auto at = plain_.find(name);
  return at == plain_.end() ? nullptr : at->second.bytes().data();
}

std::shared_ptr<const BoundProgram> CpuProgram::bind(const DimBinding& sizes) {
  return make_plan(*this, sizes);
}
std::unique_ptr<DeviceContext> CpuProgram::make_context() { return make_cpu_context(*this); }

}  // namespace rlx::cpu
