#include "formats/tokenizers/wordpiece.h"

#include <fmt/format.h>

#include <algorithm>

#include "formats/dense.h"
#include "rlx/error.h"

namespace rlx {

WordPiece::WordPiece(std::vector<std::pair<std::string, std::int64_t>> vocabulary, Options options)
    : options_(std::move(options)) {
  constexpr std::int64_t kMostChars = 4096;
  if (options_.max_chars < 0 || options_.max_chars > kMostChars) {
    throw InvalidArgument(fmt::format("max_input_chars_per_word is {}, expected at most {}",
                                      options_.max_chars, kMostChars));
  }
  ids_.reserve(vocabulary.size());
  for (auto& [token, id] : vocabulary) {
    longest_bytes_ = std::max(longest_bytes_, token.size());
    if (token.starts_with(options_.prefix)) {
      continuations_.emplace(token.substr(options_.prefix.size()), id);
    }
    const auto at = ids_.emplace(std::move(token), id).first;
    const auto [other, fresh] = tokens_.emplace(id, at->first);
    if (!fresh) {
      throw InvalidArgument(fmt::format("tokens {} and {} of the vocabulary have the same id {}",
                                        in_quotes(other->second), in_quotes(at->first), id));
    }
  }
  const auto unk = ids_.find(options_.unk_token);
  if (unk == ids_.end()) {
    throw InvalidArgument(
        fmt::format("the vocabulary lacks the unknown token {}", in_quotes(options_.unk_token)));
  }
  unk_id_ = unk->second;
}

std::optional<std::int64_t> WordPiece::id_of(std::string_view token) const {
  const auto at = ids_.find(token);
  if (at == ids_.end()) return {};
  return at->second;
}

std::optional<std::string_view> WordPiece::token_of(std::int64_t id) const {
  const auto at = tokens_.find(id);
  if (at == tokens_.end()) return {};
  return at->second;
}

void WordPiece::tokenize(std::span<const Char> word, std::vector<Token>& out) const {
  if (word.empty()) return;
  const std::size_t before = out.size();
  if (word.size() <= static_cast<std::size_t>(options_.max_chars) && split(word, out)) return;
  out.resize(before);
  out.push_back({unk_id_, word.front().begin, word.back().end});
}

bool WordPiece::split(std::span<const Char> word, std::vector<Token>& out) const {
  std::string text;
  std::vector<std::size_t> ends;  // of each character in `text`
  for (const Char& ch : word) {
    append_utf8(text, ch.c);
    ends.push_back(text.size());
  }
  for (std::size_t first = 0; first < word.size();) {
    const std::size_t from = first == 0 ? 0 : ends[first - 1];
    const StringMap<std::int64_t>& pieces = first == 0 ? ids_ : continuations_;
    // No token is longer than the longest.
    auto last = std::upper_bound(ends.begin() + static_cast<std::ptrdiff_t>(first), ends.end(),
                                 from + longest_bytes_);
    auto piece = pieces.end();
    while (last != ends.begin() + static_cast<std::ptrdiff_t>(first) && piece == pieces.end()) {
      --last;
      piece = pieces.find(std::string_view(text).substr(from, *last - from));
    }
    if (piece == pieces.end()) return false;
    const auto end = static_cast<std::size_t>(last - ends.begin());
    out.push_back({piece->second, word[first].begin, word[end].end});
    first = end + 1;
  }
  return true;
}

}  // namespace rlx
