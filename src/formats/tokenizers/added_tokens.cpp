#include "formats/tokenizers/added_tokens.h"

#include <algorithm>

namespace rlx {
namespace {

std::uint64_t edge(std::uint32_t node, char32_t c) { return std::uint64_t{node} << 32 | c; }

bool stands_alone(std::span<const Char> text, std::size_t begin, std::size_t end) {
  const bool word_before = begin > 0 && is_word_character(text[begin - 1].c);
  const bool word_after = end < text.size() && is_word_character(text[end].c);
  return !word_before && !word_after;
}

}  // namespace

void AddedTokenMatcher::add(const AddedToken& token, std::span<const Char> pattern) {
  std::uint32_t node = 0;
  for (const Char& ch : pattern) {
    const auto next = static_cast<std::uint32_t>(tokens_.size());
    const auto [at, fresh] = children_.emplace(edge(node, ch.c), next);
    if (fresh) tokens_.push_back(nullptr);
    node = at->second;
  }
  if (tokens_[node] == nullptr) tokens_[node] = &token;
}

AddedTokenMatcher::Match AddedTokenMatcher::longest_at(std::span<const Char> text) const {
  Match best;
  std::uint32_t node = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto next = children_.find(edge(node, text[i].c));
    if (next == children_.end()) break;
    node = next->second;
    if (tokens_[node] != nullptr) best = {tokens_[node], i + 1};
  }
  return best;
}

std::vector<TextPart> AddedTokenMatcher::split(std::span<const Char> text) const {
  std::vector<TextPart> parts;
  std::size_t done = 0;
  for (std::size_t at = 0; at < text.size() && !empty();) {
    const Match match = longest_at(text.subspan(at));
    if (match.token == nullptr) {
      ++at;
      continue;
    }
    std::size_t begin = at;
    std::size_t end = at + match.length;
    at = end;
    if (match.token->single_word && !stands_alone(text, begin, end)) continue;
    while (match.token->lstrip && begin > done && is_white_space(text[begin - 1].c)) --begin;
    while (match.token->rstrip && end < text.size() && is_white_space(text[end].c)) ++end;
    // A token whose white space the one before took keeps what is left of it.
    begin = std::max(begin, done);
    if (begin > done) parts.push_back({nullptr, text.subspan(done, begin - done)});
    if (end > begin) parts.push_back({match.token, text.subspan(begin, end - begin)});
    done = std::max(done, end);
  }
  if (done < text.size()) parts.push_back({nullptr, text.subspan(done)});
  return parts;
}

}  // namespace rlx
