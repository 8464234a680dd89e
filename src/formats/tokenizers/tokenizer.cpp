#include "formats/tokenizers/tokenizer.h"

#include <fmt/format.h>

#include <algorithm>

#include "formats/dense.h"
#include "rlx/error.h"

namespace rlx {
namespace {

/// Far above any model's; keeps a wrong number from taking all memory.
constexpr std::int64_t kMostTokens = 1 << 24;

void require_length(std::int64_t value, std::string_view what) {
  if (value >= 0 && value <= kMostTokens) return;
  throw InvalidArgument(fmt::format("{} is {}, expected 0 to {}", what, value, kMostTokens));
}

void cut(std::vector<Token>& tokens, std::size_t length, Side side) {
  if (tokens.size() <= length) return;
  const auto excess = static_cast<std::ptrdiff_t>(tokens.size() - length);
  if (side == Side::right) {
    tokens.erase(tokens.end() - excess, tokens.end());
  } else {
    tokens.erase(tokens.begin(), tokens.begin() + excess);
  }
}

/// How many tokens of a pair stay: the longer text is cut first, then both to about equal halves.
std::pair<std::size_t, std::size_t> fit_pair(std::size_t a, std::size_t b, std::size_t room) {
  const bool swapped = a > b;
  if (swapped) std::swap(a, b);
  b = a > room ? a : std::max(a, room - a);
  if (a + b > room) {
    a = room / 2;
    b = a + room % 2;
  }
  if (swapped) std::swap(a, b);
  return {a, b};
}

void cut_one(std::vector<Token>& tokens, std::size_t excess, const Truncation& how,
             std::string_view which) {
  if (tokens.size() <= excess) {
    throw InvalidArgument(
        fmt::format("the {} text has {} tokens, too few to drop {} and fit max_length {}", which,
                    tokens.size(), excess, how.max_length));
  }
  cut(tokens, tokens.size() - excess, how.side);
}

/// `specials` tokens come on top.
void truncate(std::vector<Token>& first, std::vector<Token>* second, std::int64_t specials,
              const Truncation& how) {
  require_length(how.max_length, "max_length");
  if (how.max_length < specials) {
    throw InvalidArgument(
        fmt::format("max_length {} has no room for {} special tokens", how.max_length, specials));
  }
  const auto room = static_cast<std::size_t>(how.max_length - specials);
  const std::size_t total = first.size() + (second == nullptr ? 0 : second->size());
  if (total <= room) return;
  if (room == 0) {
    first.clear();
    if (second != nullptr) second->clear();
    return;
  }
  switch (how.strategy) {
    case Truncation::Strategy::longest_first: {
      if (second == nullptr) return cut(first, room, how.side);
      const auto [a, b] = fit_pair(first.size(), second->size(), room);
      cut(first, a, how.side);
      cut(*second, b, how.side);
      return;
    }
    case Truncation::Strategy::only_first:
      return cut_one(first, total - room, how, "first");
    case Truncation::Strategy::only_second:
      if (second == nullptr) {
        throw InvalidArgument("truncation of the second text only, but there is one text");
      }
      return cut_one(*second, total - room, how, "second");
  }
}

void append(Encoding& out, std::int64_t id, std::int64_t type_id, ByteRange range) {
  out.ids.push_back(id);
  out.type_ids.push_back(type_id);
  out.mask.push_back(1);
  out.ranges.push_back(range);
}

std::size_t padded_length(std::size_t longest, const Padding& how) {
  require_length(how.multiple_of, "the multiple of the padded length");
  require_length(how.length.value_or(0), "the padded length");
  std::size_t length = how.length ? static_cast<std::size_t>(*how.length) : longest;
  const auto multiple = static_cast<std::size_t>(how.multiple_of);
  if (multiple > 0) length = (length + multiple - 1) / multiple * multiple;
  return length;
}

void pad(Encoding& out, std::size_t length, const Padding& how) {
  if (out.ids.size() >= length) return;
  const std::size_t missing = length - out.ids.size();
  const auto fill = [&](auto& values, auto value) {
    const auto at = how.side == Side::right ? values.end() : values.begin();
    values.insert(at, missing, value);
  };
  fill(out.ids, how.id);
  fill(out.type_ids, how.type_id);
  fill(out.mask, std::int64_t{0});
  fill(out.ranges, ByteRange{});
}

std::string replaced(std::string text, std::string_view from, std::string_view to) {
  for (std::size_t at = text.find(from); at != std::string::npos;
       at = text.find(from, at + to.size())) {
    text.replace(at, from.size(), to);
  }
  return text;
}

/// English text without the spaces that splitting put in.
std::string cleaned_up(std::string text) {
  constexpr std::pair<std::string_view, std::string_view> kRules[] = {
      {" .", "."},   {" ?", "?"},     {" !", "!"},    {" ,", ","},
      {" ' ", "'"},  {" n't", "n't"}, {" 'm", "'m"},  {" do not", " don't"},
      {" 's", "'s"}, {" 've", "'ve"}, {" 're", "'re"}};
  for (const auto& [from, to] : kRules) text = replaced(std::move(text), from, to);
  return text;
}

}  // namespace

struct Tokenizer::State {
  explicit State(Parts p);

