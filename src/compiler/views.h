#pragma once

#include <optional>
#include <vector>

#include "ir/node.h"

namespace rlx {

/// Part of a buffer seen as a tensor; offset and strides in elements.
struct ValueView {
  std::size_t buffer = 0;
  std::int64_t offset = 0;
  std::vector<std::int64_t> dims;
  std::vector<std::int64_t> strides;

  std::int64_t size() const {
    std::int64_t count = 1;
    for (const std::int64_t d : dims) count *= d;
    return count;
  }
};

ValueView dense_view(std::size_t buffer, std::vector<std::int64_t> dims);
/// Row-major without gaps.
bool is_dense(const ValueView& view);

/// Whether the node only looks at its input in another way: reshape, transpose, broadcast, slice.
/// Such nodes cost nothing where their readers take the strides, and are copied where not.
bool is_view_candidate(const Node& node);
/// The result of a view candidate whose input is seen as `input`; nothing if strides cannot express
/// it.
std::optional<ValueView> view_of(const Node& node, const ValueView& input, const DimBinding& sizes);

}  // namespace rlx
