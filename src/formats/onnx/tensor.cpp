#include "formats/onnx/tensor.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "base/os_file.h"
#include "formats/dense.h"
#include "rlx/error.h"

namespace rlx::onnx {
namespace {

/// A row of TensorProto.DataType: the dtype and the field that holds its elements where `raw_data`
/// does not.
struct DataType {
  std::int32_t number;
  DType dtype;
  std::uint32_t field;
};
constexpr std::uint32_t kFloatData = 4, kInt32Data = 5, kStringData = 6, kInt64Data = 7,
                        kDoubleData = 10, kUint64Data = 11;
constexpr DataType kDataTypes[] = {
    {1, DType::f32, kFloatData},     {2, DType::u8, kInt32Data},
    {3, DType::i8, kInt32Data},      {4, DType::u16, kInt32Data},
    {5, DType::i16, kInt32Data},     {6, DType::i32, kInt32Data},
    {7, DType::i64, kInt64Data},     {8, DType::string, kStringData},
    {9, DType::boolean, kInt32Data}, {10, DType::f16, kInt32Data},
    {11, DType::f64, kDoubleData},   {12, DType::u32, kUint64Data},
    {13, DType::u64, kUint64Data},   {14, DType::c64, kFloatData},
    {15, DType::c128, kDoubleData},  {16, DType::bf16, kInt32Data},
    {17, DType::f8e4m3, kInt32Data}, {18, DType::f8e4m3fnuz, kInt32Data},
    {19, DType::f8e5m2, kInt32Data}, {20, DType::f8e5m2fnuz, kInt32Data},
    {21, DType::u4, kInt32Data},     {22, DType::i4, kInt32Data},
    {23, DType::f4e2m1, kInt32Data}, {24, DType::f8e8m0, kInt32Data},
    {25, DType::u2, kInt32Data},     {26, DType::i2, kInt32Data},
};

const DataType* find_type(std::int32_t number) {
  const auto* at = std::find_if(std::begin(kDataTypes), std::end(kDataTypes),
                                [&](const DataType& t) { return t.number == number; });
  return at == std::end(kDataTypes) ? nullptr : at;
}

std::string name_of(const TensorProto& t) {
  return t.name.empty() ? "a tensor" : fmt::format("tensor {}", in_quotes(t.name));
}

DenseSize size_of(DType dtype, const TensorProto& t) {
  for (const std::int64_t d : t.dims) {
    if (d < 0)
      throw FormatError(fmt::format("{} has the negative extent {}", name_of(t), d), t.offset);
  }
  const auto size = dense_size(dtype, t.dims);
  if (size) return *size;
  // RLX keeps whole rows of bytes; the file's own count is flat.
  if (traits(dtype).bits < 8) {
    throw Unsupported(fmt::format("{}: the rows of {} {} are no whole bytes", name_of(t),
                                  name(dtype), to_string(t.dims)));
  }
  throw FormatError(
      fmt::format("{}: the size of {} {} overflows", name_of(t), name(dtype), to_string(t.dims)),
      t.offset);
}

void require_size(DType dtype, const TensorProto& t, std::size_t expected, std::size_t found) {
  if (expected == found) return;
  throw FormatError(fmt::format("{}: {} {} takes {} bytes, found {}", name_of(t), name(dtype),
                                to_string(t.dims), expected, found),
                    t.offset);
}

void require_bools(const TensorProto& t, Bytes bytes) {
  const auto bad =
      std::find_if(bytes.begin(), bytes.end(), [](std::byte b) { return b > std::byte{1}; });
  if (bad == bytes.end()) return;
  throw FormatError(fmt::format("{}: a bool is {}", name_of(t), std::to_integer<int>(*bad)),
                    t.offset);
}

/// An entry of `external_data` that is a number; `otherwise` where it is not given.
std::uint64_t number_in(const TensorProto& t, std::string_view key, std::uint64_t otherwise) {
  for (const auto& [name, text] : t.external_data) {
    if (name != key) continue;
    std::uint64_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc() || end != text.data() + text.size()) {
      throw FormatError(
          fmt::format("{}: the {} of its data is {}", name_of(t), key, in_quotes(text)), t.offset);
    }
    return value;
  }
  return otherwise;
}

}  // namespace

DType dtype_from(std::int32_t data_type, std::uint64_t offset) {
  if (const DataType* type = find_type(data_type)) return type->dtype;
  throw FormatError(fmt::format("there is no element type {}", data_type), offset);
}

