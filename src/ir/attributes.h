#pragma once

#include <bit>
#include <cstdint>
#include <memory>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "ir/text.h"
#include "rlx/graph.h"

namespace rlx {

// How attribute values of each type are compared, hashed, printed and read. An operator lists its
// fields once
// (`fields()`), and everything below follows from that list.

/// One attribute: its name and the member that holds it.
template <class T, class M>
struct Field {
  const char* first;
  M T::*second;
};
template <class T, class M>
Field(const char*, M T::*) -> Field<T, M>;

/// A closed graph that belongs to a node: bodies of `if` and `scan`.
using Subgraph = std::shared_ptr<const Graph>;

inline std::uint64_t hash_mix(std::uint64_t seed, std::uint64_t value) {
  seed ^= value + 0x9e3779b97f4a7c15U + (seed << 6) + (seed >> 2);
  return seed * 0xff51afd7ed558ccdU;
}

std::uint64_t hash_bytes(const void* data, std::size_t size, std::uint64_t seed);

/// Enumerations name their values: `constexpr auto enum_names(Enum)` returns an array of texts,
/// found by ADL.
template <class E>
concept NamedEnum = std::is_enum_v<E> && requires(E e) {
  enum_names(e).size();
};

void write_attribute(TextWriter& out, bool value);
void write_attribute(TextWriter& out, std::int64_t value);
void write_attribute(TextWriter& out, double value);
void write_attribute(TextWriter& out, const std::string& value);
void write_attribute(TextWriter& out, DType value);
void write_attribute(TextWriter& out, Dim value);
void write_attribute(TextWriter& out, const Shape& value);
void write_attribute(TextWriter& out, const Tensor& value);
void write_attribute(TextWriter& out, const TensorType& value);
void write_attribute(TextWriter& out, const Subgraph& value);

void read_attribute(TextReader& in, bool& value);
void read_attribute(TextReader& in, std::int64_t& value);
void read_attribute(TextReader& in, double& value);
void read_attribute(TextReader& in, std::string& value);
void read_attribute(TextReader& in, DType& value);
void read_attribute(TextReader& in, Dim& value);
void read_attribute(TextReader& in, Shape& value);
void read_attribute(TextReader& in, Tensor& value);
void read_attribute(TextReader& in, TensorType& value);
void read_attribute(TextReader& in, Subgraph& value);

inline std::uint64_t hash_attribute(std::int64_t value) {
  return static_cast<std::uint64_t>(value);
}
inline std::uint64_t hash_attribute(bool value) { return value ? 1 : 0; }
inline std::uint64_t hash_attribute(double value) { return std::bit_cast<std::uint64_t>(value); }
inline std::uint64_t hash_attribute(const std::string& value) {
  return hash_bytes(value.data(), value.size(), 1);
}
inline std::uint64_t hash_attribute(DType value) { return static_cast<std::uint64_t>(value); }
std::uint64_t hash_attribute(Dim value);
std::uint64_t hash_attribute(const Shape& value);
std::uint64_t hash_attribute(const Tensor& value);
std::uint64_t hash_attribute(const TensorType& value);
std::uint64_t hash_attribute(const Subgraph& value);

bool equal_attribute(const Tensor& a, const Tensor& b);
bool equal_attribute(const Subgraph& a, const Subgraph& b);
/// Bits, so that NaN equals itself and -0 differs from 0.
inline bool equal_attribute(double a, double b) {
  return std::bit_cast<std::uint64_t>(a) == std::bit_cast<std::uint64_t>(b);
}
template <class T>
bool equal_attribute(const T& a, const T& b) {
  return a == b;
}

template <NamedEnum E>
void write_attribute(TextWriter& out, E value) {
  out.text += enum_names(value)[static_cast<std::size_t>(value)];
}
template <NamedEnum E>
void read_attribute(TextReader& in, E& value) {
  const auto names = enum_names(value);
  const std::string_view word = in.word();
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (names[i] == word) {
      value = static_cast<E>(i);
      return;
    }
  }
  in.fail("one of the attribute's named values");
}
template <NamedEnum E>
std::uint64_t hash_attribute(E value) {
  return static_cast<std::uint64_t>(value);
}

template <class T>
void write_attribute(TextWriter& out, const std::vector<T>& values) {
  out.text += '[';
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (i > 0) out.text += ", ";
    write_attribute(out, values[i]);
  }
  out.text += ']';
}
template <class T>
void read_attribute(TextReader& in, std::vector<T>& values) {
  values.clear();
  in.expect("[");
  if (in.accept("]")) return;
  do {
    T value{};
    read_attribute(in, value);
    values.push_back(std::move(value));
  } while (in.accept(","));
  in.expect("]");
}
template <class T>
std::uint64_t hash_attribute(const std::vector<T>& values) {
  std::uint64_t h = values.size();
  for (const T& v : values) h = hash_mix(h, hash_attribute(v));
  return h;
}
template <class T>
bool equal_attribute(const std::vector<T>& a, const std::vector<T>& b) {
  if (a.size() != b.size()) return false;
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (!equal_attribute(a[i], b[i])) return false;
  }
  return true;
}

/// Operations on type-erased attributes.
struct AttributeType {
  bool (*equal)(const void* a, const void* b);
  std::uint64_t (*hash)(const void* a);
  void (*write)(const void* a, TextWriter& out);
  std::shared_ptr<const void> (*read)(TextReader& in);
};

template <class T>
void for_each_field(auto&& f) {
  std::apply([&](const auto&... field) { (f(field.first, field.second), ...); }, T::fields());
}

template <class T>
bool equal_attributes(const void* a, const void* b) {
  const T& x = *static_cast<const T*>(a);
  const T& y = *static_cast<const T*>(b);
  bool equal = true;
  for_each_field<T>(
      [&](const char*, auto member) { equal = equal && equal_attribute(x.*member, y.*member); });
  return equal;
}

template <class T>
std::uint64_t hash_attributes(const void* a) {
  std::uint64_t h = 0;
  for_each_field<T>([&](const char*, auto member) {
    h = hash_mix(h, hash_attribute(static_cast<const T*>(a)->*member));
  });
  return h;
}

/// Fields that hold their default are left out, and reading starts from the defaults.
template <class T>
void write_attributes(const void* a, TextWriter& out) {
  const T& x = *static_cast<const T*>(a);
  const T defaults{};
  for_each_field<T>([&](const char* name, auto member) {
    if (equal_attribute(x.*member, defaults.*member)) return;
    if (out.text.back() != '{') out.text += ", ";
    out.text += name;
    out.text += '=';
    write_attribute(out, x.*member);
  });
}

template <class T>
bool read_field(TextReader& in, T& x, std::string_view name) {
  bool found = false;
  for_each_field<T>([&](const char* field, auto member) {
    if (found || name != field) return;
    read_attribute(in, x.*member);
    found = true;
  });
  return found;
}

/// Reads `name=value, …` up to but not including '}'.
template <class T>
std::shared_ptr<const void> read_attributes(TextReader& in) {
  auto x = std::make_shared<T>();
  while (in.peek() != '}') {
    const std::string_view name = in.word();
    in.expect("=");
    if (!read_field(in, *x, name))
      in.fail("an attribute of the operator, not " + std::string(name));
    if (!in.accept(",")) break;
  }
  return x;
}

template <class T>
inline constexpr AttributeType attribute_type{equal_attributes<T>, hash_attributes<T>,
                                              write_attributes<T>, read_attributes<T>};

/// For operators without attributes.
struct NoAttributes {
  static constexpr auto fields() { return std::tuple{}; }
};

}  // namespace rlx
