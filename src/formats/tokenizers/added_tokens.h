#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "formats/tokenizers/unicode.h"

namespace rlx {

/// A token that is found in the text as it stands, before the model splits words.
struct AddedToken {
  std::int64_t id = 0;
  std::string content;
  bool single_word = false;  ///< only between characters that are no word characters
  bool lstrip = false;       ///< takes the white space before it
  bool rstrip = false;       ///< takes the white space after it
  bool normalized = false;   ///< is looked for after normalising, else before
  bool special = false;      ///< is left out of decoded text
};

/// A part of a text: one added token, or what stands between them.
struct TextPart {
  const AddedToken* token;  ///< null for text
  std::span<const Char> text;
};

/// Finds added tokens: at each place the longest, from left to right, without overlap.
class AddedTokenMatcher {
 public:
  /// `token` must outlive this; `pattern` is its content as the searched text has it. Of two equal
  /// patterns the first holds.
  void add(const AddedToken& token, std::span<const Char> pattern);
  bool empty() const noexcept { return children_.empty(); }
  /// All of `text`, in order; parts view it and are not empty.
  std::vector<TextPart> split(std::span<const Char> text) const;

 private:
  struct Match {
    const AddedToken* token = nullptr;
    std::size_t length = 0;
  };
  Match longest_at(std::span<const Char> text) const;

  /// A trie: (node << 32 | character) -> node; the root is 0.
  std::unordered_map<std::uint64_t, std::uint32_t> children_;
  std::vector<const AddedToken*> tokens_ = {nullptr};  ///< that end at each node
};

}  // namespace rlx