TensorLoader::TensorLoader(Bytes file, std::shared_ptr<const void> owner, const MappedFile* mapping,
                           std::string folder, bool keep_mapped)
    : file_(file),
      owner_(std::move(owner)),
      mapping_(mapping),
      folder_(std::move(folder)),
      keep_mapped_(keep_mapped) {}

Tensor TensorLoader::load(const TensorProto& proto) {
  const DType dtype = dtype_from(proto.data_type, proto.offset);
  if (proto.is_external) return from_external(dtype, proto);
  if (dtype != DType::string && proto.raw_data)
    return from_raw(dtype, proto, *proto.raw_data, owner_, mapping_);
  return from_typed(dtype, proto);
}

Tensor TensorLoader::from_raw(DType dtype, const TensorProto& proto, Bytes bytes,
                              const std::shared_ptr<const void>& owner, const MappedFile* mapping) {
  require_size(dtype, proto, size_of(dtype, proto).bytes, bytes.size());
  if (dtype == DType::boolean) require_bools(proto, bytes);
  if (keep_mapped_ && owner && is_aligned(bytes, dtype))
    return Tensor::view(dtype, proto.dims, bytes, owner);
  Tensor copy(dtype, proto.dims);
  std::copy(bytes.begin(), bytes.end(), copy.bytes_mutable().begin());
  if (mapping != nullptr) {
    mapping->drop_pages(static_cast<std::uint64_t>(bytes.data() - mapping->bytes().data()),
                        bytes.size());
  }
  return copy;
}

Tensor TensorLoader::from_typed(DType dtype, const TensorProto& proto) {
  if (dtype == DType::string) {
    const std::vector<std::string_view> texts = decode_strings(proto, file_);
    std::size_t count = 1;
    for (const std::int64_t d : proto.dims) {
      if (d < 0 || __builtin_mul_overflow(count, static_cast<std::size_t>(d), &count))
        throw FormatError(
            fmt::format("{} has the extents {}", name_of(proto), to_string(proto.dims)),
            proto.offset);
    }
    if (count != texts.size()) {
      throw FormatError(fmt::format("{}: {} takes {} strings, found {}", name_of(proto),
                                    to_string(proto.dims), count, texts.size()),
                        proto.offset);
    }
    return Tensor::of_strings(proto.dims, {texts.begin(), texts.end()});
  }
  const DenseSize size = size_of(dtype, proto);
  const std::uint32_t field = find_type(proto.data_type)->field;
  // Sub-byte elements come as one packed byte in each integer.
  const std::size_t width = field == kFloatData    ? 4
                            : field == kDoubleData ? 8
                                                   : std::max(1, traits(dtype).bits / 8);
  std::vector<std::byte> bytes;
  decode_typed_data(proto, file_, field, width, bytes);
  require_size(dtype, proto, size.bytes, bytes.size());
  if (dtype == DType::boolean) require_bools(proto, bytes);
  Tensor t(dtype, proto.dims);
  std::copy(bytes.begin(), bytes.end(), t.bytes_mutable().begin());
  return t;
}

Tensor TensorLoader::from_external(DType dtype, const TensorProto& proto) {
  if (dtype == DType::string) {
    throw FormatError(fmt::format("{}: strings are not kept in other files", name_of(proto)),
                      proto.offset);
  }
  const auto location =
      std::find_if(proto.external_data.begin(), proto.external_data.end(),
                   [](const TextPair& entry) { return entry.first == "location"; });
  if (location == proto.external_data.end()) {
    throw FormatError(fmt::format("{} does not say which file has its data", name_of(proto)),
                      proto.offset);
  }
  const auto mapping = external_file(location->second);
  const Bytes all = mapping->bytes();
  const std::uint64_t offset = number_in(proto, "offset", 0);
  const std::uint64_t expected = size_of(dtype, proto).bytes;
  const std::uint64_t length = number_in(proto, "length", expected);
  if (offset > all.size() || length > all.size() - offset) {
    throw FormatError(
        fmt::format("{}: {} bytes from {} on are not in {} of {} bytes", name_of(proto), length,
                    offset, in_quotes(location->second), all.size()),
        proto.offset);
  }
  return from_raw(dtype, proto, all.subspan(offset, length), mapping, mapping.get());
}

std::shared_ptr<const MappedFile> TensorLoader::external_file(std::string_view location) {
  if (folder_.empty()) {
    throw InvalidArgument(fmt::format(
        "the model keeps data in {}, but it was not read from a folder", in_quotes(location)));
  }
  const auto known = external_.find(location);
  if (known != external_.end()) return known->second;
  auto mapping = MappedFile::open_inside(folder_, location);
  external_.emplace(std::string(location), mapping);
  return mapping;
}

}  // namespace rlx::onnx
