#pragma once

#include <optional>
#include <span>
#include <vector>

#include "formats/tokenizers/unicode.h"

namespace rlx {

/// BERT's normaliser. Each step keeps the original bytes of the characters; in this order:
struct BertNormalizer {
  bool clean_text = true;             ///< drops controls and U+FFFD, white space becomes ' '
  bool handle_chinese_chars = true;   ///< spaces around ideographs
  std::optional<bool> strip_accents;  ///< NFD without nonspacing marks; unset: as `lowercase`
  bool lowercase = true;

  Chars apply(Chars text) const;
};

/// Words as BERT splits them: white space separates and vanishes, each punctuation character is a
/// word. The spans view `text`.
std::vector<std::span<const Char>> split_bert_words(std::span<const Char> text);

}  // namespace rlx
