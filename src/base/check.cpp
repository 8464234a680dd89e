#include "base/check.h"

#include <fmt/format.h>

namespace rlx {

void fail_assertion(const char* condition, const char* file, int line) {
  throw InternalError(fmt::format("internal error: {} failed at {}:{}", condition, file, line));
}

}  // namespace rlx
