#pragma once

#include <cstdint>
#include <protozero/pbf_writer.hpp>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

/// Writes the messages of onnx.proto, so that tests can say what a file holds. Every function
/// returns one message as bytes.
namespace rlx::onnx::test {

using Strings = std::vector<std::string>;
using Ints = std::vector<std::int64_t>;

inline std::span<const std::byte> as_bytes(const std::string& text) {
  return std::as_bytes(std::span(text));
}

template <class T>
std::string raw(const std::vector<T>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T)};
}

inline constexpr int kFloat = 1, kInt32 = 6, kInt64 = 7, kString = 8, kBool = 9;

inline std::string tensor(std::string_view name, int data_type, const Ints& dims,
                          const std::string& raw_data) {
  std::string out;
  protozero::pbf_writer w(out);
  w.add_packed_int64(1, dims.begin(), dims.end());
  w.add_int32(2, data_type);
  w.add_string(8, std::string(name));
  w.add_bytes(9, raw_data);
  return out;
}
inline std::string floats(std::string_view name, const Ints& dims, const std::vector<float>& v) {
  return tensor(name, kFloat, dims, raw(v));
}
inline std::string ints(std::string_view name, const Ints& dims, const Ints& v) {
  return tensor(name, kInt64, dims, raw(v));
}
/// A list, as shapes and axes are.
inline std::string ints(std::string_view name, const Ints& v) {
  return ints(name, {static_cast<std::int64_t>(v.size())}, v);
}

inline std::string attribute(std::string_view name, std::int64_t value) {
  std::string out;
  protozero::pbf_writer w(out);
  w.add_string(1, std::string(name));
  w.add_int64(3, value);
  w.add_int32(20, 2);
  return out;
}
inline std::string attribute(std::string_view name, int value) {
  return attribute(name, std::int64_t{value});
}
inline std::string attribute(std::string_view name, float value) {
  std::string out;
  protozero::pbf_writer w(out);
  w.add_string(1, std::string(name));
  w.add_float(2, value);
  w.add_int32(20, 1);
  return out;
}
inline std::string attribute(std::string_view name, const char* value) {
  std::string out;
  protozero::pbf_writer w(out);
  w.add_string(1, std::string(name));
  w.add_bytes(4, std::string(value));
  w.add_int32(20, 3);
  return out;
}
inline std::string attribute(std::string_view name, const Ints& values) {
  std::string out;
  protozero::pbf_writer w(out);
  w.add_string(1, std::string(name));
  for (const std::int64_t v : values) w.add_int64(8, v);  // not packed, as protobuf 2 writes them
  w.add_int32(20, 7);
  return out;
}
inline std::string tensor_attribute(std::string_view name, const std::string& tensor) {
  std::string out;
  protozero::pbf_writer w(out);
  w.add_string(1, std::string(name));
  w.add_message(5, tensor);
  w.add_int32(20, 4);
  return out;
}
inline std::string graph_attribute(std::string_view name, const std::string& graph) {
  std::string out;
  protozero::pbf_writer w(out);
  w.add_string(1, std::string(name));
  w.add_message(6, graph);
  w.add_int32(20, 5);
  return out;
}
/// Within a function: the attribute `of` of its call.
inline std::string attribute_of_call(std::string_view name, std::string_view of, int type) {
  std::string out;
  protozero::pbf_writer w(out);
  w.add_string(1, std::string(name));
  w.add_int32(20, type);
  w.add_string(21, std::string(of));
  return out;
}

inline std::string node(std::string_view op_type, const Strings& inputs, const Strings& outputs,
                        const Strings& attributes = {}, std::string_view domain = {},
                        std::string_view name = {}) {
  std::string out;
  protozero::pbf_writer w(out);
  for (const auto& i : inputs) w.add_string(1, i);
  for (const auto& o : outputs) w.add_string(2, o);
  if (!name.empty()) w.add_string(3, std::string(name));
  w.add_string(4, std::string(op_type));
  for (const auto& a : attributes) w.add_message(5, a);
  if (!domain.empty()) w.add_string(7, std::string(domain));
  return out;
}

/// `dims`: a number is an extent, "" an unnamed dimension, anything else a symbol.
inline std::string value(std::string_view name, int data_type, const Strings& dims) {
  std::string shape;
  protozero::pbf_writer s(shape);
  for (const std::string& d : dims) {
    std::string dim;
    protozero::pbf_writer w(dim);
    if (!d.empty() && d.find_first_not_of("-0123456789") == std::string::npos) {
      w.add_int64(1, std::stoll(d));
    } else if (!d.empty()) {
      w.add_string(2, d);
    }
    s.add_message(1, dim);
  }
  std::string tensor_type;
  protozero::pbf_writer t(tensor_type);
  t.add_int32(1, data_type);
  t.add_message(2, shape);
  std::string type;
  protozero::pbf_writer(type).add_message(1, tensor_type);
  std::string out;
  protozero::pbf_writer w(out);
  w.add_string(1, std::string(name));
  w.add_message(2, type);
  return out;
}

struct GraphParts {
  Strings nodes = {}, initializers = {}, inputs = {}, outputs = {};
};
inline std::string graph(const GraphParts& parts) {
  std::string out;
  protozero::pbf_writer w(out);
  for (const auto& n : parts.nodes) w.add_message(1, n);
  w.add_string(2, "g");
  for (const auto& t : parts.initializers) w.add_message(5, t);
  for (const auto& v : parts.inputs) w.add_message(11, v);
  for (const auto& v : parts.outputs) w.add_message(12, v);
  return out;
}

inline std::string opset(std::string_view domain, std::int64_t version) {
  std::string out;
  protozero::pbf_writer w(out);
  w.add_string(1, std::string(domain));
  w.add_int64(2, version);
  return out;
}

inline std::string model_of(const std::string& graph, std::int64_t version = 17,
                            const Strings& functions = {}) {
  std::string out;
  protozero::pbf_writer w(out);
  w.add_int64(1, 8);
  w.add_string(2, "test");
  w.add_message(7, graph);
  w.add_message(8, opset("", version));
  for (const auto& f : functions) w.add_message(25, f);
  return out;
}
inline std::string model(const GraphParts& parts, std::int64_t version = 17) {
  return model_of(graph(parts), version);
}

}  // namespace rlx::onnx::test
