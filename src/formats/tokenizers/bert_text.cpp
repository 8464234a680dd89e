#include "formats/tokenizers/bert_text.h"

#include <algorithm>

namespace rlx {
namespace {

Chars cleaned(const Chars& text) {
  Chars out;
  out.reserve(text.size());
  for (const Char& ch : text) {
    if (ch.c == 0 || ch.c == 0xfffd || is_bert_control(ch.c)) continue;
    out.push_back(ch);
    if (is_white_space(ch.c)) out.back().c = ' ';
  }
  return out;
}

Chars spaced_ideographs(const Chars& text) {
  Chars out;
  out.reserve(text.size());
  for (const Char& ch : text) {
    const bool apart = is_bert_ideograph(ch.c);
    if (apart) out.push_back({' ', ch.begin, ch.end});
    out.push_back(ch);
    if (apart) out.push_back({' ', ch.begin, ch.end});
  }
  return out;
}

template <class Map>
Chars mapped(const Chars& text, Map append) {
  Chars out;
  out.reserve(text.size());
  std::u32string characters;
  for (const Char& ch : text) {
    characters.clear();
    append(characters, ch.c);
    for (const char32_t c : characters) out.push_back({c, ch.begin, ch.end});
  }
  return out;
}

struct Mark {
  char32_t c;
  bool added;  ///< by decomposing the character before it
};

bool same_place(const Char& a, const Char& b) { return a.begin == b.begin && a.end == b.end; }

/// Sorts the marks [first, last) of `text` by their classes. Characters move, places in the text do
/// not: in their new order, marks of the text take their places from left to right, and added ones
/// share that of their new neighbour.
void order_run(Chars& text, std::size_t first, std::size_t last) {
  std::vector<Mark> marks;
  Chars places;
  for (std::size_t i = first; i < last; ++i) {
    const bool added = i > 0 && same_place(text[i - 1], text[i]);
    marks.push_back({text[i].c, added});
    if (!added) places.push_back(text[i]);
  }
  std::stable_sort(marks.begin(), marks.end(), [](const Mark& a, const Mark& b) {
    return combining_class(a.c) < combining_class(b.c);
  });
  auto place = places.begin();
  for (std::size_t i = 0; i < marks.size(); ++i) {
    Char& to = text[first + i];
    to = marks[i].added ? text[first + i - 1] : *place++;
    to.c = marks[i].c;
  }
}

void order_marks(Chars& text) {
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t first = at;
    while (at < text.size() && combining_class(text[at].c) != 0) ++at;
    if (at - first > 1) order_run(text, first, at);
    at = std::max(at, first + 1);
  }
}

Chars without_accents(const Chars& text) {
  Chars out = mapped(text, append_decomposed);
  order_marks(out);
  std::erase_if(out, [](const Char& ch) { return is_nonspacing_mark(ch.c); });
  return out;
}

}  // namespace

Chars BertNormalizer::apply(Chars text) const {
  if (clean_text) text = cleaned(text);
  if (handle_chinese_chars) text = spaced_ideographs(text);
  if (strip_accents.value_or(lowercase)) text = without_accents(text);
  if (lowercase) text = mapped(text, append_lower_case);
  return text;
}

std::vector<std::span<const Char>> split_bert_words(std::span<const Char> text) {
  std::vector<std::span<const Char>> words;
  std::size_t begin = 0;
  const auto end_word = [&](std::size_t end) {
    if (end > begin) words.push_back(text.subspan(begin, end - begin));
  };
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool punctuation = is_bert_punctuation(text[i].c);
    if (!punctuation && !is_white_space(text[i].c)) continue;
    end_word(i);
    if (punctuation) words.push_back(text.subspan(i, 1));
    begin = i + 1;
  }
  end_word(text.size());
  return words;
}

}  // namespace rlx