  std::vector<Token> tokenize(std::string_view text) const;
  void tokenize_words(std::span<const Char> normal, std::vector<Token>& out) const;
  Encoding assemble(std::vector<Token> first, std::vector<Token>* second,
                    const EncodeOptions& options) const;

  Parts parts;
  AddedTokenMatcher raw, normal;  ///< looked for before and after normalising
  StringMap<const AddedToken*> added_ids;
  std::unordered_map<std::int64_t, const AddedToken*> added_tokens;
};

Tokenizer::State::State(Parts p) : parts(std::move(p)) {
  for (const AddedToken& token : parts.added) {
    Chars pattern = decode_utf8(token.content);
    if (token.normalized && parts.normalizes) pattern = parts.normalizer.apply(std::move(pattern));
    if (pattern.empty()) {
      throw InvalidArgument(fmt::format("nothing of the added token {} is left to look for",
                                        in_quotes(token.content)));
    }
    (token.normalized ? normal : raw).add(token, pattern);
    added_ids.emplace(token.content, &token);
    added_tokens.emplace(token.id, &token);
  }
}

void Tokenizer::State::tokenize_words(std::span<const Char> normal_text,
                                      std::vector<Token>& out) const {
  for (const std::span<const Char> word : split_bert_words(normal_text)) {
    parts.model.tokenize(word, out);
  }
}

std::vector<Token> Tokenizer::State::tokenize(std::string_view text) const {
  std::vector<Token> out;
  const auto take = [&](const TextPart& part) {
    out.push_back({part.token->id, part.text.front().begin, part.text.back().end});
  };
  const Chars chars = decode_utf8(text);
  for (const TextPart& part : raw.split(chars)) {
    if (part.token != nullptr) {
      take(part);
      continue;
    }
    Chars piece(part.text.begin(), part.text.end());
    if (parts.normalizes) piece = parts.normalizer.apply(std::move(piece));
    for (const TextPart& inner : normal.split(piece)) {
      if (inner.token != nullptr) {
        take(inner);
      } else {
        tokenize_words(inner.text, out);
      }
    }
  }
  return out;
}

Encoding Tokenizer::State::assemble(std::vector<Token> first, std::vector<Token>* second,
                                    const EncodeOptions& options) const {
  const std::vector<TemplatePiece>& pieces = second == nullptr ? parts.single : parts.pair;
  if (options.truncation) {
    std::int64_t specials = 0;
    for (const TemplatePiece& p : pieces) specials += static_cast<std::int64_t>(p.ids.size());
    truncate(first, second, options.special_tokens ? specials : 0, *options.truncation);
  }
  Encoding out;
  for (const TemplatePiece& piece : pieces) {
    if (piece.kind == TemplatePiece::Kind::special) {
      if (!options.special_tokens) continue;
      for (const std::int64_t id : piece.ids) append(out, id, piece.type_id, {});
      continue;
    }
    const bool is_first = piece.kind == TemplatePiece::Kind::first;
    for (const Token& t : is_first ? first : *second) {
      append(out, t.id, piece.type_id, {t.begin, t.end});
    }
  }
  return out;
}

Tokenizer::Tokenizer(Parts parts) : state_(std::make_unique<const State>(std::move(parts))) {}
Tokenizer::Tokenizer(Tokenizer&&) noexcept = default;
Tokenizer& Tokenizer::operator=(Tokenizer&&) noexcept = default;
Tokenizer::~Tokenizer() = default;

const EncodeOptions& Tokenizer::defaults() const noexcept { return state_->parts.defaults; }

Encoding Tokenizer::encode(std::string_view text, const EncodeOptions& options) const {
  Encoding out = state_->assemble(state_->tokenize(text), nullptr, options);
  if (options.padding) pad(out, padded_length(out.ids.size(), *options.padding), *options.padding);
  return out;
}

Encoding Tokenizer::encode_pair(std::string_view first, std::string_view second,
                                const EncodeOptions& options) const {
  std::vector<Token> after = state_->tokenize(second);
  Encoding out = state_->assemble(state_->tokenize(first), &after, options);
  if (options.padding) pad(out, padded_length(out.ids.size(), *options.padding), *options.padding);
  return out;
}

std::vector<Encoding> Tokenizer::encode_batch(std::span<const std::string> texts,
                                              const EncodeOptions& options) const {
  std::vector<Encoding> out;
  std::size_t longest = 0;
  for (const std::string& text : texts) {
    out.push_back(state_->assemble(state_->tokenize(text), nullptr, options));
    longest = std::max(longest, out.back().ids.size());
  }
  if (!options.padding) return out;
  const std::size_t length = padded_length(longest, *options.padding);
  for (Encoding& e : out) pad(e, length, *options.padding);
  return out;
}

std::string Tokenizer::decode(std::span<const std::int64_t> ids, bool skip_special_tokens) const {
  const Parts& parts = state_->parts;
  std::string text;
  bool first = true;
  for (const std::int64_t id : ids) {
    const auto token = token_of(id);
    if (!token) throw InvalidArgument(fmt::format("id {} is not in the vocabulary", id));
    const auto added = state_->added_tokens.find(id);
    const bool special = added != state_->added_tokens.end() && added->second->special;
    if (special && skip_special_tokens) continue;

    std::string piece(*token);
    const bool continues = parts.wordpiece_decoder && piece.starts_with(parts.decoder_prefix);
    if (!first && continues) piece.erase(0, parts.decoder_prefix.size());
    if (!first && !continues) piece.insert(0, 1, ' ');
    text += parts.wordpiece_decoder && parts.cleanup ? cleaned_up(std::move(piece)) : piece;
    first = false;
  }
  return text;
}

std::size_t Tokenizer::vocabulary_size() const noexcept {
  std::size_t extra = 0;
  for (const AddedToken& token : state_->parts.added) {
    if (!state_->parts.model.id_of(token.content)) ++extra;
  }
  return state_->parts.model.size() + extra;
}

std::optional<std::int64_t> Tokenizer::id_of(std::string_view token) const {
  const auto added = state_->added_ids.find(token);
  if (added != state_->added_ids.end()) return added->second->id;
  return state_->parts.model.id_of(token);
}

std::optional<std::string_view> Tokenizer::token_of(std::int64_t id) const {
  const auto added = state_->added_tokens.find(id);
  if (added != state_->added_tokens.end()) return added->second->content;
  return state_->parts.model.token_of(id);
}

}  // namespace rlx
