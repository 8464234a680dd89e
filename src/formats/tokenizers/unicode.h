#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace rlx {

/// A character and the bytes [begin, end) of the original text that it comes from. Characters that
/// one original expands to share its bytes.
struct Char {
  char32_t c;
  std::uint32_t begin;
  std::uint32_t end;
};
using Chars = std::vector<Char>;

/// The characters of `text`. Each maximal part of ill-formed UTF-8 reads as one U+FFFD, as the
/// Unicode standard recommends. Throws `InvalidArgument` for a text of 4 GiB or more.
Chars decode_utf8(std::string_view text);
void append_utf8(std::string& out, char32_t c);
std::string to_utf8(std::u32string_view text);

/// Character classes as PyPI's `tokenizers` has them, by which models were trained: white space
/// is the Unicode property; punctuation, marks and what cleaning removes are of Unicode 8, where
/// later characters have no class; case is of Unicode 17. Checked against it for every code point.
bool is_white_space(char32_t c) noexcept;
/// Punctuation of Unicode, and every ASCII symbol.
bool is_bert_punctuation(char32_t c) noexcept;
/// Control, format and private characters but tab, line feed and carriage return.
bool is_bert_control(char32_t c) noexcept;
/// The blocks of ideographs that BERT puts spaces around.
bool is_bert_ideograph(char32_t c) noexcept;
bool is_nonspacing_mark(char32_t c) noexcept;
/// What `\w` matches: letters, marks, decimal digits, connectors, joiners.
bool is_word_character(char32_t c) noexcept;

/// Appends the lower case of `c`, at most 2 characters. Context (a final sigma) does not matter.
void append_lower_case(std::u32string& out, char32_t c);
/// Appends the full canonical decomposition of `c`.
void append_decomposed(std::u32string& out, char32_t c);
/// The canonical combining class; 0 for characters that do not reorder.
int combining_class(char32_t c) noexcept;

}  // namespace rlx
