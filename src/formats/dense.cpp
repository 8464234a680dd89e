#include "formats/dense.h"

#include <fmt/format.h>

#include <algorithm>

namespace rlx {

std::optional<DenseSize> dense_size(DType dtype, std::span<const std::int64_t> dims) {
  if (std::any_of(dims.begin(), dims.end(), [](std::int64_t d) { return d < 0; })) return {};
  if (std::find(dims.begin(), dims.end(), 0) != dims.end()) return DenseSize{0, 0};
  std::size_t elements = 1;
  for (const std::int64_t d : dims) {
    if (__builtin_mul_overflow(elements, static_cast<std::size_t>(d), &elements)) return {};
  }
  const DTypeTraits& t = traits(dtype);
  const std::size_t row = dims.empty() ? 1 : static_cast<std::size_t>(dims.back());
  if (row % t.block_length != 0) return {};
  std::size_t bytes = 0;
  if (__builtin_mul_overflow(elements / t.block_length, std::size_t{t.block_bytes}, &bytes)) {
    return {};
  }
  return DenseSize{elements, bytes};
}

std::size_t alignment_of(DType dtype) noexcept {
  const DTypeTraits& t = traits(dtype);
  if (t.block_length != 1) return 1;
  // A complex number is a pair.
  return t.kind == DTypeKind::complex ? t.block_bytes / 2 : t.block_bytes;
}

bool is_aligned(std::span<const std::byte> bytes, DType dtype) noexcept {
  return reinterpret_cast<std::uintptr_t>(bytes.data()) % alignment_of(dtype) == 0;
}

std::string in_quotes(std::string_view text) {
  constexpr std::size_t kLongest = 100;
  std::string out = "'";
  for (const char c : text.substr(0, kLongest)) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x20 || byte == 0x7f) {
      out += fmt::format("\\x{:02x}", byte);
    } else {
      out += c;
    }
  }
  while (text.size() > kLongest && !out.empty() && (out.back() & 0xc0) == 0x80) out.pop_back();
  out += text.size() > kLongest ? "…'" : "'";
  return out;
}

}  // namespace rlx
