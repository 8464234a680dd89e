#include "base/os_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <limits>

#include "rlx/error.h"

namespace rlx {
namespace {

[[noreturn]] void fail(const std::string& path, std::string message) {
  FileError error(std::move(message));
  error.in_file(path);
  throw error;
}

/// With the system's reason for the call that just failed.
[[noreturn]] void fail_errno(const std::string& path, std::string_view what) {
  fail(path, fmt::format("{}: {}", what, std::strerror(errno)));
}

class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  ~Descriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  int get() const { return fd_; }
  bool valid() const { return fd_ >= 0; }
  void reset(int fd) {
    if (fd_ >= 0) ::close(fd_);
    fd_ = fd;
  }

 private:
  int fd_;
};

// Without O_NONBLOCK, opening a pipe that nobody writes to would wait for ever.
constexpr int kOpenRegular = O_RDONLY | O_CLOEXEC | O_NONBLOCK;

struct stat regular_status(const std::string& path, int fd) {
  struct stat status {};
  if (::fstat(fd, &status) != 0) fail_errno(path, "cannot read its status");
  if (S_ISDIR(status.st_mode)) fail(path, "is a folder, expected a file");
  if (!S_ISREG(status.st_mode)) fail(path, "is not a regular file");
  return status;
}

/// The components of a path that must stay below a folder, checked as text.
std::vector<std::string> safe_components(std::string_view relative) {
  if (relative.empty()) throw InvalidArgument("the path of a file inside the folder is empty");
  if (relative.find('\0') != std::string_view::npos) {
    throw InvalidArgument("a path inside the folder holds a zero byte");
  }
  if (relative.front() == '/') {
    throw InvalidArgument(
        fmt::format("path '{}' is absolute, expected one inside the folder", relative));
  }
  std::vector<std::string> parts;
  while (!relative.empty()) {
    const std::size_t slash = std::min(relative.find('/'), relative.size());
    const std::string_view part = relative.substr(0, slash);
    relative.remove_prefix(std::min(slash + 1, relative.size()));
    if (part == "..") throw InvalidArgument("a path inside the folder must not contain '..'");
    if (!part.empty() && part != ".") parts.emplace_back(part);
  }
  if (parts.empty()) throw InvalidArgument("a path inside the folder names the folder itself");
  return parts;
}

[[noreturn]] void fail_link(std::string_view relative, std::string_view part) {
  throw InvalidArgument(fmt::format(
      "'{}' of path '{}' is a symbolic link, which could leave the folder", part, relative));
}

/// After `openat` failed. Linux says ELOOP or ENOTDIR for a link; the text of `inside_folder` is
/// the better one then.
[[noreturn]] void fail_inside(const std::string& folder, std::string_view relative,
                              const std::string& path) {
  const int reason = errno;
  inside_folder(folder, relative);
  errno = reason;
  fail_errno(path, "cannot open");
}

void write_all(int fd, std::span<const std::byte> bytes, const std::string& path) {
  while (!bytes.empty()) {
    const ssize_t n = ::write(fd, bytes.data(), bytes.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) fail_errno(path, "cannot write");
    bytes = bytes.subspan(static_cast<std::size_t>(n));
  }
}

/// A name beside `path` that no other writer of this or another process uses.
std::string temporary_name(const std::string& path) {
  static std::atomic<unsigned> counter{0};
  return fmt::format("{}.{}.{}.tmp", path, ::getpid(), counter++);
}

bool has_mode(const std::string& path, mode_t kind) {
  struct stat status {};
  return ::stat(path.c_str(), &status) == 0 && (status.st_mode & S_IFMT) == kind;
}

}  // namespace

std::shared_ptr<const MappedFile> MappedFile::map(std::string path, int descriptor) {
  const struct stat status = regular_status(path, descriptor);
  const auto size = static_cast<std::uint64_t>(status.st_size);
  if (size > std::numeric_limits<std::size_t>::max()) fail(path, "exceeds the address space");
  void* bytes = nullptr;
  if (size > 0) {
    bytes = ::mmap(nullptr, static_cast<std::size_t>(size), PROT_READ, MAP_PRIVATE, descriptor, 0);
    if (bytes == MAP_FAILED) fail_errno(path, "cannot map");
  }
  return std::shared_ptr<const MappedFile>(new MappedFile(
      std::move(path), static_cast<const std::byte*>(bytes), static_cast<std::size_t>(size)));
}

std::shared_ptr<const MappedFile> MappedFile::open(const std::string& path) {
  const Descriptor fd(::open(path.c_str(), kOpenRegular));
  if (!fd.valid()) fail_errno(path, "cannot open");
  return map(path, fd.get());
}

std::shared_ptr<const MappedFile> MappedFile::open_inside(const std::string& folder,
                                                          std::string_view relative) {
  const std::vector<std::string> parts = safe_components(relative);
  std::string path = folder;
  Descriptor fd(::open(folder.c_str(), O_RDONLY | O_CLOEXEC | O_DIRECTORY));
  if (!fd.valid()) fail_errno(folder, "cannot open the folder");
  for (std::size_t i = 0; i < parts.size(); ++i) {
    path += '/' + parts[i];
    const int flags = kOpenRegular | O_NOFOLLOW | (i + 1 < parts.size() ? O_DIRECTORY : 0);
    const int next = ::openat(fd.get(), parts[i].c_str(), flags);
    if (next < 0) fail_inside(folder, relative, path);
    fd.reset(next);
  }
  return map(std::move(path), fd.get());
}

