#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "rlx/tensor.h"

namespace rlx {

/// The members `<name>.npy` of a zip archive, stored or deflated; others are left out. A member is
/// read when it is asked for; memory grows with what really comes out, at most to the size that the
/// directory gives, and a size that its compressed bytes cannot yield is refused before.
/// Offsets of errors count inside the member that the message names; for the archive itself the
/// offset is the end of the file, where its directory stands.
class Npz {
 public:
  static Npz parse(std::span<const std::byte> file, std::shared_ptr<const void> owner);
  static Npz load(const std::string& path);
  Npz(Npz&&) noexcept;
  Npz& operator=(Npz&&) noexcept;
  ~Npz();

  /// Without `.npy`, in the order of the archive.
  const std::vector<std::string>& names() const noexcept { return names_; }
  bool contains(std::string_view name) const;
  /// Throws `InvalidArgument` for an unknown name.
  Tensor tensor(std::string_view name) const;

 private:
  struct Archive;
  explicit Npz(std::unique_ptr<Archive> archive);

  std::unique_ptr<Archive> archive_;
  std::vector<std::string> names_;
  std::string path_;
};

enum class NpzCompression { stored, deflated };
/// Atomically. Equal input gives an equal file. Throws `InvalidArgument` for an empty name, one
/// given twice or not UTF-8.
void save_npz(const std::string& path, const std::vector<std::pair<std::string, Tensor>>& tensors,
              NpzCompression compression = NpzCompression::stored);

}  // namespace rlx
