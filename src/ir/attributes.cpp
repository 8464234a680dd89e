#include "ir/attributes.h"

#include <fmt/format.h>

#include <cmath>
#include <cstring>
#include <limits>

#include "ir/node.h"

namespace rlx {

std::uint64_t hash_bytes(const void* data, std::size_t size, std::uint64_t seed) {
  const auto* p = static_cast<const unsigned char*>(data);
  std::uint64_t h = hash_mix(seed, size);
  for (; size >= 8; p += 8, size -= 8) {
    std::uint64_t word = 0;
    std::memcpy(&word, p, 8);
    h = hash_mix(h, word);
  }
  std::uint64_t tail = 0;
  std::memcpy(&tail, p, size);
  return hash_mix(h, tail);
}

// ---------------------------------------------------------------- writing

void write_attribute(TextWriter& out, bool value) { out.text += value ? "true" : "false"; }
void write_attribute(TextWriter& out, std::int64_t value) { out.text += fmt::format("{}", value); }
void write_attribute(TextWriter& out, double value) { out.text += fmt::format("{}", value); }
void write_attribute(TextWriter& out, const std::string& value) { out.text += quote(value); }
void write_attribute(TextWriter& out, DType value) { out.text += name(value); }
void write_attribute(TextWriter& out, Dim value) { out.text += value.to_string(); }
void write_attribute(TextWriter& out, const Shape& value) { out.text += to_string(value); }
void write_attribute(TextWriter& out, const TensorType& value) { out.text += to_string(value); }
void write_attribute(TextWriter& out, const Subgraph& value) {
  if (value) {
    write_graph(out, *value);
  } else {
    out.text += "none";
  }
}

namespace {

constexpr std::size_t kMaxInline = 64;
constexpr std::size_t kMaxShown = 8;

// Dtypes whose elements the text form writes as numbers; the others are written as bytes.
template <class F>
bool with_numbers(DType dtype, F&& f) {
  switch (dtype) {
    case DType::f64:
      return f(double{}), true;
    case DType::f32:
      return f(float{}), true;
    case DType::i64:
      return f(std::int64_t{}), true;
    case DType::i32:
      return f(std::int32_t{}), true;
    case DType::i16:
      return f(std::int16_t{}), true;
    case DType::i8:
      return f(std::int8_t{}), true;
    case DType::u64:
      return f(std::uint64_t{}), true;
    case DType::u32:
      return f(std::uint32_t{}), true;
    case DType::u16:
      return f(std::uint16_t{}), true;
    case DType::u8:
      return f(std::uint8_t{}), true;
    default:
      return false;
  }
}

// A NaN is written by its bits where they are not the usual ones, since constants must come back
// bit for bit.
template <class T>
std::string element_text(T value) {
  if constexpr (std::is_floating_point_v<T>) {
    using Bits = std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>;
    const auto bits = std::bit_cast<Bits>(value);
    if (std::isnan(value) && bits != std::bit_cast<Bits>(std::numeric_limits<T>::quiet_NaN())) {
      return fmt::format("#{}", bits);
    }
    return fmt::format("{}", value);
  } else {
    return fmt::format("{}", +value);
  }
}

template <class T>
T read_element(TextReader& in) {
  if constexpr (std::is_floating_point_v<T>) {
    using Bits = std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>;
    if (in.accept("#")) return std::bit_cast<T>(static_cast<Bits>(in.unsigned_integer()));
    return static_cast<T>(in.number());
  } else if constexpr (std::is_unsigned_v<T>) {
    const std::uint64_t value = in.unsigned_integer();
    if (value > std::numeric_limits<T>::max()) in.fail("an integer of the dtype's range");
    return static_cast<T>(value);
  } else {
    const std::int64_t value = in.integer();
    if (value < std::numeric_limits<T>::min() || value > std::numeric_limits<T>::max()) {
      in.fail("an integer of the dtype's range");
    }
    return static_cast<T>(value);
  }
}

template <class T>
T load(std::span<const std::byte> bytes, std::size_t i) {
  T value;
  std::memcpy(&value, bytes.data() + i * sizeof(T), sizeof(T));
  return value;
}

void write_elements(TextWriter& out, const Tensor& t, std::size_t count) {
  const auto separate = [&](std::size_t i) { out.text += i > 0 ? ", " : ""; };
  if (t.dtype() == DType::string) {
    for (std::size_t i = 0; i < count; ++i) separate(i), out.text += quote(t.strings()[i]);
    return;
  }
  const bool numbers = with_numbers(t.dtype(), [&](auto zero) {
    using T = decltype(zero);
    for (std::size_t i = 0; i < count; ++i)
      separate(i), out.text += element_text(load<T>(t.bytes(), i));
  });
  if (numbers) return;
  const std::size_t bytes = std::min(t.bytes().size(), byte_size(t.dtype(), count));
  for (std::size_t i = 0; i < bytes; ++i)
    separate(i), out.text += fmt::format("{}", static_cast<unsigned>(t.bytes()[i]));
}

}  // namespace

void write_attribute(TextWriter& out, const Tensor& value) {
  out.text += fmt::format("{}{}", name(value.dtype()), to_string(value.dims()));
  if (value.size() > kMaxInline && out.blobs != nullptr) {
    out.text += fmt::format("#{}", out.blobs->size());
    out.blobs->push_back(value);
    return;
  }
  out.text += '(';
  const bool whole = value.size() <= kMaxInline;
  write_elements(out, value, whole ? value.size() : kMaxShown);
  out.text += whole ? ")" : ", …)";
}

// ---------------------------------------------------------------- reading

void read_attribute(TextReader& in, bool& value) {
  value = in.accept("true");
  if (!value && !in.accept("false")) in.fail("true or false");
}
void read_attribute(TextReader& in, std::int64_t& value) { value = in.integer(); }
void read_attribute(TextReader& in, double& value) { value = in.number(); }
void read_attribute(TextReader& in, std::string& value) { value = in.quoted(); }

void read_attribute(TextReader& in, DType& value) {
  const auto dtype = dtype_named(in.word());
  if (!dtype) in.fail("a dtype");
  value = *dtype;
}

void read_attribute(TextReader& in, Dim& value) {
  const std::size_t offset = in.offset();
  try {
    value = Dim::parse(in.until(",]})=\""));
  } catch (const FormatError&) {
    throw;
  } catch (const Error& error) {
    throw FormatError(error.what(), offset);
  }
}

void read_attribute(TextReader& in, Shape& value) {
  std::vector<Dim> dims;
  read_attribute(in, dims);
  value = Shape(std::move(dims));
}

void read_attribute(TextReader& in, TensorType& value) {
  read_attribute(in, value.dtype);
  read_attribute(in, value.shape);
}

void read_attribute(TextReader& in, Subgraph& value) {
  value = in.accept("none") ? nullptr : std::make_shared<const Graph>(read_graph(in));
}

namespace {

std::size_t checked_count(TextReader& in, const Tensor::Dims& dims) {
  std::size_t count = 1;
  for (const std::int64_t d : dims) {
    if (d < 0 || __builtin_mul_overflow(count, static_cast<std::size_t>(d), &count))
      in.fail("extents that are not negative");
  }
  return count;
}

void read_elements(TextReader& in, Tensor& t) {
  const auto separate = [&](std::size_t i) {
    if (i > 0) in.expect(",");
  };
  const bool numbers = with_numbers(t.dtype(), [&](auto zero) {
    using T = decltype(zero);
    std::size_t i = 0;
    for (T& v : t.values<T>()) separate(i++), v = read_element<T>(in);
  });
  if (numbers) return;
  std::size_t i = 0;
  for (std::byte& b : t.bytes_mutable())
    separate(i++), b = static_cast<std::byte>(read_element<std::uint8_t>(in));
}

Tensor read_strings(TextReader& in, const Tensor::Dims& dims, std::size_t count) {
  std::vector<std::string> values;
  for (std::size_t i = 0; i < count; ++i) {
    if (i > 0) in.expect(",");
    values.push_back(in.quoted());
  }
  return Tensor::of_strings(dims, std::move(values));
}

}  // namespace

void read_attribute(TextReader& in, Tensor& value) {
  DType dtype{};
  Tensor::Dims dims;
  read_attribute(in, dtype);
  read_attribute(in, dims);
  const std::size_t count = checked_count(in, dims);
  if (in.accept("#")) {
    const std::uint64_t id = in.unsigned_integer();
    if (in.blobs() == nullptr || id >= in.blobs()->size()) in.fail("the number of a blob");
    value = (*in.blobs())[id];
    if (value.dtype() != dtype || value.dims() != dims)
      in.fail("a blob of this dtype and these extents");
    return;
  }
  if (count > kMaxInline) in.fail("a blob for so many elements");
  in.expect("(");
  if (dtype == DType::string) {
    value = read_strings(in, dims, count);
  } else {
    value = Tensor(dtype, dims);
    read_elements(in, value);
  }
  in.expect(")");
}

// ---------------------------------------------------------------- hashing and equality

std::uint64_t hash_attribute(Dim value) { return hash_attribute(value.to_string()); }
std::uint64_t hash_attribute(const Shape& value) { return hash_attribute(value.dims()); }
std::uint64_t hash_attribute(const TensorType& value) {
  return hash_mix(hash_attribute(value.dtype), hash_attribute(value.shape));
}
std::uint64_t hash_attribute(const Tensor& value) {
  std::uint64_t h = hash_mix(hash_attribute(value.dtype()), hash_attribute(value.dims()));
  if (value.dtype() == DType::string) {
    for (const std::string& s : value.strings()) h = hash_mix(h, hash_attribute(s));
    return h;
  }
  return hash_bytes(value.bytes().data(), value.bytes().size(), h);
}

namespace {

std::string text_of(const Graph& graph, std::vector<Tensor>& blobs) {
  return to_string(graph, &blobs);
}

}  // namespace

std::uint64_t hash_attribute(const Subgraph& value) {
  if (!value) return 0;
  std::vector<Tensor> blobs;
  const std::string text = text_of(*value, blobs);
  return hash_mix(hash_attribute(text), hash_attribute(blobs));
}

bool equal_attribute(const Tensor& a, const Tensor& b) {
  if (a.dtype() != b.dtype() || a.dims() != b.dims()) return false;
  if (a.dtype() == DType::string)
    return std::equal(a.strings().begin(), a.strings().end(), b.strings().begin());
  if (a.bytes().data() == b.bytes().data()) return true;
  return std::memcmp(a.bytes().data(), b.bytes().data(), a.bytes().size()) == 0;
}

bool equal_attribute(const Subgraph& a, const Subgraph& b) {
  if (a == b) return true;
  if (!a || !b) return false;
  std::vector<Tensor> x;
  std::vector<Tensor> y;
  return text_of(*a, x) == text_of(*b, y) && equal_attribute(x, y);
}

}  // namespace rlx
