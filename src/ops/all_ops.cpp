#include "ops/all_ops.h"

#include <algorithm>
#include <vector>

#include "ir/leaves.h"
#include "ops/attention.h"
#include "ops/control.h"
#include "ops/conv.h"
#include "ops/dot_general.h"
#include "ops/elementwise.h"
#include "ops/indexing.h"
#include "ops/movement.h"
#include "ops/norm.h"
#include "ops/recurrent.h"
#include "ops/reduce.h"
#include "ops/selection.h"
#include "ops/softmax.h"

namespace rlx {
namespace {

// clang-format off: one a line, so that changes do not meet
constexpr const OpDef* kOps[] = {
    &arg_reduce_def, &attention_def,   &batch_norm_def, &broadcast_def,
    &cast_def,       &concat_def,      &constant_def,   &conv_def,
    &cumulative_def, &dot_general_def, &gather_def,     &gather_elements_def,
    &gather_nd_def,  &group_norm_def,  &gru_def,        &if_def,
    &input_def,      &iota_def,        &layer_norm_def, &log_softmax_def,
    &lstm_def,       &pad_def,         &param_def,      &pool_def,
    &reduce_def,     &reshape_def,     &rms_norm_def,   &rnn_def,
    &scan_def,       &size_def,        &slice_def,      &softmax_def,
    &state_def,      &top_k_def,       &transpose_def,
};
// clang-format on

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
