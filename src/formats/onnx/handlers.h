#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "formats/onnx/importer.h"

namespace rlx::onnx {

using Handler = std::vector<Value> (*)(const Site& site);

/// How one ONNX operator becomes RLX's. Of several rows for an operator the one with the highest
/// `since` that the model's opset reaches holds.
struct HandlerRow {
  std::string_view op_type;
  Handler handler;
  std::int64_t since = 1;
};

// One table a file.
std::span<const HandlerRow> elementwise_handlers();
std::span<const HandlerRow> reduction_handlers();
std::span<const HandlerRow> movement_handlers();
std::span<const HandlerRow> indexing_handlers();
std::span<const HandlerRow> shape_handlers();
std::span<const HandlerRow> contraction_handlers();
std::span<const HandlerRow> norm_handlers();
std::span<const HandlerRow> conv_handlers();
std::span<const HandlerRow> recurrent_handlers();
std::span<const HandlerRow> control_handlers();

/// Null if `op_type` of the default domain is not among the tables in that opset.
Handler find_handler(std::string_view op_type, std::int64_t opset);

/// Operators of the tables and those that correspond to an RLX operator one to one, sorted.
std::vector<std::string_view> supported_operators();

}  // namespace rlx::onnx
