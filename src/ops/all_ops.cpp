#include "ops/all_ops.h"

#include <algorithm>
#include <vector>

#include "ir/leaves.h"
#include "ops/elementwise.h"
#include "ops/movement.h"
#include "ops/reduce.h"
#include "ops/softmax.h"

namespace rlx {
namespace {

constexpr const OpDef* kOps[] = {
    &input_def,  &param_def,   &state_def,       &constant_def, &size_def,      &cast_def,
    &reduce_def, &softmax_def, &log_softmax_def, &reshape_def,  &transpose_def, &broadcast_def,
    &slice_def,  &pad_def,     &concat_def,      &iota_def,
};

std::vector<const OpDef*> sorted_ops() {
  std::vector<const OpDef*> ops(std::begin(kOps), std::end(kOps));
  ops.insert(ops.end(), elementwise_ops().begin(), elementwise_ops().end());
  std::ranges::sort(ops, {}, &OpDef::name);
  return ops;
}

}  // namespace

std::span<const OpDef* const> all_ops() {
  static const std::vector<const OpDef*> ops = sorted_ops();
  return ops;
}

const OpDef* find_op(std::string_view name) {
  const auto at = std::ranges::lower_bound(all_ops(), name, {}, &OpDef::name);
  return at != all_ops().end() && (*at)->name == name ? *at : nullptr;
}

}  // namespace rlx
