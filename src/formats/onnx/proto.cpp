#include "formats/onnx/proto.h"

#include <fmt/format.h>

#include <cstring>
#include <protozero/pbf_reader.hpp>

#include "rlx/error.h"

namespace rlx::onnx {
namespace {

using protozero::pbf_wire_type;
using Reader = protozero::pbf_reader;
using View = protozero::data_view;

constexpr std::uint32_t varint(std::uint32_t tag) {
  return protozero::tag_and_type(tag, pbf_wire_type::varint);
}
constexpr std::uint32_t bytes(std::uint32_t tag) {
  return protozero::tag_and_type(tag, pbf_wire_type::length_delimited);
}
constexpr std::uint32_t fixed32(std::uint32_t tag) {
  return protozero::tag_and_type(tag, pbf_wire_type::fixed32);
}
constexpr std::uint32_t fixed64(std::uint32_t tag) {
  return protozero::tag_and_type(tag, pbf_wire_type::fixed64);
}

std::string_view text_of(View view) { return {view.data(), view.size()}; }
Bytes bytes_of(View view) { return {reinterpret_cast<const std::byte*>(view.data()), view.size()}; }
View view_of(Bytes b) { return {reinterpret_cast<const char*>(b.data()), b.size()}; }

/// Walks messages within one file.
class Decoder {
 public:
  explicit Decoder(Bytes file) : file_(file) {}

  std::uint64_t offset_of(const char* at) const {
    return static_cast<std::uint64_t>(reinterpret_cast<const std::byte*>(at) - file_.data());
  }

  /// Calls `field(reader)` for each field of `message`; where it returns false the field is
  /// skipped, as one that is not known.
  template <class F>
  void each_field(View message, F field) {
    if (++depth_ > kMaxDepth) {
      throw FormatError(fmt::format("messages are nested deeper than {}", kMaxDepth),
                        offset_of(message.data()));
    }
    Reader reader(message);
    try {
      while (reader.next()) {
        if (!field(reader)) reader.skip();
      }
    } catch (const protozero::exception& error) {
      throw FormatError(fmt::format("this is not a protobuf message: {}", what_is_wrong(error)),
                        offset_of(reader.data().data()));
    }
    --depth_;
  }

 private:
  static std::string_view what_is_wrong(const protozero::exception& error) {
    if (dynamic_cast<const protozero::end_of_buffer_exception*>(&error) != nullptr)
      return "a field is longer than the message that it is in";
    if (dynamic_cast<const protozero::varint_too_long_exception*>(&error) != nullptr)
      return "an integer has more than ten bytes";
    if (dynamic_cast<const protozero::unknown_pbf_wire_type_exception*>(&error) != nullptr)
      return "a field has an unknown wire type";
    if (dynamic_cast<const protozero::invalid_tag_exception*>(&error) != nullptr)
      return "a field has an invalid number";
    return "the length of a packed field does not fit its elements";
  }

