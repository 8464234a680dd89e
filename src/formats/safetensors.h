#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "rlx/tensor.h"

namespace rlx {

/// Named tensors and text metadata in the safetensors layout: eight bytes header length, a JSON
/// header, then the bytes of all tensors without gap or overlap.
///
/// Everything is checked before it is used; what does not hold is a `FormatError` with its byte
/// offset in the file. Reading copies nothing: tensors are views that keep the mapping alive.
class Safetensors {
 public:
  using Metadata = std::map<std::string, std::string>;
  struct Entry {
    std::string name;
    DType dtype;
    Tensor::Dims dims;
    std::span<const std::byte> bytes;
    std::uint64_t offset;  ///< of `bytes` in its file
    std::shared_ptr<const void> owner;
    std::string file;  ///< empty if parsed from memory
  };

  /// `owner` keeps `file` alive.
  static Safetensors parse(std::span<const std::byte> file,
                           const std::shared_ptr<const void>& owner);
  /// `path` is a file, an index of shards (`….json`), or a folder with `model.safetensors` or
  /// `model.safetensors.index.json`. Shards stand beside their index; they may be links, as caches
  /// of hubs have them. A name in two shards is an error.
  static Safetensors load(const std::string& path);

  /// In the order of their bytes.
  std::span<const Entry> entries() const noexcept { return entries_; }
  /// Of all shards; a key that has two values is an error.
  const Metadata& metadata() const noexcept { return metadata_; }
  /// Null if there is none of that name.
  const Entry* find(std::string_view name) const;

  /// A view where the bytes are aligned for their dtype, else a copy. Throws `InvalidArgument` for
  /// an unknown name and `FormatError` for a bool that is neither 0 nor 1.
  Tensor tensor(std::string_view name) const;

 private:
  static Safetensors load_shard(const std::string& path);
  static Safetensors load_sharded(const std::string& path);
  void add(Safetensors shard);

  std::vector<Entry> entries_;
  Metadata metadata_;
  std::map<std::string, std::size_t, std::less<>> by_name_;
};

using TensorList = std::vector<std::pair<std::string, Tensor>>;

/// The file as bytes. Tensors are written by falling alignment, else in the given order; the first
/// begins at a multiple of 64 bytes. Throws `Unsupported` for a dtype that safetensors has no name
/// for and `InvalidArgument` for a name given twice or not UTF-8.
std::vector<std::byte> encode_safetensors(const TensorList& tensors,
                                          const Safetensors::Metadata& metadata = {});
/// The same to a file, atomically, without a copy of the tensors.
void save_safetensors(const std::string& path, const TensorList& tensors,
                      const Safetensors::Metadata& metadata = {});

}  // namespace rlx
