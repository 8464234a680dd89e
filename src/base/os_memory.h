#pragma once

#include <cstddef>
#include <memory>

namespace rlx {

/// Zeroed memory aligned to 64 bytes, to 2 MiB (and in large pages, if the system gives them) from
/// that size on. What is large goes back to the system as soon as it is let go. Throws
/// `std::bad_alloc`.
std::shared_ptr<std::byte> allocate_zeroed(std::size_t bytes);

}  // namespace rlx
