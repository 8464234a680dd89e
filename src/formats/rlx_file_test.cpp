#include "formats/rlx_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <numeric>

#include "formats/safetensors.h"
#include "onnx_writer.h"
#include "rlx/error.h"
#include "rlx/ops.h"
#include "temporary_folder.h"

namespace rlx {
namespace {

using testing::HasSubstr;

Graph sample() {
  Graph g;
  const Value x = g.input("x", {f32, {"batch", 2}});
  const Value w = g.param("w", Tensor({2}, {3.F, 4.F}));
  std::vector<float> table(128);
  std::iota(table.begin(), table.end(), 0.F);
  const Value large = g.constant(Tensor({64, 2}, std::span<const float>(table)));
  g.output("y", slice_axis(large, 0, 0, 1) + x * w);
  g.metadata["author"] = "somebody";
  return g;
}

TEST(RlxFile, ComesBackTheSame) {
  const TemporaryFolder folder = {};
  const std::string path = folder / "graph.rlx";
  const Graph g = sample();
  save(g, path);
  for (const bool keep_mapped : {false, true}) {
    const Graph again = load(path, {.dims = {}, .keep_mapped = keep_mapped});
    std::vector<Tensor> blobs;
    std::vector<Tensor> expected_blobs;
    EXPECT_EQ(to_string(again, &blobs), to_string(g, &expected_blobs));
    ASSERT_EQ(blobs.size(), 1U);
    EXPECT_TRUE(std::ranges::equal(blobs[0].bytes(), expected_blobs[0].bytes()));
    ASSERT_NE(again.data_of("w"), nullptr);
    EXPECT_EQ(again.data_of("w")->values<float>()[1], 4.F);
    EXPECT_EQ(again.metadata, g.metadata);
  }
}

std::string failure(const std::string& path) {
  try {
    (void)load(path);
  } catch (const Error& error) {
    EXPECT_EQ(error.file(), path);
    return error.what();
  }
  return "no error";
}

TEST(RlxFile, WhatIsNoGraphIsAnErrorThatNamesTheFile) {
  const TemporaryFolder folder = {};
  const std::string path = folder / "graph.rlx";
  save_safetensors(path, {}, {});
  EXPECT_THAT(failure(path), HasSubstr("no 'rlx.format'"));
  save_safetensors(path, {}, {{"rlx.format", "2"}, {"rlx.graph", ""}});
  EXPECT_THAT(failure(path), HasSubstr("format '2'"));
  save_safetensors(path, {}, {{"rlx.format", "1"}, {"rlx.graph", "graph { frobnicate }"}});
  EXPECT_NE(failure(path), "no error");
  EXPECT_NE(failure(folder / "missing.rlx"), "no error");
}

TEST(Load, TheFirstBytesDecideWhereTheNameDoesNot) {
  const TemporaryFolder folder = {};
  save(sample(), folder / "graph.rlx");
  std::filesystem::rename(folder / "graph.rlx", folder / "graph");
  EXPECT_EQ(load(folder / "graph").params().size(), 1U);
  std::ofstream(folder / "model", std::ios::binary)
      << onnx::test::model({.nodes = {onnx::test::node("Relu", {"x"}, {"y"})},
                            .inputs = {onnx::test::value("x", onnx::test::kFloat, {"n"})},
                            .outputs = {onnx::test::value("y", onnx::test::kFloat, {"n"})}});
  EXPECT_EQ(load(folder / "model").inputs().size(), 1U);
  std::ofstream(folder / "text") << "hello";
  EXPECT_THAT(failure(folder / "text"), HasSubstr("neither an ONNX model nor an RLX graph"));
}

}  // namespace
}  // namespace rlx
