#include "formats/safetensors.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>

#include "base/os_file.h"
#include "rlx/error.h"
#include "temporary_folder.h"

namespace rlx {
namespace {

using testing::HasSubstr;
using testing::ThrowsMessage;

std::vector<std::byte> file_of(std::string_view header, std::string_view data) {
  const std::uint64_t length = header.size();
  std::vector<std::byte> bytes(8 + header.size() + data.size());
  std::memcpy(bytes.data(), &length, 8);
  std::memcpy(bytes.data() + 8, header.data(), header.size());
  std::memcpy(bytes.data() + 8 + header.size(), data.data(), data.size());
  return bytes;
}

Safetensors parse(std::string_view header, std::string_view data) {
  auto bytes = std::make_shared<std::vector<std::byte>>(file_of(header, data));
  return Safetensors::parse(*bytes, bytes);
}

/// Read only, as views are.
template <class T>
std::span<const T> values(const Tensor& t) {
  return t.values<T>();
}

TEST(Safetensors, ReadsWhatItsOwnLibraryWrote) {
  // tests/python/write_format_samples.py made it with PyPI's safetensors.
  const auto file =
      Safetensors::load(RLX_SOURCE_DIR "/tests/corpora/safetensors/every_dtype.safetensors");
  EXPECT_EQ(file.metadata(), (Safetensors::Metadata{{"format", "pt"}, {"unit", "µ"}}));
  EXPECT_EQ(file.entries().size(), 22U);
  EXPECT_THAT(values<float>(file.tensor("F32")), testing::ElementsAre(1.5F, -2, 0.25F, 1e30F));
  EXPECT_EQ(file.tensor("F32").dims(), (Tensor::Dims{2, 2}));
  EXPECT_THAT(values<std::int64_t>(file.tensor("I64")), testing::ElementsAre(-1, 1LL << 40));
  EXPECT_THAT(values<bool>(file.tensor("BOOL")), testing::ElementsAre(true, false, true));
  EXPECT_EQ(file.tensor("scalar").dims(), Tensor::Dims{});
  EXPECT_EQ(values<double>(file.tensor("scalar"))[0], 0.1);
  EXPECT_EQ(file.tensor("empty").dims(), (Tensor::Dims{0, 3}));
  EXPECT_EQ(file.find("BF16")->dtype, bf16);
  EXPECT_EQ(file.find("F8_E4M3")->dtype, DType::f8e4m3);
  EXPECT_EQ(file.find("F8_E8M0")->dtype, DType::f8e8m0);
  EXPECT_EQ(file.find("C64")->dtype, DType::c64);
  EXPECT_EQ(file.find("F4")->dtype, DType::f4e2m1);
  EXPECT_EQ(file.find("F4")->dims, (Tensor::Dims{2, 2}));
  EXPECT_EQ(file.tensor("F4").bytes()[1], std::byte{0x43});
}

TEST(Safetensors, WritesWhatItReads) {
  const TensorList tensors = {{"b", Tensor({3}, {true, false, true})},
                              {"w", Tensor({2, 1}, {1.0, 2.0})},
                              {"none", Tensor(bf16, {0, 7})},
                              {"i", Tensor({1}, {std::int16_t{-5}})}};
  const Safetensors::Metadata metadata = {{"rlx.format", "1"}};
  const TemporaryFolder folder;
  save_safetensors(folder / "t.safetensors", tensors, metadata);
  EXPECT_EQ(read_file(folder / "t.safetensors", 1000), encode_safetensors(tensors, metadata));

  const Safetensors file = Safetensors::load(folder / "t.safetensors");
  EXPECT_EQ(file.metadata(), metadata);
  EXPECT_EQ(file.entries()[0].name, "w");
  EXPECT_EQ(file.entries()[0].offset % 64, 0U);
  for (const auto& [name, tensor] : tensors) {
    const Tensor read = file.tensor(name);
    EXPECT_EQ(read.dtype(), tensor.dtype());
    EXPECT_EQ(read.dims(), tensor.dims());
    EXPECT_TRUE(std::ranges::equal(read.bytes(), tensor.bytes())) << name;
    EXPECT_EQ(read.bytes().data(), file.find(name)->bytes.data()) << "copied " << name;
  }
}

TEST(Safetensors, CopiesOnlyWhatIsNotAligned) {
  const std::string_view header = R"({"x":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},)"
                                  R"("w":{"dtype":"F32","shape":[1],"data_offsets":[1,5]}})";
  const Safetensors file = parse(header, std::string_view("\7\0\0\x80\x3f", 5));
  const Tensor w = file.tensor("w");
  EXPECT_EQ(w.values<float>()[0], 1.0F);
  EXPECT_NE(w.bytes().data(), file.find("w")->bytes.data());
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(w.bytes().data()) % 4, 0U);
}

TEST(Safetensors, RefusesWhatItCannotWrite) {
  EXPECT_THAT(
      [] {
        encode_safetensors({{"s", Tensor::of_strings({1}, {"x"})}});
      },
      ThrowsMessage<Unsupported>("safetensors has no name for the dtype string of tensor 's'"));
  EXPECT_THAT(
      [] {
        encode_safetensors({{"a", Tensor()}, {"a", Tensor()}});
      },
      ThrowsMessage<InvalidArgument>("tensor name 'a' is taken"));
  EXPECT_THAT(
      [] {
        encode_safetensors({{"__metadata__", Tensor()}});
      },
      ThrowsMessage<InvalidArgument>("tensor name '__metadata__' is taken"));
  EXPECT_THAT(
      [] {
        encode_safetensors({{"\xff", Tensor()}});
      },
      ThrowsMessage<InvalidArgument>(HasSubstr("not utf-8")));
}

struct Bad {
  std::string header;
  std::uint64_t data_bytes;
  std::uint64_t offset;
  std::string message;
};

std::string one(std::string_view dtype, std::string_view shape, std::string_view offsets) {
  return fmt::format(R"({{"a":{{"dtype":{},"shape":{},"data_offsets":{}}}}})", dtype, shape,
                     offsets);
}

// Offsets count from the start of the file: the header begins at byte 8.
TEST(Safetensors, RefusesHostileHeadersWithTheirOffset) {
  const std::string two = R"({"a":{"dtype":"U8","shape":[2],"data_offsets":[0,2]},)"
                          R"("b":{"dtype":"U8","shape":[2],"data_offsets":[%,@]}})";
  const auto second = [&](std::string_view begin, std::string_view end) {
    std::string text = two;
    text.replace(text.find('%'), 1, begin);
    return text.replace(text.find('@'), 1, end);
  };
  const std::vector<Bad> cases = {
      {"", 0, 8, "not valid json"},
      {"[]", 0, 8, "the header is an array, expected an object"},
      {"{}", 3, 10, "3 bytes at the end belong to no tensor"},
      {R"({"a":1})", 0, 13, "tensor 'a' is 1, expected an object"},
      {R"({"a":{}})", 0, 13, "tensor 'a' has no key 'dtype'"},
      {R"({"a":{"x":1}})", 0, 14, "tensor 'a' has the unknown key 'x'"},
      {R"({"__metadata__":{"k":1}})", 0, 29, "metadata 'k' is 1, expected a string"},
      {one("7", "[]", "[0,0]"), 0, 22, "dtype of tensor 'a' is 7, expected a string"},
      {one("\"Q4\"", "[]", "[0,0]"), 0, 22, "tensor 'a' has the unknown dtype 'Q4'"},
      {one("\"U8\"", "3", "[0,3]"), 3, 35, "shape of tensor 'a' is 3, expected an array"},
      {one("\"U8\"", "[-1]", "[0,3]"), 3, 36, "shape of tensor 'a' is -1"},
      {one("\"U8\"", "[1.0]", "[0,1]"), 1, 36, "shape of tensor 'a' is 1"},
      {one("\"U8\"", "[9223372036854775808]", "[0,1]"), 1, 36, "is 9223372036854775808"},
      {one("\"U8\"", "[4294967296,4294967296,2]", "[0,0]"), 0, 35, "overflows"},
      {one("\"F64\"", "[2305843009213693952]", "[0,0]"), 0, 36, "overflows"},
      {one("\"F4\"", "[2,3]", "[0,3]"), 3, 35, "does not fill whole bytes"},
      {one("\"U8\"", "[2]", "[0,1,2]"), 2, 54, "data_offsets is an array, expected two integers"},
      {one("\"U8\"", "[2]", "[2,0]"), 2, 54, "ends at 0 before it begins at 2"},
      {one("\"U8\"", "[2]", "[0,3]"), 2, 54, "ends at 3, but only 2 bytes of data"},
      {one("\"U8\"", "[2]", "[0,18446744073709551615]"), 2, 57, "expected an integer"},
      {one("\"F32\"", "[2]", "[0,4]"), 4, 55, "[2] of f32 takes 8 bytes, data_offsets give 4"},
      {one("\"U8\"", "[2]", "[1,3]"), 3, 61, "1 bytes before tensor 'a' belong to no tensor"},
      {second("1", "3"), 3, 114, "tensor 'b' overlaps the one before it"},
      {second("0", "2"), 2, 113, "tensor 'b' overlaps the one before it"},
      {second("3", "5"), 5, 115, "1 bytes before tensor 'b' belong to no tensor"},
      {R"({"a":)" + std::string(100000, '['), 0, 8 + 5 + 63, "nested deeper than 64"},
  };
  for (const Bad& bad : cases) {
    try {
      parse(bad.header, std::string(bad.data_bytes, '\0'));
      ADD_FAILURE() << bad.header.substr(0, 100);
    } catch (const FormatError& error) {
      EXPECT_THAT(error.what(), HasSubstr(bad.message)) << bad.header.substr(0, 100);
      EXPECT_EQ(error.offset(), bad.offset) << error.what();
    }
  }
}

TEST(Safetensors, RefusesEveryTruncationAndWrongLengths) {
  const std::vector<std::byte> good = encode_safetensors({{"a", Tensor({2}, {1.0F, 2.0F})}});
  for (std::size_t n = 0; n < good.size(); ++n) {
    EXPECT_THROW(Safetensors::parse(std::span(good).first(n), nullptr), FormatError) << n;
  }
  std::vector<std::byte> huge = good;
  std::memset(huge.data(), 0xff, 8);
  EXPECT_THAT([&] { Safetensors::parse(huge, nullptr); },
              ThrowsMessage<FormatError>(
                  "the header is said to have 18446744073709551615 bytes, 64 follow (at byte 0)"));
}

TEST(Safetensors, RefusesBoolsThatAreNeitherTrueNorFalse) {
  const Safetensors file = parse(one("\"BOOL\"", "[3]", "[0,3]"), std::string_view("\1\0\2", 3));
  EXPECT_THAT([&] { file.tensor("a"); },
              ThrowsMessage<FormatError>("bool tensor 'a' holds 2 (at byte 65)"));
  EXPECT_THAT([&] { file.tensor("b"); }, ThrowsMessage<InvalidArgument>("no tensor 'b'"));
}

class Shards : public testing::Test {
 protected:
  void SetUp() override {
    save_safetensors(folder_ / "m-1.safetensors", {{"a", Tensor({1}, {1.0F})}}, {{"format", "pt"}});
    save_safetensors(folder_ / "m-2.safetensors", {{"b", Tensor({1}, {2.0F})}}, {{"format", "pt"}});
  }
  void write_index(std::string_view map) {
    const std::string text =
        fmt::format(R"({{"metadata":{{"total_size":8}},"weight_map":{}}})", map);
    write_file(index_, std::as_bytes(std::span(text)));
  }

