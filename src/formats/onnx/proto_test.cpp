#include "formats/onnx/proto.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "onnx_writer.h"
#include "rlx/error.h"

namespace rlx::onnx {
namespace {

using namespace test;  // NOLINT(google-build-using-namespace): the writer's vocabulary
using testing::ElementsAre;
using testing::HasSubstr;

std::string small_model() {
  return model({.nodes = {node("Add", {"x", "w"}, {"y"}, {attribute("axis", 3)}, "", "sum")},
                .initializers = {floats("w", {2}, {1.5F, -2})},
                .inputs = {value("x", kFloat, {"batch", "", "2"})},
                .outputs = {value("y", kFloat, {"batch", "", "2"})}});
}

/// The message of the FormatError that parsing throws; its offset must lie in the file.
std::string failure(const std::string& file) {
  try {
    (void)parse_model(as_bytes(file));
  } catch (const FormatError& error) {
    EXPECT_LE(error.offset(), file.size());
    return error.what();
  }
  ADD_FAILURE() << "no error";
  return {};
}

TEST(OnnxProto, ReadsAModel) {
  const std::string file = small_model();
  const ModelProto m = parse_model(as_bytes(file));
  EXPECT_EQ(m.ir_version, 8);
  EXPECT_EQ(m.producer_name, "test");
  ASSERT_EQ(m.opset_imports.size(), 1U);
  EXPECT_EQ(m.opset_imports[0].version, 17);
  const NodeProto& n = m.graph->nodes.at(0);
  EXPECT_EQ(n.name, "sum");
  EXPECT_EQ(n.op_type, "Add");
  EXPECT_THAT(n.inputs, ElementsAre("x", "w"));
  EXPECT_EQ(n.attributes.at(0).integer, 3);
  const auto& dims = *m.graph->inputs.at(0).shape;
  EXPECT_EQ(dims.at(0).param, "batch");
  EXPECT_TRUE(dims.at(1).param.empty() && !dims.at(1).value);
  EXPECT_EQ(dims.at(2).value, 2);
  const TensorProto& w = m.graph->initializers.at(0);
  EXPECT_THAT(w.dims, ElementsAre(2));
  EXPECT_EQ(w.raw_data->size(), 8U);
  EXPECT_EQ(file.compare(w.offset, w.message.size(),
                         reinterpret_cast<const char*>(w.message.data()), w.message.size()),
            0);
}

TEST(OnnxProto, UnknownFieldsAndWireTypesAreSkipped) {
  std::string file = small_model();
  protozero::pbf_writer w(file);
  w.add_string(999, "later");
  w.add_fixed64(1000, 5);
  w.add_string(1, "ir_version as text");
  EXPECT_EQ(parse_model(as_bytes(file)).ir_version, 8);
}

TEST(OnnxProto, EveryTruncationIsAnErrorOrAShorterModel) {
  const std::string file = small_model();
  std::size_t errors = 0;
  for (std::size_t size = 0; size < file.size(); ++size) {
    // A copy of exactly that size, so that a sanitizer sees any over-read.
    const std::vector<char> cut(file.begin(), file.begin() + static_cast<std::ptrdiff_t>(size));
    try {
      (void)parse_model(std::as_bytes(std::span(cut)));
    } catch (const FormatError& error) {
      EXPECT_LE(error.offset(), size);
      ++errors;
    }
  }
  EXPECT_GT(errors, file.size() * 9 / 10);
}

TEST(OnnxProto, NestingIsBounded) {
  std::string inner = graph({});
  for (int depth = 0; depth < 100; ++depth) {
    inner = graph({.nodes = {node("If", {"p"}, {"y"}, {graph_attribute("then_branch", inner)})}});
  }
  EXPECT_THAT(failure(model_of(inner)), HasSubstr("nested deeper than 64"));
}

TEST(OnnxProto, ALengthPastTheEndSaysWhere) {
  const std::string file = "\x3a\x7f\x0a";  // graph of 127 bytes, one follows
  EXPECT_THAT(failure(file), HasSubstr("longer than the message"));
  EXPECT_THAT(failure("\x0b"), HasSubstr("wire type"));
  EXPECT_THAT(failure(std::string("\x00\x00", 2)), HasSubstr("invalid number"));
  EXPECT_THAT(failure("\x08" + std::string(11, '\xff')), HasSubstr("more than ten bytes"));
  EXPECT_THAT(failure(""), HasSubstr("no graph"));
}

}  // namespace
}  // namespace rlx::onnx
