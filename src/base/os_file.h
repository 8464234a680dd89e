#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace rlx {

/// A regular file mapped read-only. Hand the pointer to `Tensor::view` as the owner and the mapping
/// lives as long as the tensor. Thread-safe. A file that another process truncates while it is
/// mapped kills this one (SIGBUS), so mappings are kept no longer than needed.
class MappedFile {
 public:
  /// Throws `FileError` naming `path` where it is missing, unreadable or not a regular file.
  static std::shared_ptr<const MappedFile> open(const std::string& path);
  /// Maps `relative`, a path that a model file names, below `folder`. The checks of `inside_folder`
  /// hold for the very file that is mapped: no link can be slipped in between.
  static std::shared_ptr<const MappedFile> open_inside(const std::string& folder,
                                                       std::string_view relative);

  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;
  ~MappedFile();

  /// Page-aligned; empty for an empty file.
  std::span<const std::byte> bytes() const noexcept { return {bytes_, size_}; }
  const std::string& path() const noexcept { return path_; }

  /// Asks for early reading ahead, and for pages behind to go first.
  void advise_sequential() const noexcept;
  /// Lets the pages that lie wholly in [offset, offset + size) leave this process; they are read
  /// again when touched. Ranges past the end are cut.
  void drop_pages(std::uint64_t offset, std::uint64_t size) const noexcept;

 private:
  MappedFile(std::string path, const std::byte* bytes, std::size_t size)
      : path_(std::move(path)), bytes_(bytes), size_(size) {}
  static std::shared_ptr<const MappedFile> map(std::string path, int descriptor);

  std::string path_;
  const std::byte* bytes_;
  std::size_t size_;
};

/// Bytes of a regular file. Throws `FileError`.
std::uint64_t file_size(const std::string& path);

/// Whether `path` is a folder, or a regular file (links followed); false if it does not exist.
bool is_folder(const std::string& path);
bool is_file(const std::string& path);

/// All bytes of a file or pipe. Throws `FileError`, also where there are more than `cap` bytes: a
/// pipe or device that never ends fails then, and memory grows only with what was really read.
std::vector<std::byte> read_file(const std::string& path, std::uint64_t cap);

/// `folder/relative` if `relative` stays inside `folder`: not empty, not absolute, no `..`, no
/// symbolic link in any component that exists. Throws `InvalidArgument` naming the component.
std::string inside_folder(const std::string& folder, std::string_view relative);

/// Writes a file so that nobody ever sees half of it: bytes go to a new file beside the target, and
/// `commit` renames it. Without `commit` the destructor removes it. A target that exists and is no
/// regular file (a device, a folder) is refused; a link is followed.
class AtomicFile {
 public:
  explicit AtomicFile(const std::string& path);
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;
  ~AtomicFile();

  void write(std::span<const std::byte> bytes);
  /// Flushes to the disk and renames. Call once, last.
  void commit();

 private:
  [[noreturn]] void fail(std::string_view what) const;

  std::string path_;
  std::string temporary_;
  int descriptor_ = -1;
};

/// One call of `AtomicFile`.
void write_file(const std::string& path, std::span<const std::byte> bytes);

/// Where writing to `path` really ends: `path`, or what it links to. Throws `FileError` if that
/// exists and is not a regular file.
std::string replaceable_target(const std::string& path);

}  // namespace rlx
