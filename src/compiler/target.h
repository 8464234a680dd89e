#pragma once

#include <string>
#include <string_view>

#include "ir/node.h"

namespace rlx {

/// What a backend tells the compiler about itself.
class Target {
 public:
  virtual ~Target() = default;
  virtual std::string_view device() const = 0;
  /// Whether a kernel computes this node as it is; `why_not` gathers the refusals.
  virtual bool claims(const Node& node, std::string* why_not) const = 0;
  /// Whether an operator has any kernel at all: fusion makes only operators that have.
  virtual bool has_kernels(const OpDef& op) const = 0;
};

}  // namespace rlx
