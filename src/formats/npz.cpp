#include "formats/npz.h"

#include <fmt/format.h>
#include <utf8proc.h>
#include <zip.h>

#include <algorithm>
#include <limits>
#include <map>

#include "base/os_file.h"
#include "formats/dense.h"
#include "formats/npy.h"
#include "rlx/error.h"

namespace rlx {
namespace {

constexpr std::string_view kSuffix = ".npy";
/// No deflate stream yields more for each of its bytes.
constexpr std::uint64_t kMaxDeflateRatio = 1032;
/// 1 January 1980: the time of writing would make equal archives differ.
constexpr zip_uint16_t kFirstDosDate = 0x21;

struct CloseMember {
  void operator()(zip_file_t* f) const { zip_fclose(f); }
};
struct Discard {
  void operator()(zip_t* z) const { zip_discard(z); }
};
using ZipPointer = std::unique_ptr<zip_t, Discard>;

std::string text_of(zip_error_t* error) {
  std::string text = zip_error_strerror(error);
  zip_error_fini(error);
  return text;
}

struct Member {
  std::string name;  ///< without the suffix
  std::uint64_t index;
  std::uint64_t size;
};

/// What the directory says of one member, as far as it is believable.
zip_stat_t checked_status(zip_t* zip, std::uint64_t index, std::uint64_t file_size) {
  zip_stat_t status;
  zip_stat_init(&status);
  constexpr zip_uint64_t kNeeded =
      ZIP_STAT_NAME | ZIP_STAT_SIZE | ZIP_STAT_COMP_SIZE | ZIP_STAT_COMP_METHOD;
  if (zip_stat_index(zip, index, 0, &status) != 0 || (status.valid & kNeeded) != kNeeded) {
    throw FormatError(fmt::format("member {} of the archive cannot be described", index),
                      file_size);
  }
  const std::string name = in_quotes(status.name);
  if ((status.valid & ZIP_STAT_ENCRYPTION_METHOD) != 0 && status.encryption_method != ZIP_EM_NONE) {
    throw Unsupported(fmt::format("member {} is encrypted", name));
  }
  if (status.comp_method != ZIP_CM_STORE && status.comp_method != ZIP_CM_DEFLATE) {
    throw Unsupported(
        fmt::format("member {} uses compression method {}, expected stored or "
                    "deflated",
                    name, status.comp_method));
  }
  const std::uint64_t ratio = status.comp_method == ZIP_CM_STORE ? 1 : kMaxDeflateRatio;
  if (status.comp_size > file_size || status.size > status.comp_size * ratio) {
    throw FormatError(fmt::format("member {} claims {} bytes from {} compressed ones", name,
                                  status.size, status.comp_size),
                      file_size);
  }
  return status;
}

void require_utf8(const std::string& name) {
  const auto* at = reinterpret_cast<const utf8proc_uint8_t*>(name.data());
  auto left = static_cast<utf8proc_ssize_t>(name.size());
  while (left > 0) {
    utf8proc_int32_t c = 0;
    const utf8proc_ssize_t n = utf8proc_iterate(at, left, &c);
    // A zero byte would end the name early.
    if (n <= 0 || c == 0) {
      throw InvalidArgument(fmt::format("tensor name {} is not text", in_quotes(name)));
    }
    at += n;
    left -= n;
  }
}

void add_member(zip_t* zip, const std::string& name, const NpyParts& parts,
                NpzCompression compression) {
  const auto fragment = [](std::span<const std::byte> bytes) {
    zip_buffer_fragment_t f{};
    f.data = reinterpret_cast<zip_uint8_t*>(const_cast<std::byte*>(bytes.data()));
    f.length = bytes.size();
    return f;
  };
  const zip_buffer_fragment_t fragments[] = {fragment(std::as_bytes(std::span(parts.header))),
                                             fragment(parts.elements.bytes())};
  zip_source_t* source = zip_source_buffer_fragment(zip, fragments, std::size(fragments), 0);
  const std::string member = name + std::string(kSuffix);
  const zip_int64_t index =
      source == nullptr ? -1 : zip_file_add(zip, member.c_str(), source, ZIP_FL_ENC_UTF_8);
  if (index < 0) {
    zip_source_free(source);
    throw InvalidArgument(
        fmt::format("cannot add array {} to the archive: {}", in_quotes(name), zip_strerror(zip)));
  }
  const auto at = static_cast<zip_uint64_t>(index);
  const bool deflated = compression == NpzCompression::deflated;
  zip_set_file_compression(zip, at, deflated ? ZIP_CM_DEFLATE : ZIP_CM_STORE, 0);
  zip_file_set_dostime(zip, at, 0, kFirstDosDate, 0);
}

/// libzip writes no file for an archive without members.
void save_empty_npz(const std::string& path) {
  std::string end("PK\x05\x06");
  end.resize(22, '\0');
  write_file(path, std::as_bytes(std::span(end)));
}

}  // namespace

struct Npz::Archive {
  std::shared_ptr<const void> owner;
  std::uint64_t file_size = 0;
  ZipPointer zip;
  std::vector<Member> members;

