#include "formats/onnx/handlers.h"

#include <algorithm>

#include "ops/all_ops.h"
#include "ops/elementwise.h"
#include "rlx/ops.h"

namespace rlx::onnx {
namespace {

constexpr std::span<const HandlerRow> (*kTables[])() = {
    elementwise_handlers, reduction_handlers,   movement_handlers, indexing_handlers,
    shape_handlers,       contraction_handlers, norm_handlers,     conv_handlers,
    recurrent_handlers,   control_handlers};

const OpDef* same_operator(std::string_view op_type) {
  for (const OpDef* def : elementwise_ops()) {
    if (!def->onnx.empty() && def->onnx == op_type) return def;
  }
  return nullptr;
}

/// Operators whose record names the ONNX operator that is the same one.
std::vector<Value> import_same(const Site& site) {
  return {elementwise(*same_operator(site.node.op_type), site.inputs())};
}

}  // namespace

Handler find_handler(std::string_view op_type, std::int64_t opset) {
  const HandlerRow* best = nullptr;
  for (const auto& table : kTables) {
    for (const HandlerRow& row : table()) {
      if (row.op_type != op_type || row.since > opset) continue;
      if (best == nullptr || row.since > best->since) best = &row;
    }
  }
  if (best != nullptr) return best->handler;
  return same_operator(op_type) == nullptr ? nullptr : import_same;
}

std::vector<std::string_view> supported_operators() {
  std::vector<std::string_view> names;
  for (const auto& table : kTables) {
    for (const HandlerRow& row : table()) names.push_back(row.op_type);
  }
  for (const OpDef* def : elementwise_ops()) {
    if (!def->onnx.empty()) names.push_back(def->onnx);
  }
  std::sort(names.begin(), names.end());
  names.erase(std::unique(names.begin(), names.end()), names.end());
  return names;
}

}  // namespace rlx::onnx
