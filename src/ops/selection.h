#pragma once

#include <array>

#include "ir/op.h"
#include "rlx/ops.h"

namespace rlx {

inline namespace v0 {
constexpr auto enum_names(Accumulation) {
  return std::array<std::string_view, 4>{"sum", "prod", "max", "min"};
}
}  // namespace v0

/// Index (i64) of the greatest or least element along an axis; NaN counts as more extreme than any
/// number; of equal ones the first (or last) wins. An empty axis is an error.
struct ArgReduce {
  bool largest = true;
  std::int64_t axis = 0;
  bool keep_dims = false;
  bool select_last = false;
  static constexpr auto fields() {
    return std::tuple{Field{"largest", &ArgReduce::largest}, Field{"axis", &ArgReduce::axis},
                      Field{"keep_dims", &ArgReduce::keep_dims},
                      Field{"select_last", &ArgReduce::select_last}};
  }
};
struct Cumulative {
  Accumulation kind = Accumulation::sum;
  std::int64_t axis = 0;
  bool exclusive = false;
  bool reverse = false;
  static constexpr auto fields() {
    return std::tuple{Field{"kind", &Cumulative::kind}, Field{"axis", &Cumulative::axis},
                      Field{"exclusive", &Cumulative::exclusive},
                      Field{"reverse", &Cumulative::reverse}};
  }
};
/// values, indices (i64): the k greatest or least, ties by the smaller index, NaN above every
/// number.
struct TopK {
  Dim k;
  std::int64_t axis = 0;
  bool largest = true;
  bool sorted = true;
  static constexpr auto fields() {
    return std::tuple{Field{"k", &TopK::k}, Field{"axis", &TopK::axis},
                      Field{"largest", &TopK::largest}, Field{"sorted", &TopK::sorted}};
  }
};
extern const OpDef arg_reduce_def, cumulative_def, top_k_def;

}  // namespace rlx
