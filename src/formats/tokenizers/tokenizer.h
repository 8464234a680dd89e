#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "formats/tokenizers/added_tokens.h"
#include "formats/tokenizers/bert_text.h"
#include "formats/tokenizers/wordpiece.h"

namespace rlx {

enum class Side { right, left };

/// Cuts a text, or a pair, that has more than `max_length` tokens, special ones included.
struct Truncation {
  enum class Strategy {
    longest_first,  ///< of a pair the longer text, then both
    only_first,
    only_second
  };
  std::int64_t max_length = 512;
  Strategy strategy = Strategy::longest_first;
  Side side = Side::right;  ///< where tokens are dropped
};

struct Padding {
  std::optional<std::int64_t> length;  ///< unset: that of the longest text of the batch
  std::int64_t multiple_of = 0;        ///< rounds the length up; 0 for no rounding
  Side side = Side::right;
  std::int64_t id = 0;
  std::int64_t type_id = 0;
};

struct EncodeOptions {
  bool special_tokens = true;
  std::optional<Truncation> truncation;
  std::optional<Padding> padding;
};

/// The bytes of the original text that a token stands for; empty for special tokens and padding.
struct ByteRange {
  std::uint32_t begin = 0;
  std::uint32_t end = 0;
  bool operator==(const ByteRange&) const = default;
};

/// All of equal length. `mask` is 1 for tokens and 0 for padding; `type_ids` tell the texts of a
/// pair apart; `ranges` count in the text that the token comes from.
struct Encoding {
  std::vector<std::int64_t> ids, type_ids, mask;
  std::vector<ByteRange> ranges;
};

/// The tokenizer of a BERT-family model: added tokens, BERT normaliser and words, WordPiece, a
/// template of special tokens, truncation, padding. Gives what PyPI `tokenizers` gives.
///
/// Texts are UTF-8; each ill-formed part counts as U+FFFD, which cleaning then drops. Immutable:
/// threads may share one.
class Tokenizer {
 public:
  /// `path`: a folder with `tokenizer.json`, else `vocab.txt` (and `tokenizer_config.json` if there
  /// is one), or one of these two files. Throws `FormatError` with file and byte for what is not as
  /// it must be and `Unsupported` naming the part of tokenizer.json that is not known here.
  static Tokenizer load(const std::string& path);
  static Tokenizer from_json(std::span<const std::byte> tokenizer_json);
  /// One token a line, its number is its id. `config` is tokenizer_config.json or empty.
  static Tokenizer from_vocabulary(std::span<const std::byte> vocab_txt,
                                   std::span<const std::byte> config = {});

  Tokenizer(Tokenizer&&) noexcept;
  Tokenizer& operator=(Tokenizer&&) noexcept;
  ~Tokenizer();

  /// What the file asks for: tokenizer.json may hold truncation and padding.
  const EncodeOptions& defaults() const noexcept;

  Encoding encode(std::string_view text) const { return encode(text, defaults()); }
  Encoding encode(std::string_view text, const EncodeOptions& options) const;
  Encoding encode_pair(std::string_view first, std::string_view second) const {
    return encode_pair(first, second, defaults());
  }
  Encoding encode_pair(std::string_view first, std::string_view second,
                       const EncodeOptions& options) const;
  /// With padding, all are of one length.
  std::vector<Encoding> encode_batch(std::span<const std::string> texts,
                                     const EncodeOptions& options) const;

  /// Joins tokens to text as the file's decoder says. Throws `InvalidArgument` for an unknown id.
  std::string decode(std::span<const std::int64_t> ids, bool skip_special_tokens = true) const;

  /// Tokens of the model and added ones.
  std::size_t vocabulary_size() const noexcept;
  std::optional<std::int64_t> id_of(std::string_view token) const;
  std::optional<std::string_view> token_of(std::int64_t id) const;

  struct Parts;
  explicit Tokenizer(Parts parts);

 private:
  struct State;
  std::unique_ptr<const State> state_;
};

/// One step of what a text becomes: a text's own tokens, or special tokens.
struct TemplatePiece {
  enum class Kind { first, second, special };
  Kind kind = Kind::first;
  std::int64_t type_id = 0;
  std::vector<std::int64_t> ids;  ///< of special ones
};

/// What a file says; `Tokenizer` adds what follows from it.
struct Tokenizer::Parts {
  explicit Parts(WordPiece wordpiece) : model(std::move(wordpiece)) {}

  BertNormalizer normalizer;
  bool normalizes = true;
  WordPiece model;
  std::vector<AddedToken> added;
  std::vector<TemplatePiece> single, pair;
  bool wordpiece_decoder = true;  ///< else tokens are joined by spaces
  std::string decoder_prefix = "##";
  bool cleanup = true;  ///< no spaces before punctuation in decoded text
  EncodeOptions defaults;
};

}  // namespace rlx
