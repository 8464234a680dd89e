#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "rlx/export.h"

namespace rlx {
inline namespace v0 {

/// Element types. `f8e4m3` is the OCP format without infinities (e4m3fn). The block types from
/// `q4_0` on are self-contained quantised storage in the layouts of GGUF and OCP MX.
enum class DType : std::uint8_t {
  f64,
  f32,
  f16,
  bf16,
  f8e4m3,
  f8e5m2,
  f8e4m3fnuz,
  f8e5m2fnuz,
  f8e8m0,
  f6e2m3,
  f6e3m2,
  f4e2m1,
  i64,
  i32,
  i16,
  i8,
  i4,
  i2,
  u64,
  u32,
  u16,
  u8,
  u4,
  u2,
  boolean,
  c64,
  c128,
  string,
  q4_0,
  q4_1,
  q5_0,
  q5_1,
  q8_0,
  q2_k,
  q3_k,
  q4_k,
  q5_k,
  q6_k,
  q8_k,
  iq1_s,
  iq1_m,
  iq2_xxs,
  iq2_xs,
  iq2_s,
  iq3_xxs,
  iq3_s,
  iq4_nl,
  iq4_xs,
  tq1_0,
  tq2_0,
  mxfp4,
  nvfp4,
};
inline constexpr int kDTypeCount = static_cast<int>(DType::nvfp4) + 1;

inline constexpr DType f64 = DType::f64, f32 = DType::f32, f16 = DType::f16, bf16 = DType::bf16;
inline constexpr DType i64 = DType::i64, i32 = DType::i32, i16 = DType::i16, i8 = DType::i8;
inline constexpr DType u64 = DType::u64, u32 = DType::u32, u16 = DType::u16, u8 = DType::u8;
inline constexpr DType boolean = DType::boolean;

enum class DTypeKind : std::uint8_t {
  floating,
  signed_integer,
  unsigned_integer,
  boolean,
  complex,
  string,
  block
};

/// What is known of a dtype. A block holds `block_length` elements in `block_bytes` bytes; plain
/// types of a byte or more have blocks of one element, sub-byte types the smallest number of
/// elements that fills whole bytes.
struct DTypeTraits {
  std::string_view name;
  DTypeKind kind;
  std::uint16_t bits;  ///< of one element; 0 for block types and strings
  std::uint16_t block_length;
  std::uint16_t block_bytes;  ///< 0 for strings
};

RLX_EXPORT const DTypeTraits& traits(DType dtype) noexcept;
inline std::string_view name(DType dtype) noexcept { return traits(dtype).name; }
/// The dtype of that name ("f32", "bool", "q4_k", …), if there is one.
RLX_EXPORT std::optional<DType> dtype_named(std::string_view name) noexcept;

/// Bytes of `count` consecutive elements; a partial last block counts whole. Throws
/// `InvalidArgument` for strings and where the product overflows.
RLX_EXPORT std::size_t byte_size(DType dtype, std::size_t count);

inline bool is_floating(DType d) noexcept { return traits(d).kind == DTypeKind::floating; }
inline bool is_signed_integer(DType d) noexcept {
  return traits(d).kind == DTypeKind::signed_integer;
}
inline bool is_unsigned_integer(DType d) noexcept {
  return traits(d).kind == DTypeKind::unsigned_integer;
}
inline bool is_integer(DType d) noexcept { return is_signed_integer(d) || is_unsigned_integer(d); }
inline bool is_complex(DType d) noexcept { return traits(d).kind == DTypeKind::complex; }
inline bool is_block(DType d) noexcept { return traits(d).kind == DTypeKind::block; }

}  // namespace v0
}  // namespace rlx
