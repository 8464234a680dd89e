#pragma once

#include <span>
#include <string_view>

#include "ir/op.h"

namespace rlx {

/// Every operator there is, leaves included, sorted by name.
std::span<const OpDef* const> all_ops();
/// Null if there is none of that name. Fits `OpLookup`.
const OpDef* find_op(std::string_view name);

}  // namespace rlx