  const Member* find(std::string_view name) const {
    const auto at = std::find_if(members.begin(), members.end(),
                                 [&](const Member& m) { return m.name == name; });
    return at == members.end() ? nullptr : &*at;
  }
  std::vector<std::byte> inflate(const Member& member) const;
};

/// All bytes of a member. The buffer grows with what came out so far, not with what is claimed.
std::vector<std::byte> Npz::Archive::inflate(const Member& member) const {
  constexpr std::uint64_t kChunk = 1 << 16;
  const auto fail = [](std::string_view why, std::uint64_t at) {
    throw FormatError(std::string(why), at);
  };
  const std::unique_ptr<zip_file_t, CloseMember> file(zip_fopen_index(zip.get(), member.index, 0));
  if (!file) fail(zip_strerror(zip.get()), 0);
  std::vector<std::byte> bytes;
  std::uint64_t used = 0;
  while (true) {
    // One byte more than claimed shows a member that goes on.
    if (used == bytes.size()) {
      bytes.resize(std::min(std::max(2 * used, kChunk), member.size + 1));
    }
    const zip_int64_t n = zip_fread(file.get(), bytes.data() + used, bytes.size() - used);
    if (n < 0) fail(zip_file_strerror(file.get()), used);
    if (n == 0) break;
    used += static_cast<std::uint64_t>(n);
    if (used > member.size) fail("holds more bytes than the directory says", member.size);
  }
  if (used != member.size) {
    fail(fmt::format("ends, expected {} bytes", member.size), used);
  }
  bytes.resize(used);
  return bytes;
}

Npz::Npz(std::unique_ptr<Archive> archive) : archive_(std::move(archive)) {
  for (const Member& m : archive_->members) names_.push_back(m.name);
}
Npz::Npz(Npz&&) noexcept = default;
Npz& Npz::operator=(Npz&&) noexcept = default;
Npz::~Npz() = default;

Npz Npz::parse(std::span<const std::byte> file, std::shared_ptr<const void> owner) {
  // libzip takes no bytes at all for an archive without members.
  if (file.empty()) throw FormatError("not a zip archive: the file is empty", 0);
  auto archive = std::make_unique<Archive>();
  archive->owner = std::move(owner);
  archive->file_size = file.size();
  zip_error_t error;
  zip_error_init(&error);
  zip_source_t* source = zip_source_buffer_create(file.data(), file.size(), 0, &error);
  if (source == nullptr) throw FormatError(text_of(&error), file.size());
  archive->zip.reset(zip_open_from_source(source, ZIP_RDONLY, &error));
  if (!archive->zip) {
    zip_source_free(source);
    throw FormatError(fmt::format("not a zip archive: {}", text_of(&error)), file.size());
  }

  std::uint64_t compressed = 0;
  const zip_int64_t count = zip_get_num_entries(archive->zip.get(), 0);
  for (zip_int64_t i = 0; i < count; ++i) {
    const auto index = static_cast<std::uint64_t>(i);
    const zip_stat_t status = checked_status(archive->zip.get(), index, file.size());
    compressed += status.comp_size;
    if (compressed > file.size()) throw FormatError("members of the archive overlap", file.size());
    std::string_view name = status.name;
    if (!name.ends_with(kSuffix)) continue;
    name.remove_suffix(kSuffix.size());
    archive->members.push_back({std::string(name), index, status.size});
  }
  std::vector<std::string_view> names;
  for (const Member& m : archive->members) names.push_back(m.name);
  std::sort(names.begin(), names.end());
  const auto twice = std::adjacent_find(names.begin(), names.end());
  if (twice != names.end()) {
    throw FormatError(fmt::format("two members are called {}", in_quotes(*twice)), file.size());
  }
  return Npz(std::move(archive));
}

Npz Npz::load(const std::string& path) {
  try {
    const auto file = MappedFile::open(path);
    Npz npz = parse(file->bytes(), file);
    npz.path_ = path;
    return npz;
  } catch (Error& error) {
    error.in_file(path);
    throw;
  }
}

bool Npz::contains(std::string_view name) const { return archive_->find(name) != nullptr; }

Tensor Npz::tensor(std::string_view name) const {
  const Member* member = archive_->find(name);
  if (member == nullptr) {
    throw InvalidArgument(fmt::format("the archive has no array {}", in_quotes(name)));
  }
  try {
    const auto bytes = std::make_shared<const std::vector<std::byte>>(archive_->inflate(*member));
    return parse_npy(*bytes, bytes);
  } catch (Error& error) {
    error.at(member->name);
    if (!path_.empty()) error.in_file(path_);
    throw;
  }
}

void save_npz(const std::string& path, const std::vector<std::pair<std::string, Tensor>>& tensors,
              NpzCompression compression) {
  // libzip writes beside the target and renames, as AtomicFile does.
  const std::string target = replaceable_target(path);
  const auto fail = [&](std::string_view why) {
    FileError error(fmt::format("cannot write the archive: {}", why));
    error.in_file(path);
    throw error;
  };
  std::vector<NpyParts> parts;
  std::map<std::string_view, bool> names;
  for (const auto& [name, tensor] : tensors) {
    require_utf8(name);
    if (name.empty()) throw InvalidArgument("the name of an array is empty");
    if (!names.emplace(name, true).second) {
      throw InvalidArgument(fmt::format("tensor name {} is taken", in_quotes(name)));
    }
    parts.push_back(npy_parts(tensor));
  }

  if (tensors.empty()) return save_empty_npz(path);

  int code = 0;
  ZipPointer zip(zip_open(target.c_str(), ZIP_CREATE | ZIP_TRUNCATE, &code));
  if (!zip) {
    zip_error_t error;
    zip_error_init_with_code(&error, code);
    fail(text_of(&error));
  }
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    add_member(zip.get(), tensors[i].first, parts[i], compression);
  }
  if (zip_close(zip.get()) != 0) fail(zip_strerror(zip.get()));
  (void)zip.release();  // zip_close freed it
}

}  // namespace rlx
