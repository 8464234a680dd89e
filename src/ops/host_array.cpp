#include "ops/host_array.h"

#include <fmt/format.h>

#include <cstring>

#include "ops/number_formats.h"

namespace rlx {
namespace {

HostArray::Storage zeros(DType dtype, std::size_t size) {
  switch (traits(dtype).kind) {
    case DTypeKind::floating:
      return std::vector<double>(size);
    case DTypeKind::signed_integer:
      return std::vector<std::int64_t>(size);
    case DTypeKind::unsigned_integer:
    case DTypeKind::boolean:
      return std::vector<std::uint64_t>(size);
    case DTypeKind::complex:
      return std::vector<std::complex<double>>(size);
    case DTypeKind::string:
      return std::vector<std::string>(size);
    case DTypeKind::block:
      break;
  }
  throw Unsupported(fmt::format("{} has no reference evaluation", name(dtype)));
}

std::size_t count_of(const HostArray::Dims& dims) {
  std::size_t count = 1;
  for (const std::int64_t d : dims) count *= static_cast<std::size_t>(d);
  return count;
}

// Codes of sub-byte dtypes are packed from the lowest bit up.
std::uint64_t load_bits(std::span<const std::byte> bytes, std::size_t i, unsigned bits) {
  if (bits >= 8) {
    std::uint64_t code = 0;
    std::memcpy(&code, bytes.data() + i * (bits / 8), bits / 8);
    return code;
  }
  std::uint64_t code = 0;
  for (unsigned b = 0; b < bits; ++b) {
    const std::size_t at = i * bits + b;
    code |= static_cast<std::uint64_t>((std::to_integer<unsigned>(bytes[at / 8]) >> (at % 8)) & 1U)
            << b;
  }
  return code;
}

void store_bits(std::span<std::byte> bytes, std::size_t i, unsigned bits, std::uint64_t code) {
  if (bits >= 8) {
    std::memcpy(bytes.data() + i * (bits / 8), &code, bits / 8);
    return;
  }
  for (unsigned b = 0; b < bits; ++b) {
    const std::size_t at = i * bits + b;
    if ((code >> b) & 1U) bytes[at / 8] |= static_cast<std::byte>(1U << (at % 8));
  }
}

double decode_real(DType dtype, std::uint64_t code) {
  if (dtype == DType::f64) return std::bit_cast<double>(code);
  if (dtype == DType::f32) return std::bit_cast<float>(static_cast<std::uint32_t>(code));
  return decode_float(dtype, static_cast<std::uint32_t>(code));
}

std::uint64_t encode_real(DType dtype, double value) {
  if (dtype == DType::f64) return std::bit_cast<std::uint64_t>(value);
  if (dtype == DType::f32) return std::bit_cast<std::uint32_t>(static_cast<float>(value));
  return encode_float(dtype, value);
}

std::int64_t sign_extend(std::uint64_t code, unsigned bits) {
  const unsigned shift = 64 - bits;
  return static_cast<std::int64_t>(code << shift) >> shift;
}

std::complex<double> load_complex(const Tensor& t, std::size_t i) {
  if (t.dtype() == DType::c128) {
    std::complex<double> z;
    std::memcpy(&z, t.bytes().data() + i * sizeof(z), sizeof(z));
    return z;
  }
  std::complex<float> z;
  std::memcpy(&z, t.bytes().data() + i * sizeof(z), sizeof(z));
  return z;
}

void store_complex(std::span<std::byte> bytes, DType dtype, std::size_t i, std::complex<double> z) {
  if (dtype == DType::c128) {
    std::memcpy(bytes.data() + i * sizeof(z), &z, sizeof(z));
    return;
  }
  const std::complex<float> narrow(z);
  std::memcpy(bytes.data() + i * sizeof(narrow), &narrow, sizeof(narrow));
}

}  // namespace

HostArray::HostArray(DType dtype, Dims dims)
    : dtype_(dtype),
      dims_(std::move(dims)),
      size_(count_of(dims_)),
      values_(zeros(dtype_, size_)) {}

HostArray::HostArray(const Tensor& t) : HostArray(t.dtype(), t.dims()) {
  const unsigned bits = traits(dtype_).bits;
  std::visit(
      [&](auto& values) {
        using T = typename std::decay_t<decltype(values)>::value_type;
        for (std::size_t i = 0; i < size_; ++i) {
          if constexpr (std::is_same_v<T, std::string>) {
            values[i] = t.strings()[i];
          } else if constexpr (std::is_same_v<T, std::complex<double>>) {
            values[i] = load_complex(t, i);
          } else if constexpr (std::is_same_v<T, double>) {
            values[i] = decode_real(dtype_, load_bits(t.bytes(), i, bits));
          } else if constexpr (std::is_same_v<T, std::int64_t>) {
            values[i] = sign_extend(load_bits(t.bytes(), i, bits), bits);
          } else {
            const std::uint64_t code = load_bits(t.bytes(), i, bits);
            values[i] = dtype_ == DType::boolean ? static_cast<std::uint64_t>(code != 0) : code;
          }
        }
      },
      values_);
}

Tensor HostArray::to_tensor() const {
  if (dtype_ == DType::string) return Tensor::of_strings(dims_, as<std::string>());
  Tensor t(dtype_, dims_);
  const std::span<std::byte> bytes = t.bytes_mutable();
  const unsigned bits = traits(dtype_).bits;
  visit_numbers(*this, [&](auto zero) {
    using T = decltype(zero);
    const std::vector<T>& values = as<T>();
    for (std::size_t i = 0; i < size_; ++i) {
      if constexpr (std::is_same_v<T, std::complex<double>>) {
        store_complex(bytes, dtype_, i, values[i]);
      } else if constexpr (std::is_same_v<T, double>) {
        store_bits(bytes, i, bits, encode_real(dtype_, values[i]));
      } else if (dtype_ == DType::boolean) {
        store_bits(bytes, i, bits, values[i] != 0 ? 1 : 0);
      } else {
        store_bits(bytes, i, bits, static_cast<std::uint64_t>(values[i]));
      }
    }
  });
  return t;
}

std::int64_t HostArray::index(std::size_t i) const {
  if (const auto* v = std::get_if<std::vector<std::int64_t>>(&values_)) return (*v)[i];
  return static_cast<std::int64_t>(as<std::uint64_t>()[i]);
}

double HostArray::real(std::size_t i) const {
  double value = 0;
  visit_reals(*this, [&](auto zero) { value = static_cast<double>(as<decltype(zero)>()[i]); });
  return value;
}

std::vector<std::int64_t> row_major_strides(std::span<const std::int64_t> dims) {
  std::vector<std::int64_t> strides(dims.size());
  std::int64_t stride = 1;
  for (std::size_t axis = dims.size(); axis-- > 0;) {
    strides[axis] = stride;
    stride *= dims[axis];
  }
  return strides;
}

std::vector<std::int64_t> broadcast_strides(std::span<const std::int64_t> dims,
                                            std::span<const std::int64_t> target) {
  const std::vector<std::int64_t> own = row_major_strides(dims);
  std::vector<std::int64_t> strides(target.size(), 0);
  const std::size_t lead = target.size() - dims.size();
  for (std::size_t axis = 0; axis < dims.size(); ++axis) {
    if (dims[axis] != 1) strides[lead + axis] = own[axis];
  }
  return strides;
}

AxisView fold_axis(std::span<const std::int64_t> dims, std::int64_t axis) {
  AxisView view;
  for (std::int64_t i = 0; i < static_cast<std::int64_t>(dims.size()); ++i) {
    (i < axis    ? view.outer
     : i == axis ? view.length
                 : view.inner) *= dims[static_cast<std::size_t>(i)];
  }
  return view;
}

std::int64_t checked_index(std::int64_t index, std::int64_t extent, std::string_view what) {
  if (index >= -extent && index < extent) return index < 0 ? index + extent : index;
  throw IndexError(fmt::format("{} {} is out of range for extent {}", what, index, extent));
}

}  // namespace rlx
