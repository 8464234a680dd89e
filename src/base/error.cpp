#include "rlx/error.h"

#include <fmt/format.h>

namespace rlx {
inline namespace v0 {

void Error::at(std::string_view node, std::string_view op) {
  if (!node_.empty() || node.empty()) return;
  node_ = node;
  op_ = op;
  message_ = op.empty() ? fmt::format("{}: {}", node, message_)
                        : fmt::format("{} ({}): {}", node, op, message_);
}

void Error::in_file(std::string_view path) {
  if (!file_.empty()) return;
  file_ = path;
  message_ = fmt::format("{}: {}", path, message_);
}

FormatError::FormatError(std::string message, std::uint64_t offset)
    : Error(ErrorCode::kFormat, fmt::format("{} (at byte {})", message, offset)), offset_(offset) {}

}  // namespace v0
}  // namespace rlx