MappedFile::~MappedFile() {
  if (bytes_ != nullptr) ::munmap(const_cast<std::byte*>(bytes_), size_);
}

void MappedFile::advise_sequential() const noexcept {
  if (bytes_ != nullptr) ::madvise(const_cast<std::byte*>(bytes_), size_, MADV_SEQUENTIAL);
}

void MappedFile::drop_pages(std::uint64_t offset, std::uint64_t size) const noexcept {
  if (offset >= size_) return;
  const auto page = static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
  const std::uint64_t cut = std::min<std::uint64_t>(size, size_ - offset);
  // The end of the file closes its last page.
  const std::uint64_t end = offset + cut == size_ ? size_ : (offset + cut) / page * page;
  const std::uint64_t begin = (offset + page - 1) / page * page;
  if (begin >= end) return;
  ::madvise(const_cast<std::byte*>(bytes_) + begin, end - begin, MADV_DONTNEED);
}

std::uint64_t file_size(const std::string& path) {
  const Descriptor fd(::open(path.c_str(), kOpenRegular));
  if (!fd.valid()) fail_errno(path, "cannot open");
  return static_cast<std::uint64_t>(regular_status(path, fd.get()).st_size);
}

bool is_folder(const std::string& path) { return has_mode(path, S_IFDIR); }
bool is_file(const std::string& path) { return has_mode(path, S_IFREG); }

std::vector<std::byte> read_file(const std::string& path, std::uint64_t cap) {
  const Descriptor fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd.valid()) fail_errno(path, "cannot open");
  struct stat status {};
  if (::fstat(fd.get(), &status) != 0) fail_errno(path, "cannot read its status");
  if (S_ISDIR(status.st_mode)) fail(path, "is a folder, expected a file");

  constexpr std::size_t kChunk = std::size_t{1} << 20;
  cap = std::min(cap, std::numeric_limits<std::uint64_t>::max() - 1);
  std::vector<std::byte> bytes;
  std::size_t used = 0;
  while (true) {
    if (used == bytes.size()) {
      // The size is a hint (0 for pipes); one byte more finds the end without another chunk.
      const auto hint = static_cast<std::uint64_t>(std::max<off_t>(status.st_size, 0)) + 1;
      const std::uint64_t step = used == 0 ? hint : std::max(used, kChunk);
      bytes.resize(used + std::min({step, std::uint64_t{64} * kChunk, cap - used + 1}));
    }
    const ssize_t n = ::read(fd.get(), bytes.data() + used, bytes.size() - used);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) fail_errno(path, "cannot read");
    if (n == 0) break;
    used += static_cast<std::size_t>(n);
    if (used > cap) fail(path, fmt::format("holds more than {} bytes", cap));
  }
  bytes.resize(used);
  return bytes;
}

std::string inside_folder(const std::string& folder, std::string_view relative) {
  std::string path = folder;
  for (const std::string& part : safe_components(relative)) {
    path += '/' + part;
    struct stat status {};
    if (::lstat(path.c_str(), &status) == 0 && S_ISLNK(status.st_mode)) fail_link(relative, part);
  }
  return path;
}

std::string replaceable_target(const std::string& path) {
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0) return path;
  if (S_ISDIR(status.st_mode)) fail(path, "is a folder, cannot be replaced by a file");
  if (!S_ISREG(status.st_mode)) fail(path, "is not a regular file, cannot be replaced by one");
  if (::lstat(path.c_str(), &status) != 0 || !S_ISLNK(status.st_mode)) return path;
  const std::unique_ptr<char, decltype(&std::free)> real(::realpath(path.c_str(), nullptr),
                                                         &std::free);
  if (real == nullptr) fail_errno(path, "cannot follow the link");
  return real.get();
}

AtomicFile::AtomicFile(const std::string& path)
    : path_(replaceable_target(path)), temporary_(temporary_name(path_)) {
  descriptor_ = ::open(temporary_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  if (descriptor_ < 0) fail("cannot create");
}

AtomicFile::~AtomicFile() {
  if (descriptor_ < 0) return;
  ::close(descriptor_);
  ::unlink(temporary_.c_str());
}

void AtomicFile::fail(std::string_view what) const { fail_errno(path_, what); }

void AtomicFile::write(std::span<const std::byte> bytes) { write_all(descriptor_, bytes, path_); }

void AtomicFile::commit() {
  if (::fsync(descriptor_) != 0) fail("cannot flush");
  if (::rename(temporary_.c_str(), path_.c_str()) != 0) fail("cannot put in place");
  const int fd = descriptor_;
  descriptor_ = -1;
  if (::close(fd) != 0) fail("cannot close");
}

void write_file(const std::string& path, std::span<const std::byte> bytes) {
  AtomicFile file(path);
  file.write(bytes);
  file.commit();
}

}  // namespace rlx