  TemporaryFolder folder_;
  std::string index_ = folder_ / "model.safetensors.index.json";
};

TEST_F(Shards, AreOneSetOfTensors) {
  write_index(R"({"a":"m-1.safetensors","b":"m-2.safetensors"})");
  const Safetensors file = Safetensors::load(folder_.path());
  EXPECT_EQ(values<float>(file.tensor("a"))[0], 1.0F);
  EXPECT_EQ(values<float>(file.tensor("b"))[0], 2.0F);
  EXPECT_EQ(file.find("b")->file, folder_ / "m-2.safetensors");
  EXPECT_EQ(file.metadata().at("format"), "pt");
}

TEST_F(Shards, NameTheFileAtFault) {
  const auto refused = [&](std::string_view map, std::string_view message) {
    write_index(map);
    EXPECT_THAT([&] { Safetensors::load(index_); },
                ThrowsMessage<Error>(HasSubstr(std::string(message))));
  };
  refused(R"({"a":"m-2.safetensors"})",
          "index.json: tensor 'a' is not in its shard 'm-2.safetensors' (at byte 43)");
  refused(R"({"c":"m-1.safetensors"})", "index.json: tensor 'c' is not in its shard");
  refused(R"({"a":"../m-1.safetensors"})",
          "index.json: the shard of a tensor is '../m-1.safetensors', expected the name of a file");
  refused(R"({"a":"/etc/passwd"})", "expected the name of a file beside the index");
  refused(R"({"a":".."})", "expected the name of a file beside the index");
  refused(R"({"a":"none"})", "none: cannot open: No such file");
  refused("[]", "weight_map is an array, expected an object");
  std::filesystem::copy_file(folder_ / "m-1.safetensors", folder_ / "m-3.safetensors");
  refused(R"({"a":"m-1.safetensors","x":"m-3.safetensors"})", "tensor 'a' is in two shards");
  write_file(folder_ / "m-3.safetensors", {});
  refused(R"({"x":"m-3.safetensors"})",
          "m-3.safetensors: a file of 0 bytes has no header length (at byte 0)");
  EXPECT_THAT([] { Safetensors::load("/none"); },
              ThrowsMessage<FileError>(HasSubstr("/none: cannot open")));
}

}  // namespace
}  // namespace rlx
