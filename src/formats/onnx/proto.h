#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

/// The messages of an ONNX file (onnx.proto), as far as RLX reads them. Texts and bytes are views
/// into the file, which must outlive them.
namespace rlx::onnx {

using Bytes = std::span<const std::byte>;
using TextPair = std::pair<std::string_view, std::string_view>;

/// Of messages, and so of subgraphs.
inline constexpr int kMaxDepth = 64;

struct TensorProto {
  std::string_view name;
  std::int32_t data_type = 0;
  std::vector<std::int64_t> dims;
  Bytes message;  ///< all of it; `*_data` fields are decoded from here when they are needed
  std::optional<Bytes> raw_data;
  bool is_external = false;
  std::vector<TextPair> external_data;
  std::uint64_t offset = 0;  ///< of `message` in the file
};

struct GraphProto;

struct AttributeProto {
  enum class Type : std::int32_t {
    undefined = 0,
    real = 1,
    integer = 2,
    text = 3,
    tensor = 4,
    graph = 5,
    reals = 6,
    integers = 7,
    texts = 8,
    tensors = 9,
    graphs = 10,
    sparse_tensor = 11,
  };
  std::string_view name;
  std::string_view ref_attr_name;  ///< within a function: the attribute of its call
  Type type = Type::undefined;
  float real = 0;
  std::int64_t integer = 0;
  std::string_view text;
  std::vector<float> reals;
  std::vector<std::int64_t> integers;
  std::vector<std::string_view> texts;
  std::vector<TensorProto> tensors;  ///< the one of `tensor` too
  std::vector<GraphProto> graphs;    ///< the one of `graph` too
  std::uint64_t offset = 0;
};

struct NodeProto {
  std::vector<std::string_view> inputs, outputs;
  std::string_view name, op_type, domain;
  std::vector<AttributeProto> attributes;
  std::uint64_t offset = 0;
};

struct DimensionProto {
  std::optional<std::int64_t> value;
  std::string_view param;
};

struct ValueInfoProto {
  enum class Kind : std::uint8_t { none, tensor, other };
  std::string_view name;
  Kind kind = Kind::none;
  std::int32_t elem_type = 0;
  std::optional<std::vector<DimensionProto>> shape;
  std::uint64_t offset = 0;
};

struct GraphProto {
  std::string_view name;
  std::vector<NodeProto> nodes;
  std::vector<TensorProto> initializers;
  std::vector<ValueInfoProto> inputs, outputs;
  std::size_t sparse_initializers = 0;
  std::uint64_t offset = 0;
};

struct OperatorSetId {
  std::string_view domain;
  std::int64_t version = 0;
};

struct FunctionProto {
  std::string_view name, domain;
  std::vector<std::string_view> inputs, outputs, attributes;
  std::vector<AttributeProto> default_attributes;
  std::vector<NodeProto> nodes;
  std::vector<OperatorSetId> opset_imports;
};

struct ModelProto {
  std::int64_t ir_version = 0;
  std::string_view producer_name, producer_version, domain, doc_string;
  std::int64_t model_version = 0;
  std::vector<OperatorSetId> opset_imports;
  std::optional<GraphProto> graph;
  std::vector<FunctionProto> functions;
  std::vector<TextPair> metadata;
  Bytes file;
};

/// Decodes a model. Unknown fields are skipped. Whatever is not well-formed is a `FormatError` with
/// its byte offset: lengths past the end, nesting deeper than `kMaxDepth`, a file without a graph.
/// Memory is linear in the file, and weights are not copied.
ModelProto parse_model(Bytes file);

/// The elements in a tensor's `float_data`, `int32_data` … fields, of which ONNX prescribes one for
/// each dtype. Appends to `out` as little-endian elements of `element_bytes` bytes; integers keep
/// their low bits. `field` is the field's number, `file` the file the tensor is in.
void decode_typed_data(const TensorProto& tensor, Bytes file, std::uint32_t field,
                       std::size_t element_bytes, std::vector<std::byte>& out);
std::vector<std::string_view> decode_strings(const TensorProto& tensor, Bytes file);

}  // namespace rlx::onnx
