#include "formats/safetensors.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <nlohmann/json.hpp>
#include <set>

#include "base/os_file.h"
#include "formats/dense.h"
#include "formats/json.h"
#include "rlx/error.h"

namespace rlx {
namespace {

static_assert(std::endian::native == std::endian::little, "tensors are read without swapping");

constexpr std::size_t kLengthBytes = 8;
/// What the format's own readers allow.
constexpr std::uint64_t kMaxHeader = 100'000'000;
constexpr std::size_t kDataAlignment = 64;
constexpr std::string_view kMetadataKey = "__metadata__";

struct DTypeName {
  std::string_view name;
  DType dtype;
};
constexpr DTypeName kDTypes[] = {
    {"BOOL", DType::boolean},
    {"F64", DType::f64},
    {"F32", DType::f32},
    {"F16", DType::f16},
    {"BF16", DType::bf16},
    {"F8_E4M3", DType::f8e4m3},
    {"F8_E5M2", DType::f8e5m2},
    {"F8_E4M3FNUZ", DType::f8e4m3fnuz},
    {"F8_E5M2FNUZ", DType::f8e5m2fnuz},
    {"F8_E8M0", DType::f8e8m0},
    {"F6_E2M3", DType::f6e2m3},
    {"F6_E3M2", DType::f6e3m2},
    {"F4", DType::f4e2m1},
    {"I64", DType::i64},
    {"I32", DType::i32},
    {"I16", DType::i16},
    {"I8", DType::i8},
    {"U64", DType::u64},
    {"U32", DType::u32},
    {"U16", DType::u16},
    {"U8", DType::u8},
    {"C64", DType::c64},
};

DType dtype_from(const Json& value, std::string_view tensor) {
  const std::string& found = value.string(fmt::format("dtype of tensor {}", in_quotes(tensor)));
  for (const DTypeName& d : kDTypes) {
    if (d.name == found) return d.dtype;
  }
  throw FormatError(
      fmt::format("tensor {} has the unknown dtype {}", in_quotes(tensor), in_quotes(found)),
      value.offset());
}

std::string_view name_of(DType dtype, std::string_view tensor) {
  for (const DTypeName& d : kDTypes) {
    if (d.dtype == dtype) return d.name;
  }
  throw Unsupported(fmt::format("safetensors has no name for the dtype {} of tensor {}",
                                name(dtype), in_quotes(tensor)));
}

Tensor::Dims dims_from(const Json& shape, std::string_view tensor) {
  const std::string what = fmt::format("shape of tensor {}", in_quotes(tensor));
  Tensor::Dims dims;
  for (const Json& extent : shape.items(what)) dims.push_back(extent.natural(what));
  return dims;
}

/// The header of one tensor, against the `data` that follows the header.
Safetensors::Entry entry_from(const Json::Member& member, std::span<const std::byte> data,
                              std::uint64_t data_offset) {
  const std::string what = fmt::format("tensor {}", in_quotes(member.key));
  for (const Json::Member& m : member.value.members(what)) {
    if (m.key == "dtype" || m.key == "shape" || m.key == "data_offsets") continue;
    throw FormatError(fmt::format("{} has the unknown key {}", what, in_quotes(m.key)), m.offset);
  }
  Safetensors::Entry entry;
  entry.name = member.key;
  entry.dtype = dtype_from(member.value.at("dtype", what), member.key);
  const Json& shape = member.value.at("shape", what);
  entry.dims = dims_from(shape, member.key);

  const Json& where = member.value.at("data_offsets", what);
  const auto range = where.items(what + ", data_offsets");
  if (range.size() != 2) where.fail(what + ", data_offsets", "two integers");
  const auto begin = static_cast<std::uint64_t>(range[0].natural(what + ", data_offsets"));
  const auto end = static_cast<std::uint64_t>(range[1].natural(what + ", data_offsets"));
  if (begin > end) {
    throw FormatError(fmt::format("{} ends at {} before it begins at {}", what, end, begin),
                      where.offset());
  }
  if (end > data.size()) {
    throw FormatError(fmt::format("{} ends at {}, but only {} bytes of data follow the header",
                                  what, end, data.size()),
                      where.offset());
  }
  const auto size = dense_size(entry.dtype, entry.dims);
  if (!size) {
    throw FormatError(fmt::format("{}: {} of {} overflows or does not fill whole bytes", what,
                                  to_string(entry.dims), name(entry.dtype)),
                      shape.offset());
  }
  if (size->bytes != end - begin) {
    throw FormatError(
        fmt::format("{}: {} of {} takes {} bytes, data_offsets give {}", what,
                    to_string(entry.dims), name(entry.dtype), size->bytes, end - begin),
        where.offset());
  }
  entry.bytes = data.subspan(begin, end - begin);
  entry.offset = data_offset + begin;
  return entry;
}

/// Without gaps and overlaps the entries, in order, tile the data.
void require_tiling(std::span<const Safetensors::Entry> sorted, std::uint64_t begin,
                    std::uint64_t end) {
  std::uint64_t at = begin;
  for (const Safetensors::Entry& e : sorted) {
    if (e.offset < at) {
      throw FormatError(fmt::format("tensor {} overlaps the one before it", in_quotes(e.name)),
                        e.offset);
    }
    if (e.offset > at) {
      throw FormatError(fmt::format("{} bytes before tensor {} belong to no tensor", e.offset - at,
                                    in_quotes(e.name)),
                        at);
    }
    at += e.bytes.size();
  }
  if (at != end) {
    throw FormatError(fmt::format("{} bytes at the end belong to no tensor", end - at), at);
  }
}

Safetensors::Metadata metadata_from(const Json& value) {
  Safetensors::Metadata metadata;
  for (const Json::Member& m : value.members(kMetadataKey)) {
    metadata[m.key] = m.value.string(fmt::format("metadata {}", in_quotes(m.key)));
  }
  return metadata;
}

std::uint64_t header_length(std::span<const std::byte> file) {
  if (file.size() < kLengthBytes) {
    throw FormatError(fmt::format("a file of {} bytes has no header length", file.size()),
                      file.size());
  }
  std::uint64_t length = 0;
  std::memcpy(&length, file.data(), kLengthBytes);
  if (length > file.size() - kLengthBytes) {
    throw FormatError(fmt::format("the header is said to have {} bytes, {} follow", length,
                                  file.size() - kLengthBytes),
                      0);
  }
  if (length > kMaxHeader) {
    throw FormatError(
        fmt::format("the header has {} bytes, at most {} are allowed", length, kMaxHeader), 0);
  }
  return length;
}

void require_bools(const Safetensors::Entry& entry) {
  const auto bad = std::find_if(entry.bytes.begin(), entry.bytes.end(),
                                [](std::byte b) { return b > std::byte{1}; });
  if (bad == entry.bytes.end()) return;
  throw FormatError(
      fmt::format("bool tensor {} holds {}", in_quotes(entry.name), std::to_integer<int>(*bad)),
      entry.offset + static_cast<std::uint64_t>(bad - entry.bytes.begin()));
}

Tensor copied(const Safetensors::Entry& entry) {
  Tensor t(entry.dtype, entry.dims);
  std::copy(entry.bytes.begin(), entry.bytes.end(), t.bytes_mutable().begin());
  return t;
}

/// The file of a shard. The index may not point out of its folder; links are the user's own.
std::string shard_path(const std::string& folder, const Json& name) {
  const std::string& file = name.string("the shard of a tensor");
  if (file.empty() || file == "." || file == ".." || file.find('/') != std::string::npos ||
      file.find('\0') != std::string::npos) {
    name.fail("the shard of a tensor", "the name of a file beside the index");
  }
  return folder + '/' + file;
}

struct Layout {
  std::vector<const std::pair<std::string, Tensor>*> order;
  std::string header;  ///< with its length in front
};

std::string header_text(const nlohmann::ordered_json& header) {
  try {
    return header.dump();
  } catch (const nlohmann::json::exception&) {
    throw InvalidArgument("a tensor name or metadata is not utf-8");
  }
}

Layout plan_file(const TensorList& tensors, const Safetensors::Metadata& metadata) {
  Layout layout;
  for (const auto& t : tensors) layout.order.push_back(&t);
  std::stable_sort(layout.order.begin(), layout.order.end(), [](const auto* a, const auto* b) {
    return alignment_of(a->second.dtype()) > alignment_of(b->second.dtype());
  });
  auto header = nlohmann::ordered_json::object();
  if (!metadata.empty()) header[std::string(kMetadataKey)] = metadata;
  std::set<std::string_view> names = {kMetadataKey};
  std::uint64_t at = 0;
  for (const auto* t : layout.order) {
    const auto& [name, tensor] = *t;
    if (!names.insert(name).second) {
      throw InvalidArgument(fmt::format("tensor name {} is taken", in_quotes(name)));
    }
    const std::string_view dtype = name_of(tensor.dtype(), name);
    if (!dense_size(tensor.dtype(), tensor.dims())) {
      throw Unsupported(
          fmt::format("safetensors cannot hold tensor {}: rows of {} are no whole bytes",
                      in_quotes(name), to_string(tensor.dims())));
    }
    const std::uint64_t end = at + tensor.bytes().size();
    header.push_back(
        {name, {{"dtype", dtype}, {"shape", tensor.dims()}, {"data_offsets", {at, end}}}});
    at = end;
  }
  std::string text = header_text(header);
  const std::size_t used = kLengthBytes + text.size();
  text.append((kDataAlignment - used % kDataAlignment) % kDataAlignment, ' ');
  const std::uint64_t length = text.size();
  layout.header.resize(kLengthBytes);
  std::memcpy(layout.header.data(), &length, kLengthBytes);
  layout.header += text;
  return layout;
}

std::string folder_of(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  return slash == std::string::npos ? "." : path.substr(0, slash);
}

}  // namespace

Safetensors Safetensors::parse(std::span<const std::byte> file,
                               const std::shared_ptr<const void>& owner) {
  const std::uint64_t length = header_length(file);
  const std::uint64_t data_offset = kLengthBytes + length;
  const std::span<const std::byte> data = file.subspan(data_offset);
  const Json header = Json::parse(file.subspan(kLengthBytes, length), kLengthBytes);

  Safetensors out;
  for (const Json::Member& member : header.members("the header")) {
    if (member.key == kMetadataKey) {
      out.metadata_ = metadata_from(member.value);
    } else {
      out.entries_.push_back(entry_from(member, data, data_offset));
      out.entries_.back().owner = owner;
    }
  }
  std::stable_sort(out.entries_.begin(), out.entries_.end(), [](const Entry& a, const Entry& b) {
    return std::pair(a.offset, a.bytes.size()) < std::pair(b.offset, b.bytes.size());
  });
  require_tiling(out.entries_, data_offset, file.size());
  for (std::size_t i = 0; i < out.entries_.size(); ++i) {
    out.by_name_.emplace(out.entries_[i].name, i);
  }
  return out;
}

void Safetensors::add(Safetensors shard) {
  for (auto& [key, value] : shard.metadata_) {
    const auto [at, fresh] = metadata_.emplace(key, value);
    if (!fresh && at->second != value) {
      throw InvalidArgument(fmt::format("metadata {} is {} in one shard and {} in another",
                                        in_quotes(key), in_quotes(at->second), in_quotes(value)));
    }
  }
  for (Entry& entry : shard.entries_) {
    if (const Entry* other = find(entry.name)) {
      throw InvalidArgument(fmt::format("tensor {} is in two shards, {} and {}",
                                        in_quotes(entry.name), other->file, entry.file));
    }
    by_name_.emplace(entry.name, entries_.size());
    entries_.push_back(std::move(entry));
  }
}

Safetensors Safetensors::load_shard(const std::string& path) {
  try {
    const auto file = MappedFile::open(path);
    Safetensors out = parse(file->bytes(), file);
    for (Entry& entry : out.entries_) entry.file = path;
    return out;
  } catch (Error& error) {
    error.in_file(path);
    throw;
  }
}

Safetensors Safetensors::load_sharded(const std::string& path) {
  constexpr std::string_view kMap = "weight_map";
  const std::vector<std::byte> text = read_file(path, kMaxHeader);
  const Json index = Json::parse(text);
  const Json& map = index.at(kMap, "the index");
  Safetensors out;
  std::set<std::string> loaded;
  for (const Json::Member& m : map.members(kMap)) {
    const std::string shard = shard_path(folder_of(path), m.value);
    if (loaded.insert(shard).second) out.add(load_shard(shard));
  }
  for (const Json::Member& m : map.members(kMap)) {
    const Entry* entry = out.find(m.key);
    if (entry != nullptr && entry->file == shard_path(folder_of(path), m.value)) continue;
    throw FormatError(
        fmt::format("tensor {} is not in its shard {}", in_quotes(m.key), m.value.found()),
        m.offset);
  }
  return out;
}

Safetensors Safetensors::load(const std::string& path) {
  if (is_folder(path)) {
    const std::string single = path + "/model.safetensors";
    return load(is_file(single) ? single : path + "/model.safetensors.index.json");
  }
  if (!path.ends_with(".json")) return load_shard(path);
  try {
    return load_sharded(path);
  } catch (Error& error) {
    error.in_file(path);
    throw;
  }
}

const Safetensors::Entry* Safetensors::find(std::string_view name) const {
  const auto at = by_name_.find(name);
  return at == by_name_.end() ? nullptr : &entries_[at->second];
}

Tensor Safetensors::tensor(std::string_view name) const {
  const Entry* entry = find(name);
  if (entry == nullptr) throw InvalidArgument(fmt::format("no tensor {}", in_quotes(name)));
  try {
    if (entry->dtype == DType::boolean) require_bools(*entry);
  } catch (Error& error) {
    if (!entry->file.empty()) error.in_file(entry->file);
    throw;
  }
  if (!is_aligned(entry->bytes, entry->dtype)) return copied(*entry);
  return Tensor::view(entry->dtype, entry->dims, entry->bytes, entry->owner);
}

std::vector<std::byte> encode_safetensors(const TensorList& tensors,
                                          const Safetensors::Metadata& metadata) {
  const Layout layout = plan_file(tensors, metadata);
  const auto header = std::as_bytes(std::span(layout.header));
  std::vector<std::byte> out(header.begin(), header.end());
  for (const auto* t : layout.order) {
    out.insert(out.end(), t->second.bytes().begin(), t->second.bytes().end());
  }
  return out;
}

void save_safetensors(const std::string& path, const TensorList& tensors,
                      const Safetensors::Metadata& metadata) {
  const Layout layout = plan_file(tensors, metadata);
  AtomicFile file(path);
  file.write(std::as_bytes(std::span(layout.header)));
  for (const auto* t : layout.order) file.write(t->second.bytes());
  file.commit();
}

}  // namespace rlx
