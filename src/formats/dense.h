#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "rlx/dtype.h"

namespace rlx {

/// Number of elements of `dims` and bytes that they take, as a file declares them. Nothing if an
/// extent is negative, either number overflows, or the dtype's blocks do not fill whole rows of
/// the last axis (RLX keeps whole rows). Not for strings.
struct DenseSize {
  std::size_t elements;
  std::size_t bytes;
};
std::optional<DenseSize> dense_size(DType dtype, std::span<const std::int64_t> dims);

/// Alignment of one element in memory, in bytes; 1 for types of a byte or less.
std::size_t alignment_of(DType dtype) noexcept;
bool is_aligned(std::span<const std::byte> bytes, DType dtype) noexcept;

/// `text` in single quotes for a message: control characters escaped, cut after 100 bytes, so that
/// a hostile name can neither flood nor garble it.
std::string in_quotes(std::string_view text);

}  // namespace rlx