  Bytes file_;
  int depth_ = 0;
};

/// One element, or a packed run of them: readers must take both.
bool read_integers(Reader& r, std::vector<std::int64_t>& out) {
  if (r.wire_type() == pbf_wire_type::varint) {
    out.push_back(r.get_int64());
    return true;
  }
  if (r.wire_type() != pbf_wire_type::length_delimited) return false;
  for (const std::int64_t v : r.get_packed_int64()) out.push_back(v);
  return true;
}

bool read_reals(Reader& r, std::vector<float>& out) {
  if (r.wire_type() == pbf_wire_type::fixed32) {
    out.push_back(r.get_float());
    return true;
  }
  if (r.wire_type() != pbf_wire_type::length_delimited) return false;
  for (const float v : r.get_packed_float()) out.push_back(v);
  return true;
}

TextPair read_pair(Decoder& d, View message) {
  TextPair pair;
  d.each_field(message, [&](Reader& r) {
    switch (r.tag_and_type()) {
      case bytes(1):
        pair.first = text_of(r.get_view());
        return true;
      case bytes(2):
        pair.second = text_of(r.get_view());
        return true;
      default:
        return false;
    }
  });
  return pair;
}

OperatorSetId read_opset(Decoder& d, View message) {
  OperatorSetId id;
  d.each_field(message, [&](Reader& r) {
    switch (r.tag_and_type()) {
      case bytes(1):
        id.domain = text_of(r.get_view());
        return true;
      case varint(2):
        id.version = r.get_int64();
        return true;
      default:
        return false;
    }
  });
  return id;
}

TensorProto read_tensor(Decoder& d, View message) {
  TensorProto t;
  t.message = bytes_of(message);
  t.offset = d.offset_of(message.data());
  d.each_field(message, [&](Reader& r) {
    if (r.tag() == 1) return read_integers(r, t.dims);
    switch (r.tag_and_type()) {
      case varint(2):
        t.data_type = r.get_int32();
        return true;
      case bytes(8):
        t.name = text_of(r.get_view());
        return true;
      case bytes(9):
        t.raw_data = bytes_of(r.get_view());
        return true;
      case bytes(13):
        t.external_data.push_back(read_pair(d, r.get_view()));
        return true;
      case varint(14):
        t.is_external = r.get_int32() == 1;
        return true;
      default:
        return false;
    }
  });
  return t;
}

GraphProto read_graph(Decoder& d, View message);

AttributeProto read_attribute(Decoder& d, View message) {
  AttributeProto a;
  a.offset = d.offset_of(message.data());
  d.each_field(message, [&](Reader& r) {
    if (r.tag() == 7) return read_reals(r, a.reals);
    if (r.tag() == 8) return read_integers(r, a.integers);
    switch (r.tag_and_type()) {
      case bytes(1):
        a.name = text_of(r.get_view());
        return true;
      case fixed32(2):
        a.real = r.get_float();
        return true;
      case varint(3):
        a.integer = r.get_int64();
        return true;
      case bytes(4):
        a.text = text_of(r.get_view());
        return true;
      case bytes(5):
      case bytes(10):
        a.tensors.push_back(read_tensor(d, r.get_view()));
        return true;
      case bytes(6):
      case bytes(11):
        a.graphs.push_back(read_graph(d, r.get_view()));
        return true;
      case bytes(9):
        a.texts.push_back(text_of(r.get_view()));
        return true;
      case varint(20):
        a.type = static_cast<AttributeProto::Type>(r.get_int32());
        return true;
      case bytes(21):
        a.ref_attr_name = text_of(r.get_view());
        return true;
      default:
        return false;
    }
  });
  return a;
}

NodeProto read_node(Decoder& d, View message) {
  NodeProto n;
  n.offset = d.offset_of(message.data());
  d.each_field(message, [&](Reader& r) {
    switch (r.tag_and_type()) {
      case bytes(1):
        n.inputs.push_back(text_of(r.get_view()));
        return true;
      case bytes(2):
        n.outputs.push_back(text_of(r.get_view()));
        return true;
      case bytes(3):
        n.name = text_of(r.get_view());
        return true;
      case bytes(4):
        n.op_type = text_of(r.get_view());
        return true;
      case bytes(5):
        n.attributes.push_back(read_attribute(d, r.get_view()));
        return true;
      case bytes(7):
        n.domain = text_of(r.get_view());
        return true;
      default:
        return false;
    }
  });
  return n;
}

DimensionProto read_dimension(Decoder& d, View message) {
  DimensionProto dim;
  d.each_field(message, [&](Reader& r) {
    switch (r.tag_and_type()) {
      case varint(1):
        dim.value = r.get_int64();
        return true;
      case bytes(2):
        dim.param = text_of(r.get_view());
        return true;
      default:
        return false;
    }
  });
  return dim;
}

void read_tensor_type(Decoder& d, View message, ValueInfoProto& v) {
  d.each_field(message, [&](Reader& r) {
    switch (r.tag_and_type()) {
      case varint(1):
        v.elem_type = r.get_int32();
        return true;
      case bytes(2):
        v.shape.emplace();
        d.each_field(r.get_view(), [&](Reader& s) {
          if (s.tag_and_type() != bytes(1)) return false;
          v.shape->push_back(read_dimension(d, s.get_view()));
          return true;
        });
        return true;
      default:
        return false;
    }
  });
}

ValueInfoProto read_value_info(Decoder& d, View message) {
  ValueInfoProto v;
  v.offset = d.offset_of(message.data());
  d.each_field(message, [&](Reader& r) {
    switch (r.tag_and_type()) {
      case bytes(1):
        v.name = text_of(r.get_view());
        return true;
      case bytes(2):
        d.each_field(r.get_view(), [&](Reader& t) {
          if (t.wire_type() != pbf_wire_type::length_delimited || t.tag() == 6) return false;
          v.kind = ValueInfoProto::Kind::other;
          if (t.tag() != 1) return false;
          v.kind = ValueInfoProto::Kind::tensor;
          read_tensor_type(d, t.get_view(), v);
          return true;
        });
        return true;
      default:
        return false;
    }
  });
  return v;
}

GraphProto read_graph(Decoder& d, View message) {
  GraphProto g;
  g.offset = d.offset_of(message.data());
  d.each_field(message, [&](Reader& r) {
    switch (r.tag_and_type()) {
      case bytes(1):
        g.nodes.push_back(read_node(d, r.get_view()));
        return true;
      case bytes(2):
        g.name = text_of(r.get_view());
        return true;
      case bytes(5):
        g.initializers.push_back(read_tensor(d, r.get_view()));
        return true;
      case bytes(11):
        g.inputs.push_back(read_value_info(d, r.get_view()));
        return true;
      case bytes(12):
        g.outputs.push_back(read_value_info(d, r.get_view()));
        return true;
      case bytes(15):
        ++g.sparse_initializers;
        return false;
      default:
        return false;
    }
  });
  return g;
}

FunctionProto read_function(Decoder& d, View message) {
  FunctionProto f;
  d.each_field(message, [&](Reader& r) {
    switch (r.tag_and_type()) {
      case bytes(1):
        f.name = text_of(r.get_view());
        return true;
      case bytes(4):
        f.inputs.push_back(text_of(r.get_view()));
        return true;
      case bytes(5):
        f.outputs.push_back(text_of(r.get_view()));
        return true;
      case bytes(6):
        f.attributes.push_back(text_of(r.get_view()));
        return true;
      case bytes(7):
        f.nodes.push_back(read_node(d, r.get_view()));
        return true;
      case bytes(9):
        f.opset_imports.push_back(read_opset(d, r.get_view()));
        return true;
      case bytes(10):
        f.domain = text_of(r.get_view());
        return true;
      case bytes(11):
        f.default_attributes.push_back(read_attribute(d, r.get_view()));
        return true;
      default:
        return false;
    }
  });
  return f;
}

bool read_model_field(Decoder& d, Reader& r, ModelProto& m) {
  switch (r.tag_and_type()) {
    case varint(1):
      m.ir_version = r.get_int64();
      return true;
    case bytes(2):
      m.producer_name = text_of(r.get_view());
      return true;
    case bytes(3):
      m.producer_version = text_of(r.get_view());
      return true;
    case bytes(4):
      m.domain = text_of(r.get_view());
      return true;
    case varint(5):
      m.model_version = r.get_int64();
      return true;
    case bytes(6):
      m.doc_string = text_of(r.get_view());
      return true;
    case bytes(7):
      m.graph = read_graph(d, r.get_view());
      return true;
    case bytes(8):
      m.opset_imports.push_back(read_opset(d, r.get_view()));
      return true;
    case bytes(14):
      m.metadata.push_back(read_pair(d, r.get_view()));
      return true;
    case bytes(25):
      m.functions.push_back(read_function(d, r.get_view()));
      return true;
    default:
      return false;
  }
}

template <class T>
void append(std::vector<std::byte>& out, T value, std::size_t count) {
  static_assert(sizeof(T) <= 8);
  std::byte raw[sizeof(T)];
  std::memcpy(raw, &value, sizeof(T));
  out.insert(out.end(), raw, raw + std::min(count, sizeof(T)));
}

void append_packed(Bytes packed, std::size_t width, std::vector<std::byte>& out) {
  if (packed.size() % width != 0) throw protozero::invalid_length_exception{};
  out.insert(out.end(), packed.begin(), packed.end());
}

}  // namespace

ModelProto parse_model(Bytes file) {
  ModelProto model;
  model.file = file;
  Decoder d(file);
  d.each_field(view_of(file), [&](Reader& r) { return read_model_field(d, r, model); });
  if (!model.graph) throw FormatError("an ONNX model has no graph", file.size());
  if (model.opset_imports.empty()) {
    throw FormatError("an ONNX model does not say which operator set it uses", file.size());
  }
  return model;
}

void decode_typed_data(const TensorProto& tensor, Bytes file, std::uint32_t field,
                       std::size_t element_bytes, std::vector<std::byte>& out) {
  Decoder d(file);
  d.each_field(view_of(tensor.message), [&](Reader& r) {
    if (r.tag() != field) return false;
    switch (r.tag_and_type() - (field << 3U)) {
      case varint(0):
        append(out, r.get_uint64(), element_bytes);
        return true;
      case fixed32(0):
        append(out, r.get_fixed32(), element_bytes);
        return true;
      case fixed64(0):
        append(out, r.get_fixed64(), element_bytes);
        return true;
      default:
        break;
    }
    constexpr std::uint32_t kFloats = 4;
    constexpr std::uint32_t kDoubles = 10;
    const Bytes packed = bytes_of(View(r.get_view()));
    if (field == kFloats || field == kDoubles) {
      append_packed(packed, field == kFloats ? 4 : 8, out);
      return true;
    }
    const char* at = view_of(packed).data();
    const char* end = at + packed.size();
    while (at != end) append(out, protozero::decode_varint(&at, end), element_bytes);
    return true;
  });
}

std::vector<std::string_view> decode_strings(const TensorProto& tensor, Bytes file) {
  std::vector<std::string_view> texts;
  Decoder d(file);
  d.each_field(view_of(tensor.message), [&](Reader& r) {
    if (r.tag_and_type() != bytes(6)) return false;
    texts.push_back(text_of(r.get_view()));
    return true;
  });
  return texts;
}

}  // namespace rlx::onnx
