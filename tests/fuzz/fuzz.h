#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <span>
#include <string_view>

#include "rlx/error.h"
#include "rlx/tensor.h"

namespace rlx::fuzz {

/// Runs a parser. The only way to refuse bytes is an error that says so: `FormatError`,
/// `Unsupported` or `InvalidArgument`; all else is a finding.
template <class Parse>
int expect_typed_errors(Parse parse) {
  try {
    parse();
  } catch (const Error& error) {
    const bool expected = error.code() == ErrorCode::kFormat ||
                          error.code() == ErrorCode::kUnsupported ||
                          error.code() == ErrorCode::kInvalidArgument;
    if (!expected) std::abort();
  }
  return 0;
}

inline std::span<const std::byte> bytes_of(const std::uint8_t* data, std::size_t size) {
  return std::as_bytes(std::span(data, size));
}

/// Reads every byte, so that the sanitizer sees a view that reaches too far.
inline void touch(const Tensor& tensor) {
  volatile std::size_t sum = 0;
  if (tensor.dtype() == DType::string) {
    for (const auto& s : tensor.strings()) sum = sum + s.size();
    return;
  }
  for (const std::byte b : tensor.bytes()) sum = sum + std::to_integer<std::size_t>(b);
}

}  // namespace rlx::fuzz
