#include "formats/npy.h"

#include <fmt/format.h>
#include <utf8proc.h>

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <cstring>
#include <limits>
#include <optional>

#include "base/os_file.h"
#include "formats/dense.h"
#include "rlx/error.h"

namespace rlx {
namespace {

static_assert(std::endian::native == std::endian::little, "little-endian arrays are not swapped");

constexpr std::string_view kMagic = "\x93NUMPY";
constexpr std::size_t kAlignment = 64;
/// NumPy's own limit on the number of axes.
constexpr std::size_t kMaxRank = 64;

struct Header {
  std::string descr;
  bool fortran_order = false;
  Tensor::Dims dims;
  std::uint64_t descr_offset = 0;
  std::uint64_t shape_offset = 0;
};

/// The header is a Python dict display of strings, bools and a tuple of integers.
class HeaderReader {
 public:
  HeaderReader(std::string_view text, std::uint64_t base) : text_(text), base_(base) {}

  Header read() {
    expect('{');
    while (!accept('}')) {
      read_entry();
      if (!accept(',')) {
        expect('}');
        break;
      }
    }
    skip_space();
    if (at_ != text_.size()) fail("the end of the header");
    for (std::size_t i = 0; i < kKeys.size(); ++i) {
      if (!seen_[i]) throw FormatError(fmt::format("the header has no key '{}'", kKeys[i]), base_);
    }
    return std::move(header_);
  }

 private:
  static constexpr std::array<std::string_view, 3> kKeys = {"descr", "fortran_order", "shape"};

  [[noreturn]] void fail(std::string_view expected) const {
    const std::string found = at_ < text_.size() ? in_quotes(text_.substr(at_, 1)) : "its end";
    throw FormatError(fmt::format("found {} in the header, expected {}", found, expected),
                      base_ + at_);
  }

