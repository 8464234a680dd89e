#include "base/os_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>

#include "rlx/error.h"
#include "rlx/tensor.h"
#include "temporary_folder.h"

namespace rlx {
namespace {

using testing::HasSubstr;
using testing::ThrowsMessage;

std::span<const std::byte> bytes_of(std::string_view text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}
std::string text_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

TEST(MappedFile, ViewsAFileAndOutlivesItsPointer) {
  const TemporaryFolder folder;
  write_file(folder / "a", bytes_of("12345678"));
  auto file = MappedFile::open(folder / "a");
  file->advise_sequential();
  const Tensor t = Tensor::view(u8, {8}, file->bytes(), file);
  file->drop_pages(0, 100);
  file.reset();
  EXPECT_EQ(text_of(t.bytes()), "12345678");
}

TEST(MappedFile, DropsOnlyWholePagesAndReadsThemAgain) {
  const TemporaryFolder folder;
  const std::string text(3 * 4096 + 5, 'x');
  write_file(folder / "a", bytes_of(text));
  const auto file = MappedFile::open(folder / "a");
  file->drop_pages(1, 5000);
  file->drop_pages(4096, ~std::uint64_t{0});
  file->drop_pages(text.size(), 1);
  EXPECT_EQ(text_of(file->bytes()), text);
}

TEST(MappedFile, TakesAnEmptyFileAndNamesWhatItCannotMap) {
  const TemporaryFolder folder;
  write_file(folder / "empty", {});
  EXPECT_TRUE(MappedFile::open(folder / "empty")->bytes().empty());
  EXPECT_THAT([&] { MappedFile::open(folder / "none"); },
              ThrowsMessage<FileError>(HasSubstr("none: cannot open: No such file")));
  EXPECT_THAT([&] { MappedFile::open(folder.path()); },
              ThrowsMessage<FileError>(HasSubstr("is a folder, expected a file")));
  ASSERT_EQ(::mkfifo((folder / "pipe").c_str(), 0600), 0);
  EXPECT_THAT([&] { MappedFile::open(folder / "pipe"); },
              ThrowsMessage<FileError>(HasSubstr("is not a regular file")));
}

TEST(ReadFile, StopsAtItsCap) {
  const TemporaryFolder folder;
  write_file(folder / "a", bytes_of("12345678"));
  EXPECT_EQ(read_file(folder / "a", 8).size(), 8U);
  EXPECT_EQ(file_size(folder / "a"), 8U);
  EXPECT_THAT([&] { read_file(folder / "a", 7); },
              ThrowsMessage<FileError>(HasSubstr("holds more than 7 bytes")));
  EXPECT_THAT([] { read_file("/dev/zero", 100000); },
              ThrowsMessage<FileError>(HasSubstr("/dev/zero: holds more than 100000 bytes")));
  EXPECT_TRUE(read_file("/dev/null", 0).empty());
}

TEST(InsideFolder, RefusesWhatCouldLeaveTheFolder) {
  const TemporaryFolder folder;
  std::filesystem::create_directory(folder / "sub");
  write_file(folder / "sub/w.bin", bytes_of("w"));
  std::filesystem::create_symlink("sub", folder / "link");
  std::filesystem::create_symlink("sub/w.bin", folder / "file_link");
  EXPECT_EQ(inside_folder(folder.path(), "./sub//w.bin"), folder / "sub/w.bin");
  EXPECT_EQ(text_of(MappedFile::open_inside(folder.path(), "sub/w.bin")->bytes()), "w");

  const std::vector<std::pair<std::string, std::string>> cases = {
      {"", "is empty"},
      {"/etc/passwd", "is absolute"},
      {"../x", "must not contain '..'"},
      {"sub/../../x", "must not contain '..'"},
      {std::string("a\0b", 3), "zero byte"},
      {".", "names the folder itself"},
      {"link/w.bin", "'link' of path 'link/w.bin' is a symbolic link"},
      {"file_link", "is a symbolic link"},
  };
  for (const auto& [path, message] : cases) {
    const std::string bad = path;
    const auto refused = ThrowsMessage<InvalidArgument>(HasSubstr(message));
    EXPECT_THAT([&] { inside_folder(folder.path(), bad); }, refused);
    EXPECT_THAT([&] { MappedFile::open_inside(folder.path(), bad); }, refused);
  }
  EXPECT_THROW(MappedFile::open_inside(folder.path(), "sub/none"), FileError);
  EXPECT_THROW(MappedFile::open_inside(folder.path(), "sub/w.bin/x"), FileError);
  EXPECT_THROW(MappedFile::open_inside(folder.path(), "sub"), FileError);
}

std::size_t files_in(const std::string& path) {
  const std::filesystem::directory_iterator files(path);
  return static_cast<std::size_t>(std::distance(begin(files), end(files)));
}

TEST(AtomicFile, ShowsOldOrNewButNeverHalf) {
  const TemporaryFolder folder;
  write_file(folder / "a", bytes_of("old"));
  {
    AtomicFile file(folder / "a");
    file.write(bytes_of("ne"));
    EXPECT_EQ(text_of(read_file(folder / "a", 10)), "old");
  }
  EXPECT_EQ(text_of(read_file(folder / "a", 10)), "old");
  EXPECT_EQ(files_in(folder.path()), 1U);
  {
    AtomicFile file(folder / "a");
    file.write(bytes_of("ne"));
    file.write(bytes_of("w"));
    file.commit();
  }
  EXPECT_EQ(text_of(read_file(folder / "a", 10)), "new");
  EXPECT_EQ(files_in(folder.path()), 1U);
}

TEST(AtomicFile, FollowsLinksAndRefusesDevices) {
  const TemporaryFolder folder;
  write_file(folder / "a", bytes_of("old"));
  std::filesystem::create_symlink("a", folder / "link");
  write_file(folder / "link", bytes_of("new"));
  EXPECT_TRUE(std::filesystem::is_symlink(folder / "link"));
  EXPECT_EQ(text_of(read_file(folder / "a", 10)), "new");
  EXPECT_THAT([] { AtomicFile file("/dev/null"); },
              ThrowsMessage<FileError>(HasSubstr("/dev/null: is not a regular file")));
  EXPECT_THAT([&] { AtomicFile file(folder.path()); },
              ThrowsMessage<FileError>(HasSubstr("is a folder")));
  EXPECT_THAT([&] { AtomicFile file(folder / "no/b"); },
              ThrowsMessage<FileError>(HasSubstr("no/b: cannot create: No such file")));
}

}  // namespace
}  // namespace rlx
