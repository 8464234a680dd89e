#pragma once

#include "rlx/error.h"

namespace rlx {

[[noreturn]] void fail_assertion(const char* condition, const char* file, int line);

}  // namespace rlx

/// For our own bugs only: no user input may reach one. Active in every build; throws
/// `InternalError`.
#define RLX_ASSERT(condition) \
  ((condition) ? static_cast<void>(0) : ::rlx::fail_assertion(#condition, __FILE__, __LINE__))