  void skip_space() { at_ = std::min(text_.find_first_not_of(" \t\n\r\f\v", at_), text_.size()); }
  bool accept(char c) {
    skip_space();
    if (at_ >= text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }
  void expect(char c) {
    if (!accept(c)) fail(fmt::format("'{}'", c));
  }

  void read_entry() {
    skip_space();
    const std::uint64_t key_offset = base_ + at_;
    const std::string key = read_string();
    const auto known = std::find(kKeys.begin(), kKeys.end(), key);
    if (known == kKeys.end()) {
      throw FormatError(fmt::format("the header has the unknown key {}", in_quotes(key)),
                        key_offset);
    }
    bool& seen = seen_[static_cast<std::size_t>(known - kKeys.begin())];
    if (seen) throw FormatError(fmt::format("key '{}' is given twice", key), key_offset);
    seen = true;
    expect(':');
    skip_space();
    if (key == "descr") read_descr();
    if (key == "fortran_order") header_.fortran_order = read_bool();
    if (key == "shape") read_shape();
  }

  void read_descr() {
    header_.descr_offset = base_ + at_;
    if (at_ < text_.size() && text_[at_] == '[') {
      throw Unsupported("a structured npy array has no counterpart, expected one plain dtype");
    }
    header_.descr = read_string();
  }

  std::string read_string() {
    skip_space();
    const char quote = at_ < text_.size() ? text_[at_] : '\0';
    if (quote != '\'' && quote != '"') fail("a string");
    const std::size_t end = text_.find(quote, at_ + 1);
    if (end == std::string_view::npos) fail("a string that ends");
    std::string out(text_.substr(at_ + 1, end - at_ - 1));
    at_ = end + 1;
    return out;
  }

  bool read_bool() {
    for (const std::string_view word : {"True", "False"}) {
      if (!text_.substr(at_).starts_with(word)) continue;
      at_ += word.size();
      return word == "True";
    }
    fail("True or False");
  }

  void read_shape() {
    header_.shape_offset = base_ + at_;
    expect('(');
    bool comma = true;
    while (!accept(')')) {
      if (!comma) fail("',' or ')'");
      if (header_.dims.size() == kMaxRank) fail(fmt::format("at most {} axes", kMaxRank));
      header_.dims.push_back(read_extent());
      comma = accept(',');
    }
    if (header_.dims.size() == 1 && !comma) {
      throw FormatError("the shape is a number in parentheses, expected a tuple",
                        header_.shape_offset);
    }
  }

  std::int64_t read_extent() {
    skip_space();
    std::int64_t value = 0;
    const char* begin = text_.data() + at_;
    const auto [end, error] = std::from_chars(begin, text_.data() + text_.size(), value);
    if (error != std::errc() || value < 0) fail("an extent from 0 to 2^63 - 1");
    at_ += static_cast<std::size_t>(end - begin);
    // Python 2 marked long integers.
    if (at_ < text_.size() && text_[at_] == 'L') ++at_;
    return value;
  }

  std::string_view text_;
  std::uint64_t base_;
  std::size_t at_ = 0;
  Header header_;
  std::array<bool, 3> seen_{};
};

/// What `descr` says of one element.
struct Element {
  DType dtype;
  std::size_t bytes;  ///< in the file
  bool swapped;
  bool wide;  ///< of strings: UCS-4 code points, not bytes
};

struct NumpyName {
  char kind;
  std::size_t bytes;
  DType dtype;
};
constexpr NumpyName kNames[] = {
    {'b', 1, DType::boolean}, {'i', 1, DType::i8},   {'i', 2, DType::i16}, {'i', 4, DType::i32},
    {'i', 8, DType::i64},     {'u', 1, DType::u8},   {'u', 2, DType::u16}, {'u', 4, DType::u32},
    {'u', 8, DType::u64},     {'f', 2, DType::f16},  {'f', 4, DType::f32}, {'f', 8, DType::f64},
    {'c', 8, DType::c64},     {'c', 16, DType::c128}};

std::optional<Element> element_named(std::string_view descr) {
  constexpr std::string_view kOrders = "<>|=";
  if (descr.size() < 3 || kOrders.find(descr[0]) == std::string_view::npos) return {};
  const bool swapped = descr[0] == '>';
  const char kind = descr[1];
  std::size_t count = 0;
  const char* end = descr.data() + descr.size();
  const auto [stop, error] = std::from_chars(descr.data() + 2, end, count);
  if (error != std::errc() || stop != end) return {};
  if (kind == 'S' && count > 0) return Element{DType::string, count, false, false};
  if (kind == 'U' && count > 0 && count <= std::numeric_limits<std::size_t>::max() / 4) {
    return Element{DType::string, 4 * count, swapped, true};
  }
  for (const NumpyName& n : kNames) {
    if (n.kind == kind && n.bytes == count) return Element{n.dtype, count, swapped, false};
  }
  return {};
}

/// `copy(to, from)` for each element, `to` in C order.
template <class Copy>
void for_each_element(std::span<const std::int64_t> dims, bool fortran_order, Copy copy) {
  const std::size_t rank = dims.size();
  std::size_t count = 1;
  std::array<std::size_t, kMaxRank> strides{};
  for (std::size_t i = 0; i < rank; ++i) {
    strides[i] = count;
    count *= static_cast<std::size_t>(dims[i]);
  }
  if (!fortran_order || rank < 2) {
    for (std::size_t i = 0; i < count; ++i) copy(i, i);
    return;
  }
  const auto cols = static_cast<std::size_t>(dims.back());
  std::array<std::int64_t, kMaxRank> at{};
  std::size_t from = 0;
  for (std::size_t to = 0; to < count; to += cols) {
    for (std::size_t c = 0; c < cols; ++c) copy(to + c, from + c * strides[rank - 1]);
    for (std::size_t axis = rank - 1; axis-- > 0;) {
      from += strides[axis];
      if (++at[axis] < dims[axis]) break;
      from -= strides[axis] * static_cast<std::size_t>(dims[axis]);
      at[axis] = 0;
    }
  }
}

void reverse_each(std::span<std::byte> bytes, std::size_t width) {
  for (std::size_t i = 0; i + width <= bytes.size(); i += width) {
    std::reverse(bytes.begin() + static_cast<std::ptrdiff_t>(i),
                 bytes.begin() + static_cast<std::ptrdiff_t>(i + width));
  }
}

Tensor copy_elements(const Header& header, const Element& element,
                     std::span<const std::byte> from) {
  Tensor t(element.dtype, header.dims);
  if (t.size() == 0) return t;
  std::byte* to = t.bytes_mutable().data();
  const std::size_t n = element.bytes;
  for_each_element(header.dims, header.fortran_order, [&](std::size_t i, std::size_t j) {
    std::memcpy(to + i * n, from.data() + j * n, n);
  });
  if (element.swapped) reverse_each(t.bytes_mutable(), alignment_of(element.dtype));
  return t;
}

std::string narrow_text(std::span<const std::byte> bytes) {
  std::string text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  text.resize(text.find_last_not_of('\0') + 1);
  return text;
}

std::string wide_text(std::span<const std::byte> bytes, bool swapped, std::uint64_t offset) {
  std::string text;
  for (std::size_t i = 0; i < bytes.size(); i += 4) {
    std::uint32_t c = 0;
    std::memcpy(&c, bytes.data() + i, 4);
    if (swapped) c = __builtin_bswap32(c);
    if (c > 0x10ffff || (c >= 0xd800 && c < 0xe000)) {
      throw FormatError(fmt::format("{:#x} is no character", c), offset + i);
    }
    utf8proc_uint8_t utf8[4];
    const auto n = utf8proc_encode_char(static_cast<utf8proc_int32_t>(c), utf8);
    text.append(reinterpret_cast<const char*>(utf8), static_cast<std::size_t>(n));
  }
  text.resize(text.find_last_not_of('\0') + 1);
  return text;
}

Tensor read_strings(const Header& header, const Element& element, std::span<const std::byte> data,
                    std::uint64_t offset) {
  std::vector<std::string> values(data.size() / element.bytes);
  for_each_element(header.dims, header.fortran_order, [&](std::size_t to, std::size_t from) {
    const std::size_t at = from * element.bytes;
    const auto bytes = data.subspan(at, element.bytes);
    values[to] = element.wide ? wide_text(bytes, element.swapped, offset + at) : narrow_text(bytes);
  });
  return Tensor::of_strings(header.dims, std::move(values));
}

void require_bools(std::span<const std::byte> data, std::uint64_t offset) {
  const auto bad =
      std::find_if(data.begin(), data.end(), [](std::byte b) { return b > std::byte{1}; });
  if (bad == data.end()) return;
  throw FormatError(fmt::format("a bool is {}", std::to_integer<int>(*bad)),
                    offset + static_cast<std::uint64_t>(bad - data.begin()));
}

struct Layout {
  std::string_view header;
  std::uint64_t header_offset;
};

Layout find_header(std::span<const std::byte> file) {
  const std::string_view text(reinterpret_cast<const char*>(file.data()), file.size());
  if (!text.starts_with(kMagic)) throw FormatError("does not begin like an npy file", 0);
  const std::size_t major_at = kMagic.size();
  if (text.size() < major_at + 2) throw FormatError("ends before its version", text.size());
  const int major = static_cast<unsigned char>(text[major_at]);
  if (major < 1 || major > 3) {
    throw FormatError(fmt::format("npy version {} is unknown, expected 1 to 3", major), major_at);
  }
  const std::size_t length_at = major_at + 2;
  const std::size_t length_bytes = major == 1 ? 2 : 4;
  const std::size_t begin = length_at + length_bytes;
  if (text.size() < begin) throw FormatError("ends before its header length", text.size());
  std::uint32_t length = 0;
  std::memcpy(&length, text.data() + length_at, length_bytes);
  if (length > text.size() - begin) {
    throw FormatError(
        fmt::format("the header is said to have {} bytes, {} follow", length, text.size() - begin),
        length_at);
  }
  return {text.substr(begin, length), begin};
}

std::size_t data_size(const Header& header, const Element& element) {
  // Strings count as bytes here; their width comes after.
  const bool text = element.dtype == DType::string;
  const auto size = dense_size(text ? DType::u8 : element.dtype, header.dims);
  std::size_t bytes = 0;
  if (!size || __builtin_mul_overflow(size->bytes, text ? element.bytes : 1, &bytes)) {
    throw FormatError(fmt::format("{} of '{}' overflows", to_string(header.dims), header.descr),
                      header.shape_offset);
  }
  return bytes;
}

std::string descr_of(const Tensor& tensor) {
  for (const NumpyName& n : kNames) {
    if (n.dtype == tensor.dtype()) {
      return fmt::format("{}{}{}", n.bytes == 1 ? '|' : '<', n.kind, n.bytes);
    }
  }
  throw Unsupported(
      fmt::format("npy has no name for dtype {}, cast it first", name(tensor.dtype())));
}

std::string header_text(std::string_view descr, const Tensor::Dims& dims) {
  std::string shape;
  for (const std::int64_t d : dims) fmt::format_to(std::back_inserter(shape), "{}, ", d);
  if (dims.size() > 1) shape.resize(shape.size() - 2);
  if (dims.size() == 1) shape.pop_back();
  std::string dict =
      fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': ({}), }}", descr, shape);
  // At most 64 axes of 21 characters: version 1, whose length has 16 bits, always does.
  const std::size_t prefix = kMagic.size() + 4;
  const std::size_t used = prefix + dict.size() + 1;
  dict.append((kAlignment - used % kAlignment) % kAlignment, ' ');
  dict += '\n';
  std::string out(kMagic);
  out += {'\1', '\0', static_cast<char>(dict.size() & 0xff), static_cast<char>(dict.size() >> 8)};
  return out + dict;
}

Tensor widened(const Tensor& bf16_tensor) {
  Tensor wide(f32, bf16_tensor.dims());
  const std::span<std::byte> to = wide.bytes_mutable();
  const std::span<const std::byte> from = bf16_tensor.bytes();
  for (std::size_t i = 0; i < wide.size(); ++i) std::memcpy(&to[4 * i + 2], &from[2 * i], 2);
  return wide;
}

std::vector<std::uint32_t> code_points(const std::string& text) {
  std::vector<std::uint32_t> out;
  const auto* at = reinterpret_cast<const utf8proc_uint8_t*>(text.data());
  auto left = static_cast<utf8proc_ssize_t>(text.size());
  while (left > 0) {
    utf8proc_int32_t c = 0;
    const utf8proc_ssize_t n = utf8proc_iterate(at, left, &c);
    if (n <= 0) throw InvalidArgument(fmt::format("string {} is not utf-8", in_quotes(text)));
    out.push_back(static_cast<std::uint32_t>(c));
    at += n;
    left -= n;
  }
  if (!out.empty() && out.back() == 0) {
    throw InvalidArgument("npy cannot keep the zero character that ends a string");
  }
  return out;
}

NpyParts encode_strings(const Tensor& tensor) {
  std::vector<std::vector<std::uint32_t>> values;
  std::size_t longest = 1;
  for (const std::string& s : tensor.strings()) {
    values.push_back(code_points(s));
    longest = std::max(longest, values.back().size());
  }
  const Tensor::Dims flat(1, static_cast<std::int64_t>(values.size() * longest));
  Tensor elements(u32, flat);
  const std::span<std::uint32_t> to = elements.values<std::uint32_t>();
  for (std::size_t i = 0; i < values.size(); ++i) {
    std::copy(values[i].begin(), values[i].end(),
              to.begin() + static_cast<std::ptrdiff_t>(i * longest));
  }
  return {header_text(fmt::format("<U{}", longest), tensor.dims()), std::move(elements)};
}

}  // namespace

Tensor parse_npy(std::span<const std::byte> file, std::shared_ptr<const void> owner) {
  const Layout layout = find_header(file);
  const Header header = HeaderReader(layout.header, layout.header_offset).read();
  const auto element = element_named(header.descr);
  if (!element) {
    throw Unsupported(fmt::format("npy dtype {} has no counterpart", in_quotes(header.descr)));
  }
  const std::uint64_t offset = layout.header_offset + layout.header.size();
  const std::span<const std::byte> data = file.subspan(offset);
  const std::size_t needed = data_size(header, *element);
  if (needed != data.size()) {
    throw FormatError(fmt::format("{} of '{}' takes {} bytes, {} follow the header",
                                  to_string(header.dims), header.descr, needed, data.size()),
                      offset + std::min(needed, data.size()));
  }
  if (element->dtype == DType::string) return read_strings(header, *element, data, offset);
  if (element->dtype == DType::boolean) require_bools(data, offset);
  const bool as_is = !element->swapped && (!header.fortran_order || header.dims.size() < 2);
  if (!as_is || !is_aligned(data, element->dtype)) return copy_elements(header, *element, data);
  return Tensor::view(element->dtype, header.dims, data, std::move(owner));
}

Tensor load_npy(const std::string& path) {
  try {
    const auto bytes = std::make_shared<const std::vector<std::byte>>(
        read_file(path, std::numeric_limits<std::uint64_t>::max()));
    return parse_npy(*bytes, bytes);
  } catch (Error& error) {
    error.in_file(path);
    throw;
  }
}

NpyParts npy_parts(const Tensor& tensor) {
  if (tensor.dtype() == DType::string) return encode_strings(tensor);
  if (tensor.dtype() == DType::bf16) return npy_parts(widened(tensor));
  return {header_text(descr_of(tensor), tensor.dims()), tensor};
}

std::vector<std::byte> encode_npy(const Tensor& tensor) {
  const NpyParts parts = npy_parts(tensor);
  const auto header = std::as_bytes(std::span(parts.header));
  std::vector<std::byte> out(header.begin(), header.end());
  out.insert(out.end(), parts.elements.bytes().begin(), parts.elements.bytes().end());
  return out;
}

void save_npy(const std::string& path, const Tensor& tensor) {
  const NpyParts parts = npy_parts(tensor);
  AtomicFile file(path);
  file.write(std::as_bytes(std::span(parts.header)));
  file.write(parts.elements.bytes());
  file.commit();
}

}  // namespace rlx
