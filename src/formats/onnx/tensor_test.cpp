#include "formats/onnx/tensor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "onnx_writer.h"
#include "rlx/error.h"
#include "temporary_folder.h"

namespace rlx::onnx {
namespace {

using namespace test;  // NOLINT(google-build-using-namespace): the writer's vocabulary
using testing::ElementsAre;
using testing::HasSubstr;

/// The one initializer of a model, loaded. The model's bytes stand in `file`.
Tensor load(const std::string& tensor_message, std::string& file, const std::string& folder = {},
            bool keep_mapped = false) {
  file = model({.initializers = {tensor_message}});
  const ModelProto m = parse_model(as_bytes(file));
  const auto owner = std::make_shared<int>(0);
  TensorLoader loader(m.file, owner, nullptr, folder, keep_mapped);
  return loader.load(m.graph->initializers.at(0));
}
Tensor load(const std::string& tensor_message) {
  std::string file;
  return load(tensor_message, file);
}

std::string typed(int data_type, const Ints& dims, const auto& add_elements) {
  std::string out;
  protozero::pbf_writer w(out);
  w.add_packed_int64(1, dims.begin(), dims.end());
  w.add_int32(2, data_type);
  add_elements(w);
  return out;
}

std::string external(const std::vector<std::pair<std::string, std::string>>& entries) {
  return typed(kFloat, {2}, [&](protozero::pbf_writer& w) {
    for (const auto& [key, text] : entries) {
      std::string entry;
      protozero::pbf_writer e(entry);
      e.add_string(1, key);
      e.add_string(2, text);
      w.add_message(13, entry);
    }
    w.add_int32(14, 1);
  });
}

TEST(OnnxTensor, RawData) {
  const Tensor t = load(floats("w", {2, 1}, {1.5F, -2}));
  EXPECT_THAT(t.dims(), ElementsAre(2, 1));
  EXPECT_THAT(t.values<float>(), ElementsAre(1.5F, -2.F));
}

TEST(OnnxTensor, TypedDataPackedAndNot) {
  const std::vector<std::int32_t> small = {-1, 300};
  EXPECT_THAT(
      load(typed(3, {2}, [&](auto& w) { w.add_packed_int32(5, small.begin(), small.end()); }))
          .values<std::int8_t>(),
      ElementsAre(-1, 44));  // 300 modulo 2^8
  EXPECT_THAT(load(typed(kInt64, {2},
                         [&](auto& w) {
                           w.add_int64(7, -5);
                           w.add_int64(7, std::int64_t{1} << 40);
                         }))
                  .values<std::int64_t>(),
              ElementsAre(-5, std::int64_t{1} << 40));
  const std::vector<float> reals = {0.25F, 2};
  EXPECT_THAT(
      load(typed(kFloat, {2}, [&](auto& w) { w.add_packed_float(4, reals.begin(), reals.end()); }))
          .values<float>(),
      ElementsAre(0.25F, 2.F));
  const std::vector<double> doubles = {0.125};
  EXPECT_THAT(
      load(typed(11, {}, [&](auto& w) { w.add_packed_double(10, doubles.begin(), doubles.end()); }))
          .values<double>(),
      ElementsAre(0.125));
  const Tensor half = load(typed(10, {1}, [&](auto& w) { w.add_int32(5, 0x3c00); }));
  EXPECT_EQ(half.dtype(), DType::f16);
  EXPECT_THAT(half.bytes(), ElementsAre(std::byte{0x00}, std::byte{0x3c}));
  const Tensor texts = load(typed(kString, {2}, [&](auto& w) {
    w.add_bytes(6, std::string("a"));
    w.add_bytes(6, std::string("bc"));
  }));
  EXPECT_THAT(texts.strings(), ElementsAre("a", "bc"));
}

TEST(OnnxTensor, EveryDataTypeHasItsDType) {
  for (std::int32_t number = 1; number <= 26; ++number)
    EXPECT_NO_THROW((void)dtype_from(number, 0)) << number;
  EXPECT_THROW((void)dtype_from(0, 7), FormatError);
  EXPECT_THROW((void)dtype_from(27, 7), FormatError);
  const Tensor nibbles = load(tensor("w", 22, {2, 2}, "\x21\x43"));
  EXPECT_EQ(nibbles.dtype(), DType::i4);
  EXPECT_EQ(nibbles.bytes().size(), 2U);
  EXPECT_THROW((void)load(tensor("w", 22, {1, 3}, "\x21\x43")), Unsupported);
}

TEST(OnnxTensor, AnAlignedWeightIsAViewIfMappingsAreKept) {
  std::string file;
  const std::string message = floats("w", {2}, {3, 4});
  const Tensor view = load(message, file, "", true);
  const auto* data = reinterpret_cast<const char*>(view.bytes().data());
  const bool inside = data >= file.data() && data < file.data() + file.size();
  // Where the weight landed decides; both ways it reads the same.
  EXPECT_EQ(inside, reinterpret_cast<std::uintptr_t>(file.data() + file.find(raw<float>({3, 4}))) %
                            sizeof(float) ==
                        0);
  EXPECT_THAT(view.values<float>(), ElementsAre(3.F, 4.F));
  const Tensor copy = load(message, file, "", false);
  data = reinterpret_cast<const char*>(copy.bytes().data());
  EXPECT_FALSE(data >= file.data() && data < file.data() + file.size());
}

TEST(OnnxTensor, WrongSizesAreFormatErrors) {
  const auto failure = [](const std::string& message) -> std::string {
    try {
      (void)load(message);
    } catch (const FormatError& error) {
      return error.what();
    }
    return "no error";
  };
  EXPECT_THAT(failure(tensor("w", kFloat, {3}, "12345678")),
              HasSubstr("tensor 'w': f32 [3] takes 12 bytes, found 8"));
  EXPECT_THAT(failure(tensor("w", kFloat, {-3}, "")), HasSubstr("negative extent -3"));
  EXPECT_THAT(failure(tensor("w", kFloat, {std::int64_t{1} << 40, std::int64_t{1} << 40}, "")),
              HasSubstr("overflows"));
  EXPECT_THAT(failure(typed(kFloat, {std::int64_t{1} << 40}, [](auto&) {})), HasSubstr("found 0"));
  EXPECT_THAT(failure(tensor("w", kBool, {1}, "\x02")), HasSubstr("a bool is 2"));
  EXPECT_THAT(failure(typed(kString, {2}, [](auto&) {})), HasSubstr("takes 2 strings, found 0"));
}

TEST(OnnxTensor, ExternalDataStaysInTheFolder) {
  const TemporaryFolder folder = {};
  std::filesystem::create_directory(folder / "model");
  const std::string inside = folder / "model";
  const std::vector<float> values = {7, 1, 2, 8};
  std::ofstream(inside + "/weights.bin", std::ios::binary) << raw(values);
  std::ofstream(folder / "secret.bin", std::ios::binary) << raw(values);
  std::filesystem::create_symlink(folder / "secret.bin", inside + "/link.bin");

  std::string file;
  const Tensor part =
      load(external({{"location", "weights.bin"}, {"offset", "4"}, {"length", "8"}}), file, inside,
           true);
  EXPECT_THAT(part.values<float>(), ElementsAre(1.F, 2.F));
  for (const char* outside :
       {"../secret.bin", "link.bin", "/etc/hostname", "", "a/../../secret.bin"})
    EXPECT_ANY_THROW((void)load(external({{"location", outside}}), file, inside)) << outside;
  EXPECT_THROW((void)load(external({{"location", "weights.bin"}, {"offset", "12"}}), file, inside),
               FormatError);
  EXPECT_THROW((void)load(external({{"location", "weights.bin"}, {"offset", "-1"}}), file, inside),
               FormatError);
  EXPECT_THROW((void)load(external({{"location", "weights.bin"}, {"length", "4"}}), file, inside),
               FormatError);
  EXPECT_THROW((void)load(external({{"offset", "0"}}), file, inside), FormatError);
  EXPECT_THROW((void)load(external({{"location", "weights.bin"}}), file, ""), InvalidArgument);
  EXPECT_THROW((void)load(external({{"location", "missing.bin"}}), file, inside), FileError);
}

}  // namespace
}  // namespace rlx::onnx
