#include "rlx/tensor.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstdlib>
#include <cstring>
#include <new>

#include "base/os_memory.h"

namespace rlx {
inline namespace v0 {
namespace {

std::size_t element_count(const Tensor::Dims& dims) {
  std::size_t count = 1;
  bool empty = false;
  for (const std::int64_t d : dims) {
    if (d < 0) throw ShapeError(fmt::format("extent {} of {} is negative", d, to_string(dims)));
    if (d == 0) empty = true;
  }
  if (empty) return 0;
  for (const std::int64_t d : dims) {
    if (__builtin_mul_overflow(count, static_cast<std::size_t>(d), &count)) {
      throw ShapeError(fmt::format("the number of elements of {} overflows", to_string(dims)));
    }
  }
  return count;
}

}  // namespace

Tensor::Tensor(DType dtype, Dims dims)
    : dtype_(dtype), dims_(std::move(dims)), size_(element_count(dims_)) {
  if (dtype == DType::string) {
    owner_ = std::make_shared<std::vector<std::string>>(size_);
    return;
  }
  byte_count_ = byte_size(dtype, size_);
  auto memory = allocate_zeroed(byte_count_);
  bytes_ = memory.get();
  owner_ = std::move(memory);
  writable_ = true;
}

Tensor Tensor::view(DType dtype, Dims dims, std::span<const std::byte> bytes,
                    std::shared_ptr<const void> owner) {
  Tensor t(f32, {0});
  t.dtype_ = dtype;
  t.size_ = element_count(dims);
  t.dims_ = std::move(dims);
  t.byte_count_ = byte_size(dtype, t.size_);
  if (bytes.size() != t.byte_count_) {
    throw InvalidArgument(fmt::format("{} of {} takes {} bytes, found {}", to_string(t.dims_),
                                      name(dtype), t.byte_count_, bytes.size()));
  }
  t.bytes_ = bytes.data();
  t.owner_ = std::move(owner);
  t.writable_ = false;
  return t;
}

Tensor Tensor::of_strings(Dims dims, std::vector<std::string> values) {
  Tensor t(DType::string, std::move(dims));
  t.require_count(values.size());
  t.owner_ = std::make_shared<std::vector<std::string>>(std::move(values));
  return t;
}

std::span<std::byte> Tensor::bytes_mutable() {
  if (!writable_) throw InvalidArgument("this tensor views memory that it may not write");
  return {const_cast<std::byte*>(bytes_), byte_count_};
}

std::span<const std::string> Tensor::strings() const {
  require_dtype(DType::string);
  return *static_cast<const std::vector<std::string>*>(owner_.get());
}

Tensor Tensor::reshaped(Dims dims) const {
  if (element_count(dims) != size_) {
    throw ShapeError(fmt::format("cannot reshape {} to {}", to_string(dims_), to_string(dims)));
  }
  Tensor t = *this;
  t.dims_ = std::move(dims);
  return t;
}

void Tensor::require_dtype(DType dtype) const {
  if (dtype != dtype_)
    throw InvalidArgument(fmt::format("tensor holds {}, asked for {}", name(dtype_), name(dtype)));
}

void Tensor::require_count(std::size_t count) const {
  if (count != size_) {
    throw ShapeError(fmt::format("{} takes {} values, found {}", to_string(dims_), size_, count));
  }
}

std::string to_string(std::span<const std::int64_t> dims) {
  return fmt::format("[{}]", fmt::join(dims, ", "));
}

}  // namespace v0
}  // namespace rlx
