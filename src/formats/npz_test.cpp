#include "formats/npz.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

#include "base/os_file.h"
#include "rlx/error.h"
#include "temporary_folder.h"

namespace rlx {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::ThrowsMessage;

// Made by NumPy and zipfile: tests/python/write_format_samples.py.
std::string sample(const std::string& name) { return RLX_SOURCE_DIR "/tests/corpora/npz/" + name; }

TEST(Npz, ReadsWhatNumpyWrote) {
  for (const std::string name : {"stored.npz", "deflated.npz"}) {
    const Npz npz = Npz::load(sample(name));
    EXPECT_THAT(npz.names(), ElementsAre("a", "b/c", "µ"));
    EXPECT_TRUE(npz.contains("a"));
    EXPECT_FALSE(npz.contains("a.npy"));
    const Tensor a = npz.tensor("a");
    EXPECT_EQ(a.size(), 9000U);
    EXPECT_EQ(a.values<std::int64_t>()[8999], 8999);
    EXPECT_EQ(npz.tensor("b/c").dims(), (Tensor::Dims{2, 2}));
    EXPECT_THAT([&] { npz.tensor("x"); },
                ThrowsMessage<InvalidArgument>("the archive has no array 'x'"));
  }
}

TEST(Npz, WritesWhatItReadsAndTheSameTwice) {
  const TemporaryFolder folder;
  const std::vector<std::pair<std::string, Tensor>> tensors = {
      {"x", Tensor({2}, {1.0F, 2.0F})}, {"µ/y", Tensor(i8, {0})}, {"big", Tensor(f64, {50000})}};
  for (const auto how : {NpzCompression::stored, NpzCompression::deflated}) {
    save_npz(folder / "a.npz", tensors, how);
    save_npz(folder / "b.npz", tensors, how);
    EXPECT_EQ(read_file(folder / "a.npz", 1 << 20), read_file(folder / "b.npz", 1 << 20));
    const Npz npz = Npz::load(folder / "a.npz");
    EXPECT_THAT(npz.names(), ElementsAre("x", "µ/y", "big"));
    for (const auto& [name, tensor] : tensors) {
      const Tensor read = npz.tensor(name);
      EXPECT_EQ(read.dims(), tensor.dims());
      EXPECT_EQ(read.dtype(), tensor.dtype());
      EXPECT_TRUE(std::ranges::equal(read.bytes(), tensor.bytes()));
    }
    EXPECT_EQ(file_size(folder / "a.npz") > 400000, how == NpzCompression::stored);
  }
  save_npz(folder / "a.npz", {});
  EXPECT_TRUE(Npz::load(folder / "a.npz").names().empty());
}

TEST(Npz, RefusesBadNames) {
  const TemporaryFolder folder;
  const auto save = [&](std::vector<std::pair<std::string, Tensor>> tensors) {
    save_npz(folder / "a.npz", tensors);
  };
  EXPECT_THROW(save({{"", Tensor()}}), InvalidArgument);
  EXPECT_THROW(save({{"a", Tensor()}, {"a", Tensor()}}), InvalidArgument);
  EXPECT_THROW(save({{"\xff", Tensor()}}), InvalidArgument);
  EXPECT_THROW(save({{std::string("a\0b", 3), Tensor()}}), InvalidArgument);
  EXPECT_FALSE(is_file(folder / "a.npz"));
  EXPECT_THROW(save_npz(folder / "none/a.npz", {{"a", Tensor()}}), FileError);
}

struct Bad {
  std::string file;
  std::string message;
};

TEST(Npz, RefusesHostileArchives) {
  const std::vector<Bad> cases = {
      // Inflates to 10 MB but its directory says 100 bytes, and the other way round.
      {"says_too_little.npz", "holds more bytes than the directory says (at byte 100)"},
      {"says_too_much.npz", "member 'a.npy' claims 4294967200 bytes from"},
      {"overlap.npz", "members of the archive overlap"},
      {"twice.npz", "two members are called 'a'"},
      {"method.npz", "uses compression method 12, expected stored or deflated"},
      {"checksum.npz", "a: CRC error"},
      {"cut.npz", "not a zip archive"},
  };
  for (const Bad& bad : cases) {
    EXPECT_THAT([&] { Npz::load(sample("hostile/" + bad.file)).tensor("a"); },
                ThrowsMessage<Error>(testing::AllOf(HasSubstr(bad.file), HasSubstr(bad.message))));
  }
  EXPECT_THROW(Npz::parse({}, nullptr), FormatError);
}

TEST(Npz, SurvivesEveryTruncationAndBitFlip) {
  const std::vector<std::byte> good = read_file(sample("small.npz"), 10000);
  ASSERT_EQ(Npz::parse(good, nullptr).names().size(), 1U);
  const auto read_all = [](std::span<const std::byte> bytes) {
    const Npz npz = Npz::parse(bytes, nullptr);
    for (const std::string& name : npz.names()) (void)npz.tensor(name);
  };
  for (std::size_t n = 0; n < good.size(); ++n) {
    EXPECT_THROW(read_all(std::span(good).first(n)), FormatError) << n;
  }
  for (std::size_t bit = 0; bit < 8 * good.size(); ++bit) {
    std::vector<std::byte> bytes = good;
    bytes[bit / 8] ^= std::byte{1} << (bit % 8);
    try {
      read_all(bytes);  // dates, versions and comments may change
    } catch (const Error& error) {
      const bool typed =
          error.code() == ErrorCode::kFormat || error.code() == ErrorCode::kUnsupported;
      EXPECT_TRUE(typed) << bit << ": " << error.what();
    }
  }
}

}  // namespace
}  // namespace rlx
