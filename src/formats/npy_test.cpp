#include "formats/npy.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <complex>
#include <cstring>

#include "base/os_file.h"
#include "rlx/error.h"
#include "temporary_folder.h"

namespace rlx {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::ThrowsMessage;

std::vector<std::byte> bytes_of(std::string_view text) {
  const auto bytes = std::as_bytes(std::span(text.data(), text.size()));
  return {bytes.begin(), bytes.end()};
}

std::string file_of(std::string_view dict, std::string_view data) {
  std::string out("\x93NUMPY\1\0", 8);
  out += {static_cast<char>(dict.size() & 0xff), static_cast<char>(dict.size() >> 8)};
  out += dict;
  out += data;
  return out;
}

std::string dict_of(std::string_view descr, std::string_view shape) {
  return fmt::format("{{'descr': {}, 'fortran_order': False, 'shape': {}, }}", descr, shape);
}

Tensor parse(std::string_view text) {
  auto bytes = std::make_shared<std::vector<std::byte>>(bytes_of(text));
  return parse_npy(*bytes, bytes);
}

// Made by NumPy: tests/python/write_format_samples.py.
Tensor sample(const std::string& name) {
  return load_npy(RLX_SOURCE_DIR "/tests/corpora/npy/" + name + ".npy");
}

TEST(Npy, ReadsWhatNumpyWrote) {
  for (const std::string name :
       {"c_order", "fortran_order", "big_endian", "version_2", "version_3"}) {
    const Tensor t = sample(name);
    EXPECT_EQ(t.dims(), (Tensor::Dims{2, 3, 2})) << name;
    std::vector<std::int32_t> wanted(12);
    for (int i = 0; i < 12; ++i) wanted[static_cast<std::size_t>(i)] = i * 1000003;
    EXPECT_THAT(t.values<std::int32_t>(), testing::ElementsAreArray(wanted)) << name;
  }
  const Tensor flag = sample("bool");
  EXPECT_THAT(flag.values<bool>(), ElementsAre(true, false));
  const Tensor scalar = sample("scalar");
  EXPECT_EQ(scalar.dims(), Tensor::Dims{});
  EXPECT_EQ(scalar.values<double>()[0], 0.1);
  EXPECT_EQ(sample("empty").dims(), (Tensor::Dims{0, 3}));
  const Tensor c = sample("complex_big_endian");
  EXPECT_EQ(c.dtype(), DType::c128);
  double parts[2];
  std::memcpy(parts, c.bytes().data(), 16);
  EXPECT_THAT(parts, ElementsAre(1.5, -2.5));
  EXPECT_THAT(sample("text").strings(), ElementsAre("é", "", "漢字🙂"));
  EXPECT_THAT(sample("text_big_endian").strings(), ElementsAre("é", "", "漢字🙂"));
  EXPECT_THAT(sample("text_bytes").strings(), ElementsAre("ab", "c"));
  EXPECT_EQ(sample("half").dtype(), f16);
}

TEST(Npy, WritesByteForByteWhatNumpyWrites) {
  for (const std::string name : {"c_order", "bool", "scalar", "empty", "text", "half"}) {
    EXPECT_EQ(encode_npy(sample(name)),
              read_file(RLX_SOURCE_DIR "/tests/corpora/npy/" + name + ".npy", 10000))
        << name;
  }
}

TEST(Npy, SavesAndLoads) {
  const TemporaryFolder folder;
  save_npy(folder / "a.npy", Tensor({1, 2}, {1.0F, 2.0F}));
  const Tensor t = load_npy(folder / "a.npy");
  EXPECT_EQ(t.dims(), (Tensor::Dims{1, 2}));
  EXPECT_THAT(t.values<float>(), ElementsAre(1, 2));
}

TEST(Npy, WidensBf16AndRefusesOtherDtypesWithoutAName) {
  Tensor t(bf16, {2});
  const std::uint16_t bits[] = {0x3f80, 0xc049};
  std::memcpy(t.bytes_mutable().data(), bits, 4);
  const std::vector<std::byte> file = encode_npy(t);
  const Tensor read = parse_npy(file, nullptr);
  EXPECT_THAT(read.values<float>(), ElementsAre(1.0F, -3.140625F));
  EXPECT_THAT([] { encode_npy(Tensor(DType::f8e4m3, {1})); },
              ThrowsMessage<Unsupported>("npy has no name for dtype f8e4m3, cast it first"));
  EXPECT_THROW(encode_npy(Tensor::of_strings({1}, {std::string("a\0", 2)})), InvalidArgument);
  EXPECT_THROW(encode_npy(Tensor::of_strings({1}, {"\xff"})), InvalidArgument);
}

TEST(Npy, CopiesOnlyWhatIsNotAligned) {
  const std::string data("\0\0\x80\x3f", 4);
  for (std::size_t pad = 0; pad < 4; ++pad) {
    const std::string text = file_of(dict_of("'<f4'", "(1,)") + std::string(pad, ' '), data);
    const auto bytes = std::make_shared<std::vector<std::byte>>(bytes_of(text));
    const Tensor t = parse_npy(*bytes, bytes);
    EXPECT_EQ(t.values<float>()[0], 1.0F);
    const bool shared = t.bytes().data() == bytes->data() + bytes->size() - 4;
    EXPECT_EQ(shared, (text.size() - 4) % 4 == 0);
  }
}

TEST(Npy, TakesHeadersThatPythonWouldTake) {
  const Tensor t =
      parse(file_of("\n{ \"shape\" :(2L , 1L),\t'fortran_order':True,'descr':'|u1'}\n", "ab"));
  EXPECT_EQ(t.dims(), (Tensor::Dims{2, 1}));
}

struct Bad {
  std::string text;
  std::uint64_t offset;
  std::string message;
};

// The header of `file_of` begins at byte 10.
TEST(Npy, RefusesHostileFilesWithTheirOffset) {
  const std::string good = dict_of("'|u1'", "(2,)");
  std::string many = "(";
  for (int i = 0; i < 65; ++i) many += "1,";
  many += ')';
  const std::vector<Bad> cases = {
      {"", 0, "does not begin like an npy file"},
      {"PK\3\4", 0, "does not begin like an npy file"},
      {"\x93NUMPY", 6, "ends before its version"},
      {"\x93NUMPY\7\1", 6, "npy version 7 is unknown, expected 1 to 3"},
      {"\x93NUMPY\2\1x", 9, "ends before its header length"},
      {std::string("\x93NUMPY\2\0\xff\xff\xff\xff{}", 14), 8, "4294967295 bytes, 2 follow"},
      {file_of("", ""), 10, "found its end in the header, expected '{'"},
      {file_of("{}", ""), 10, "the header has no key 'descr'"},
      {file_of("{'descr': '|u1'}", ""), 10, "the header has no key 'fortran_order'"},
      {file_of("{'x': 1}", ""), 11, "the header has the unknown key 'x'"},
      {file_of("{'shape': (), 'shape': ()}", ""), 24, "key 'shape' is given twice"},
      {file_of("{'descr", ""), 11, "expected a string that ends"},
      {file_of("{'shape': (1", ""), 22, "expected ',' or ')'"},
      {file_of("{'shape': (1.5,)", ""), 22, "found '.' in the header, expected ',' or ')'"},
      {file_of("{'shape': (-1,)", ""), 21, "expected an extent from 0"},
      {file_of("{'shape': (9223372036854775808,)", ""), 21, "expected an extent from 0"},
      {file_of("{'fortran_order': 1}", ""), 28, "expected True or False"},
      {file_of(good + "x", "ab"), 10 + good.size(), "expected the end of the header"},
      {file_of(dict_of("'|u1'", "(2)"), "ab"), 60, "expected a tuple"},
      {file_of(dict_of("'|u1'", many), "a"), 189, "expected at most 64 axes"},
      {file_of(dict_of("'<f8'", "(4294967296, 4294967296)"), ""), 60, "overflows"},
      {file_of(dict_of("'<U4294967296'", "(4294967296,)"), ""), 69, "overflows"},
      {file_of(good, "a"), 10 + good.size() + 1, "takes 2 bytes, 1 follow the header"},
      {file_of(good, "abc"), 10 + good.size() + 2, "takes 2 bytes, 3 follow the header"},
      {file_of(dict_of("'|b1'", "(2,)"), "\1\2"), 68, "a bool is 2"},
      {file_of(dict_of("'<U1'", "(1,)"), std::string("\0\xd8\0\0", 4)), 67,
       "0xd800 is no character"},
  };
  for (const Bad& bad : cases) {
    try {
      parse(bad.text);
      ADD_FAILURE() << bad.message;
    } catch (const FormatError& error) {
      EXPECT_THAT(error.what(), HasSubstr(bad.message));
      EXPECT_EQ(error.offset(), bad.offset) << error.what();
    }
  }
}

TEST(Npy, NamesWhatHasNoCounterpart) {
  for (const std::string descr : {"'|O'", "'<M8[ns]'", "'|V2'", "'<f16'", "'<U0'", "'<i3'", "'i4'",
                                  "'<U99999999999999999999'", "'<'", "''"}) {
    EXPECT_THAT([&] { parse(file_of(dict_of(descr, "(1,)"), "12345678")); },
                ThrowsMessage<Unsupported>(HasSubstr("npy dtype " + descr)));
  }
  EXPECT_THAT([] { parse(file_of(dict_of("[('x', '<i4')]", "(1,)"), "1234")); },
              ThrowsMessage<Unsupported>(HasSubstr("structured")));
}

TEST(Npy, RefusesEveryTruncationAndNamesTheFile) {
  const std::vector<std::byte> good = encode_npy(Tensor({2}, {1.0F, 2.0F}));
  for (std::size_t n = 0; n < good.size(); ++n) {
    EXPECT_THROW(parse_npy(std::span(good).first(n), nullptr), FormatError) << n;
  }
  const TemporaryFolder folder;
  write_file(folder / "a.npy", std::span(good).first(good.size() - 1));
  EXPECT_THAT([&] { load_npy(folder / "a.npy"); },
              ThrowsMessage<FormatError>(HasSubstr(
                  "a.npy: [2] of '<f4' takes 8 bytes, 7 follow the header (at byte 135)")));
}

}  // namespace
}  // namespace rlx
