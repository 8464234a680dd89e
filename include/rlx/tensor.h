#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "rlx/dtype.h"
#include "rlx/error.h"
#include "rlx/export.h"

namespace rlx {
inline namespace v0 {

template <class T>
constexpr DType dtype_of();
template <>
constexpr DType dtype_of<float>() {
  return DType::f32;
}
template <>
constexpr DType dtype_of<double>() {
  return DType::f64;
}
template <>
constexpr DType dtype_of<std::int64_t>() {
  return DType::i64;
}
template <>
constexpr DType dtype_of<std::int32_t>() {
  return DType::i32;
}
template <>
constexpr DType dtype_of<std::int16_t>() {
  return DType::i16;
}
template <>
constexpr DType dtype_of<std::int8_t>() {
  return DType::i8;
}
template <>
constexpr DType dtype_of<std::uint64_t>() {
  return DType::u64;
}
template <>
constexpr DType dtype_of<std::uint32_t>() {
  return DType::u32;
}
template <>
constexpr DType dtype_of<std::uint16_t>() {
  return DType::u16;
}
template <>
constexpr DType dtype_of<std::uint8_t>() {
  return DType::u8;
}
template <>
constexpr DType dtype_of<bool>() {
  return DType::boolean;
}

/// A dense row-major array in host memory. Copies share the bytes; whoever holds the only reference
/// may write.
class RLX_EXPORT Tensor {
 public:
  using Dims = std::vector<std::int64_t>;

  /// No elements, dtype f32, rank 1.
  Tensor() : Tensor(DType::f32, {0}) {}
  /// Zero-filled, aligned to 64 bytes. Throws `ShapeError` for a negative extent or a size past the
  /// address space.
  Tensor(DType dtype, Dims dims);
  /// A copy of `values`, whose number must be the product of `dims`.
  template <class T>
  Tensor(Dims dims, std::span<const T> values) : Tensor(dtype_of<T>(), std::move(dims)) {
    require_count(values.size());
    std::copy(values.begin(), values.end(), this->values_mutable<T>());
  }
  template <class T>
  Tensor(Dims dims, std::initializer_list<T> values)
      : Tensor(std::move(dims), std::span<const T>(values.begin(), values.size())) {}
  /// Shares bytes that `owner` keeps alive. `bytes` must hold exactly the elements; no alignment is
  /// required.
  static Tensor view(DType dtype, Dims dims, std::span<const std::byte> bytes,
                     std::shared_ptr<const void> owner);
  /// Strings, on the host only.
  static Tensor of_strings(Dims dims, std::vector<std::string> values);

  DType dtype() const noexcept { return dtype_; }
  const Dims& dims() const noexcept { return dims_; }
  std::size_t rank() const noexcept { return dims_.size(); }
  /// Number of elements.
  std::size_t size() const noexcept { return size_; }

  /// Not for strings.
  std::span<const std::byte> bytes() const noexcept { return {bytes_, byte_count_}; }
  /// Throws `InvalidArgument` if the tensor only views memory of others.
  std::span<std::byte> bytes_mutable();
  /// Throws `InvalidArgument` unless T is the dtype's C++ type.
  template <class T>
  std::span<const T> values() const {
    require_dtype(dtype_of<T>());
    return {reinterpret_cast<const T*>(bytes_), size_};
  }
  template <class T>
  std::span<T> values() {
    return {values_mutable<T>(), size_};
  }
  std::span<const std::string> strings() const;

  /// The same elements under other dims of the same product.
  Tensor reshaped(Dims dims) const;

 private:
  template <class T>
  T* values_mutable() {
    require_dtype(dtype_of<T>());
    return reinterpret_cast<T*>(bytes_mutable().data());
  }
  void require_dtype(DType dtype) const;
  void require_count(std::size_t count) const;

  DType dtype_;
  Dims dims_;
  std::size_t size_ = 0;
  std::shared_ptr<const void> owner_;
  const std::byte* bytes_ = nullptr;
  std::size_t byte_count_ = 0;
  bool writable_ = false;
};

/// "[2, 3]"
RLX_EXPORT std::string to_string(std::span<const std::int64_t> dims);

}  // namespace v0
}  // namespace rlx
