#pragma once

#include <array>

#include "ir/op.h"
#include "rlx/ops.h"

namespace rlx {

inline namespace v0 {
constexpr auto enum_names(Reduction) {
  return std::array<std::string_view, 5>{"sum", "mean", "max", "min", "prod"};
}
}  // namespace v0

struct Reduce {
  Reduction kind = Reduction::sum;
  std::vector<std::int64_t> axes;  ///< ascending
  bool keep_dims = false;
  static constexpr auto fields() {
    return std::tuple{Field{"kind", &Reduce::kind}, Field{"axes", &Reduce::axes},
                      Field{"keep_dims", &Reduce::keep_dims}};
  }
};
extern const OpDef reduce_def;

/// `shape` without `axes`, or with extent 1 there.
Shape reduced_shape(const Shape& shape, const std::vector<std::int64_t>& axes, bool keep_dims);

}  // namespace rlx
