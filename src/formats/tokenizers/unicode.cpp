#include "formats/tokenizers/unicode.h"

#include <utf8proc.h>

#include <algorithm>
#include <array>
#include <limits>

#include "rlx/error.h"

namespace rlx {
namespace {

constexpr char32_t kReplacement = 0xfffd;

struct Range {
  char32_t first, last;
};
struct CaseRange {
  char32_t first, last;
  std::int32_t step;  ///< to the lower case of each
};

#include "formats/tokenizers/unicode_tables.inc"

template <class R, std::size_t N>
const R* find_range(const R (&ranges)[N], char32_t c) {
  const R* at = std::lower_bound(std::begin(ranges), std::end(ranges), c,
                                 [](const R& r, char32_t value) { return r.last < value; });
  return at != std::end(ranges) && at->first <= c ? at : nullptr;
}

utf8proc_category_t category(char32_t c) {
  return utf8proc_category(static_cast<utf8proc_int32_t>(c));
}

unsigned char byte_at(std::string_view text, std::size_t at) {
  return static_cast<unsigned char>(text[at]);
}

/// What may follow a first byte of UTF-8: the range of the second byte rules out overlong forms,
/// surrogates and values past U+10FFFF.
struct Lead {
  int length;
  unsigned char second_min, second_max;
};

Lead lead_of(unsigned char b) {
  if (b < 0x80) return {1, 0, 0};
  if (b >= 0xc2 && b < 0xe0) return {2, 0x80, 0xbf};
  if (b >= 0xe0 && b < 0xf0) {
    return {3, static_cast<unsigned char>(b == 0xe0 ? 0xa0 : 0x80),
            static_cast<unsigned char>(b == 0xed ? 0x9f : 0xbf)};
  }
  if (b >= 0xf0 && b < 0xf5) {
    return {4, static_cast<unsigned char>(b == 0xf0 ? 0x90 : 0x80),
            static_cast<unsigned char>(b == 0xf4 ? 0x8f : 0xbf)};
  }
  return {0, 0, 0};
}

/// The character at `at`, which moves past it.
char32_t next_character(std::string_view text, std::size_t& at) {
  const unsigned char first = byte_at(text, at++);
  const Lead lead = lead_of(first);
  if (lead.length == 0) return kReplacement;
  if (lead.length == 1) return first;
  char32_t c = first & (0x7f >> lead.length);
  for (int i = 1; i < lead.length; ++i) {
    const unsigned char low = i == 1 ? lead.second_min : 0x80;
    const unsigned char high = i == 1 ? lead.second_max : 0xbf;
    if (at == text.size()) return kReplacement;
    const unsigned char b = byte_at(text, at);
    if (b < low || b > high) return kReplacement;
    c = c << 6 | (b & 0x3f);
    ++at;
  }
  return c;
}

}  // namespace

Chars decode_utf8(std::string_view text) {
  if (text.size() > std::numeric_limits<std::uint32_t>::max()) {
    throw InvalidArgument("a text to tokenize has at most 4 GiB");
  }
  Chars out;
  out.reserve(text.size());
  for (std::size_t at = 0; at < text.size();) {
    const auto begin = static_cast<std::uint32_t>(at);
    const char32_t c = next_character(text, at);
    out.push_back({c, begin, static_cast<std::uint32_t>(at)});
  }
  return out;
}

void append_utf8(std::string& out, char32_t c) {
  utf8proc_uint8_t bytes[4];
  const auto n = utf8proc_encode_char(static_cast<utf8proc_int32_t>(c), bytes);
  out.append(reinterpret_cast<const char*>(bytes), static_cast<std::size_t>(n));
}

std::string to_utf8(std::u32string_view text) {
  std::string out;
  for (const char32_t c : text) append_utf8(out, c);
  return out;
}

bool is_white_space(char32_t c) noexcept {
  if (c < 0x80) return c == ' ' || (c >= '\t' && c <= '\r');
  const auto k = category(c);
  return c == 0x85 || k == UTF8PROC_CATEGORY_ZS || k == UTF8PROC_CATEGORY_ZL ||
         k == UTF8PROC_CATEGORY_ZP;
}

bool is_bert_punctuation(char32_t c) noexcept {
  if (c < 0x80) {
    return c > 0x20 && c < 0x7f && !(c >= '0' && c <= '9') && !(c >= 'A' && c <= 'Z') &&
           !(c >= 'a' && c <= 'z');
  }
  const auto k = category(c);
  const bool punctuation = k >= UTF8PROC_CATEGORY_PC && k <= UTF8PROC_CATEGORY_PO;
  return punctuation != (find_range(kOtherPunctuation, c) != nullptr);
}

bool is_bert_control(char32_t c) noexcept {
  if (c == '\t' || c == '\n' || c == '\r') return false;
  const auto k = category(c);
  if (k == UTF8PROC_CATEGORY_CF) return find_range(kKeptFormat, c) == nullptr;
  return k == UTF8PROC_CATEGORY_CC || k == UTF8PROC_CATEGORY_CO;
}

bool is_bert_ideograph(char32_t c) noexcept {
  constexpr Range kIdeographs[] = {{0x3400, 0x4dbf},   {0x4e00, 0x9fff},   {0xf900, 0xfaff},
                                   {0x20000, 0x2a6df}, {0x2a700, 0x2b81f}, {0x2b920, 0x2ceaf},
                                   {0x2f800, 0x2fa1f}};
  return find_range(kIdeographs, c) != nullptr;
}

bool is_nonspacing_mark(char32_t c) noexcept {
  if (c < 0x300) return false;
  const bool mark = category(c) == UTF8PROC_CATEGORY_MN;
  return mark != (find_range(kOtherMarks, c) != nullptr);
}

bool is_word_character(char32_t c) noexcept {
  constexpr Range kOtherAlphabetic[] = {
      {0x24b6, 0x24e9}, {0x1f130, 0x1f149}, {0x1f150, 0x1f169}, {0x1f170, 0x1f189}};
  switch (category(c)) {
    case UTF8PROC_CATEGORY_LU:
    case UTF8PROC_CATEGORY_LL:
    case UTF8PROC_CATEGORY_LT:
    case UTF8PROC_CATEGORY_LM:
    case UTF8PROC_CATEGORY_LO:
    case UTF8PROC_CATEGORY_MN:
    case UTF8PROC_CATEGORY_MC:
    case UTF8PROC_CATEGORY_ME:
    case UTF8PROC_CATEGORY_ND:
    case UTF8PROC_CATEGORY_NL:
    case UTF8PROC_CATEGORY_PC:
      return true;
    default:
      // Zero-width joiner and non-joiner.
      return c == 0x200c || c == 0x200d || find_range(kOtherAlphabetic, c) != nullptr ||
             find_range(kNewerWord, c) != nullptr;
  }
}

void append_lower_case(std::u32string& out, char32_t c) {
  if (c < 0x80) {
    out += c >= 'A' && c <= 'Z' ? c + 32 : c;
    return;
  }
  if (c == 0x130) {  // the one capital whose lower case is two characters
    out += U"i\u0307";
    return;
  }
  if (const CaseRange* r = find_range(kNewerCase, c)) {
    out += static_cast<char32_t>(static_cast<std::int32_t>(c) + r->step);
    return;
  }
  out += static_cast<char32_t>(utf8proc_tolower(static_cast<utf8proc_int32_t>(c)));
}

void append_decomposed(std::u32string& out, char32_t c) {
  // U+11938 came after the tables of `tokenizers`.
  if (c < 0xc0 || c == 0x11938) {
    out += c;
    return;
  }
  std::array<utf8proc_int32_t, 32> parts;
  int boundary_class = 0;
  const auto n = utf8proc_decompose_char(static_cast<utf8proc_int32_t>(c), parts.data(),
                                         static_cast<utf8proc_ssize_t>(parts.size()),
                                         UTF8PROC_DECOMPOSE, &boundary_class);
  if (n <= 0) out += c;
  for (utf8proc_ssize_t i = 0; i < n; ++i) {
    out += static_cast<char32_t>(parts[static_cast<std::size_t>(i)]);
  }
}

int combining_class(char32_t c) noexcept {
  if (c < 0x300 || find_range(kUnordered, c) != nullptr) return 0;
  return utf8proc_get_property(static_cast<utf8proc_int32_t>(c))->combining_class;
}

}  // namespace rlx
