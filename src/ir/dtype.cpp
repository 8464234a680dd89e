#include "rlx/dtype.h"

#include <fmt/format.h>

#include <array>

#include "rlx/error.h"

namespace rlx {
inline namespace v0 {
namespace {

using enum DTypeKind;

// In the order of the enumeration.
constexpr std::array<DTypeTraits, kDTypeCount> kTraits{{
    {"f64", floating, 64, 1, 8},
    {"f32", floating, 32, 1, 4},
    {"f16", floating, 16, 1, 2},
    {"bf16", floating, 16, 1, 2},
    {"f8e4m3", floating, 8, 1, 1},
    {"f8e5m2", floating, 8, 1, 1},
    {"f8e4m3fnuz", floating, 8, 1, 1},
    {"f8e5m2fnuz", floating, 8, 1, 1},
    {"f8e8m0", floating, 8, 1, 1},
    {"f6e2m3", floating, 6, 4, 3},
    {"f6e3m2", floating, 6, 4, 3},
    {"f4e2m1", floating, 4, 2, 1},
    {"i64", signed_integer, 64, 1, 8},
    {"i32", signed_integer, 32, 1, 4},
    {"i16", signed_integer, 16, 1, 2},
    {"i8", signed_integer, 8, 1, 1},
    {"i4", signed_integer, 4, 2, 1},
    {"i2", signed_integer, 2, 4, 1},
    {"u64", unsigned_integer, 64, 1, 8},
    {"u32", unsigned_integer, 32, 1, 4},
    {"u16", unsigned_integer, 16, 1, 2},
    {"u8", unsigned_integer, 8, 1, 1},
    {"u4", unsigned_integer, 4, 2, 1},
    {"u2", unsigned_integer, 2, 4, 1},
    {"bool", DTypeKind::boolean, 8, 1, 1},
    {"c64", complex, 64, 1, 8},
    {"c128", complex, 128, 1, 16},
    {"string", DTypeKind::string, 0, 1, 0},
    {"q4_0", block, 0, 32, 18},
    {"q4_1", block, 0, 32, 20},
    {"q5_0", block, 0, 32, 22},
    {"q5_1", block, 0, 32, 24},
    {"q8_0", block, 0, 32, 34},
    {"q2_k", block, 0, 256, 84},
    {"q3_k", block, 0, 256, 110},
    {"q4_k", block, 0, 256, 144},
    {"q5_k", block, 0, 256, 176},
    {"q6_k", block, 0, 256, 210},
    {"q8_k", block, 0, 256, 292},
    {"iq1_s", block, 0, 256, 50},
    {"iq1_m", block, 0, 256, 56},
    {"iq2_xxs", block, 0, 256, 66},
    {"iq2_xs", block, 0, 256, 74},
    {"iq2_s", block, 0, 256, 82},
    {"iq3_xxs", block, 0, 256, 98},
    {"iq3_s", block, 0, 256, 110},
    {"iq4_nl", block, 0, 32, 18},
    {"iq4_xs", block, 0, 256, 136},
    {"tq1_0", block, 0, 256, 54},
    {"tq2_0", block, 0, 256, 66},
    {"mxfp4", block, 0, 32, 17},
    {"nvfp4", block, 0, 16, 9},
}};

}  // namespace

const DTypeTraits& traits(DType dtype) noexcept { return kTraits[static_cast<std::size_t>(dtype)]; }

std::optional<DType> dtype_named(std::string_view name) noexcept {
  for (std::size_t i = 0; i < kTraits.size(); ++i) {
    if (kTraits[i].name == name) return static_cast<DType>(i);
  }
  return std::nullopt;
}

std::size_t byte_size(DType dtype, std::size_t count) {
  const DTypeTraits& t = traits(dtype);
  if (t.kind == DTypeKind::string) throw InvalidArgument("strings have no byte size");
  const std::size_t blocks = count / t.block_length + (count % t.block_length != 0);
  std::size_t bytes = 0;
  if (__builtin_mul_overflow(blocks, t.block_bytes, &bytes)) {
    throw InvalidArgument(fmt::format("{} elements of {} exceed the address space", count, t.name));
  }
  return bytes;
}

}  // namespace v0
}  // namespace rlx
