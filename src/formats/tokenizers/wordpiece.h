#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "formats/tokenizers/unicode.h"

namespace rlx {

/// Lets a map of strings be asked with a view.
struct StringHash {
  using is_transparent = void;
  std::size_t operator()(std::string_view s) const noexcept {
    return std::hash<std::string_view>()(s);
  }
};
template <class T>
using StringMap = std::unordered_map<std::string, T, StringHash, std::equal_to<>>;

/// A piece of text with its id and its bytes [begin, end) in the original text.
struct Token {
  std::int64_t id;
  std::uint32_t begin;
  std::uint32_t end;
};

/// The WordPiece model: splits a word into the longest pieces that the vocabulary has, from left to
/// right. Pieces after the first are looked up with a prefix.
class WordPiece {
 public:
  struct Options {
    std::string unk_token = "[UNK]";
    std::string prefix = "##";
    std::int64_t max_chars = 100;  ///< a longer word is unknown
  };

  /// Throws `InvalidArgument` if the unknown token is missing, two tokens share an id, or
  /// `max_chars` is past 4096 (splitting takes time quadratic in it).
  WordPiece(std::vector<std::pair<std::string, std::int64_t>> vocabulary, Options options);
  WordPiece(WordPiece&&) = default;
  WordPiece& operator=(WordPiece&&) = default;

  /// Appends the pieces of a word, or the unknown token if any part is not in the vocabulary.
  void tokenize(std::span<const Char> word, std::vector<Token>& out) const;

  const Options& options() const noexcept { return options_; }
  std::size_t size() const noexcept { return ids_.size(); }
  std::optional<std::int64_t> id_of(std::string_view token) const;
  std::optional<std::string_view> token_of(std::int64_t id) const;

 private:
  bool split(std::span<const Char> word, std::vector<Token>& out) const;

  Options options_;
  StringMap<std::int64_t> ids_;
  StringMap<std::int64_t> continuations_;  ///< tokens that begin with the prefix, without it
  std::unordered_map<std::int64_t, std::string_view> tokens_;
  std::int64_t unk_id_ = 0;
  std::size_t longest_bytes_ = 0;
};

}  // namespace rlx
