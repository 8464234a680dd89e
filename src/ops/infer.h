#pragma once

#include <string_view>
#include <vector>

#include "ir/op.h"

namespace rlx {

// Checks that inference rules share. All throw with the input's name, what was found and what was
// expected.

void require_dtype(const InferArgs& in, std::size_t i, DType expected);
void require_floating(const InferArgs& in, std::size_t i);
/// A float, integer or complex number, not bool or string.
void require_number(const InferArgs& in, std::size_t i);
void require_index(const InferArgs& in, std::size_t i);  ///< i32 or i64
void require_rank(const InferArgs& in, std::size_t i, std::size_t rank);
void require_rank_at_least(const InferArgs& in, std::size_t i, std::size_t rank);
void require_same_dtype(const InferArgs& in, std::size_t i, std::size_t j);
/// `axis` is in [0, rank).
void require_axis(std::int64_t axis, std::size_t rank);
/// Each in [0, rank), none twice.
void require_axes(const std::vector<std::int64_t>& axes, std::size_t rank);
/// Input i has exactly the extents `shape`; symbolic ones become constraints.
void require_shape(InferArgs& in, std::size_t i, const Shape& shape);

/// NumPy broadcasting, recording a constraint where two distinct expressions meet.
Shape broadcast_shapes(InferArgs& in, const Shape& a, const Shape& b);
/// Whether `from` broadcasts to `to` (recording constraints); throws if it does not.
void require_broadcasts_to(InferArgs& in, std::size_t i, const Shape& to);

// For builders: a negative axis counts from the end. Throws `InvalidArgument` if out of range.
std::int64_t normal_axis(std::int64_t axis, std::size_t rank);
std::vector<std::int64_t> normal_axes(const std::vector<std::int64_t>& axes, std::size_t rank);

}  // namespace rlx
