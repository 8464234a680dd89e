#include <fmt/format.h>

#include <algorithm>
#include <initializer_list>
#include <set>

#include "base/os_file.h"
#include "formats/dense.h"
#include "formats/json.h"
#include "formats/tokenizers/tokenizer.h"
#include "rlx/error.h"

namespace rlx {
namespace {

/// A vocabulary of a million long tokens takes a tenth.
constexpr std::uint64_t kMaxFile = std::uint64_t{1} << 30;
constexpr std::size_t kLongestAddedToken = 4096;

using Keys = std::initializer_list<std::string_view>;

/// A key that is not known here could change the meaning of the others.
void require_known_keys(const Json& object, std::string_view what, Keys known) {
  for (const Json::Member& m : object.members(what)) {
    if (std::find(known.begin(), known.end(), m.key) != known.end()) continue;
    throw Unsupported(fmt::format("{} has the key {}, which is not known", what, in_quotes(m.key)));
  }
}

/// The "type" of a part, one of those that are `known`.
const std::string& type_of(const Json& part, std::string_view what, Keys known) {
  const std::string& type = part.at("type", what).string(fmt::format("{}.type", what));
  if (std::find(known.begin(), known.end(), type) != known.end()) return type;
  throw Unsupported(
      fmt::format("{} is {}, supported: {}", what, in_quotes(type), fmt::join(known, ", ")));
}

/// Absent or null leaves the default.
const Json* present(const Json& object, std::string_view key, std::string_view what) {
  const Json* value = object.find(key, what);
  return value == nullptr || value->is_null() ? nullptr : value;
}

bool bool_or(const Json& object, std::string_view key, std::string_view what, bool otherwise) {
  const Json* value = present(object, key, what);
  return value == nullptr ? otherwise : value->boolean(fmt::format("{}.{}", what, key));
}

std::int64_t natural_or(const Json& object, std::string_view key, std::string_view what,
                        std::int64_t otherwise) {
  const Json* value = present(object, key, what);
  return value == nullptr ? otherwise : value->natural(fmt::format("{}.{}", what, key));
}

void read_normalizer(const Json* part, Tokenizer::Parts& out) {
  out.normalizes = part != nullptr;
  if (part == nullptr) return;
  constexpr std::string_view kWhat = "normalizer";
  type_of(*part, kWhat, {"BertNormalizer"});
  require_known_keys(*part, kWhat,
                     {"type", "clean_text", "handle_chinese_chars", "strip_accents", "lowercase"});
  BertNormalizer& n = out.normalizer;
  n.clean_text = bool_or(*part, "clean_text", kWhat, true);
  n.handle_chinese_chars = bool_or(*part, "handle_chinese_chars", kWhat, true);
  n.lowercase = bool_or(*part, "lowercase", kWhat, true);
  if (const Json* strip = present(*part, "strip_accents", kWhat)) {
    n.strip_accents = strip->boolean("normalizer.strip_accents");
  }
}

void check_pre_tokenizer(const Json* part) {
  constexpr std::string_view kWhat = "pre_tokenizer";
  if (part == nullptr) throw Unsupported("pre_tokenizer is null, supported: BertPreTokenizer");
  type_of(*part, kWhat, {"BertPreTokenizer"});
  require_known_keys(*part, kWhat, {"type"});
}

WordPiece read_model(const Json& part) {
  constexpr std::string_view kWhat = "model";
  // The oldest files leave the type out.
  if (part.find("type", kWhat) != nullptr) type_of(part, kWhat, {"WordPiece"});
  require_known_keys(
      part, kWhat,
      {"type", "unk_token", "continuing_subword_prefix", "max_input_chars_per_word", "vocab"});
  WordPiece::Options options;
  options.unk_token = part.at("unk_token", kWhat).string("model.unk_token");
  options.prefix =
      part.at("continuing_subword_prefix", kWhat).string("model.continuing_subword_prefix");
  options.max_chars = natural_or(part, "max_input_chars_per_word", kWhat, 100);
  std::vector<std::pair<std::string, std::int64_t>> vocabulary;
  for (const Json::Member& m : part.at("vocab", kWhat).members("model.vocab")) {
    vocabulary.emplace_back(m.key, m.value.natural("an id of model.vocab"));
  }
  return WordPiece(std::move(vocabulary), std::move(options));
}

AddedToken read_added_token(const Json& part, const WordPiece& model) {
  constexpr std::string_view kWhat = "an added token";
  require_known_keys(part, kWhat,
                     {"id", "content", "single_word", "lstrip", "rstrip", "normalized", "special"});
  AddedToken token;
  token.id = part.at("id", kWhat).natural("the id of an added token");
  token.content = part.at("content", kWhat).string("the content of an added token");
  token.single_word = bool_or(part, "single_word", kWhat, false);
  token.lstrip = bool_or(part, "lstrip", kWhat, false);
  token.rstrip = bool_or(part, "rstrip", kWhat, false);
  token.special = bool_or(part, "special", kWhat, false);
  token.normalized = bool_or(part, "normalized", kWhat, !token.special);
  if (token.content.size() > kLongestAddedToken) {
    throw Unsupported(fmt::format("an added token has {} bytes, at most {} are supported",
                                  token.content.size(), kLongestAddedToken));
  }
  const auto known = model.id_of(token.content);
  if (known && *known != token.id) {
    throw FormatError(fmt::format("added token {} has id {}, in the vocabulary it has {}",
                                  in_quotes(token.content), token.id, *known),
                      part.offset());
  }
  const auto other = model.token_of(token.id);
  if (other && *other != token.content) {
    throw FormatError(fmt::format("added token {} has the id {} of {}", in_quotes(token.content),
                                  token.id, in_quotes(*other)),
                      part.offset());
  }
  return token;
}

void read_added_tokens(const Json* part, Tokenizer::Parts& out) {
  if (part == nullptr) return;
  std::set<std::string_view> contents;
  std::set<std::int64_t> ids;
  const auto items = part->items("added_tokens");
  out.added.reserve(items.size());
  for (const Json& item : items) {
    out.added.push_back(read_added_token(item, out.model));
    const AddedToken& token = out.added.back();
    if (!contents.insert(token.content).second || !ids.insert(token.id).second) {
      throw FormatError(fmt::format("added token {} or its id {} is given twice",
                                    in_quotes(token.content), token.id),
                        item.offset());
    }
  }
}

using Kind = TemplatePiece::Kind;

std::vector<TemplatePiece> plain_template(bool pair) {
  std::vector<TemplatePiece> out = {{Kind::first, 0, {}}};
  if (pair) out.push_back({Kind::second, 1, {}});
  return out;
}

/// [CLS] A [SEP] and [CLS] A [SEP] B [SEP], the latter two of type 1.
void set_bert_template(Tokenizer::Parts& out, std::int64_t cls, std::int64_t sep) {
  out.single = {{Kind::special, 0, {cls}}, {Kind::first, 0, {}}, {Kind::special, 0, {sep}}};
  out.pair = out.single;
  out.pair.push_back({Kind::second, 1, {}});
  out.pair.push_back({Kind::special, 1, {sep}});
}

/// ["[SEP]", 102]
std::int64_t token_pair(const Json& part, std::string_view key) {
  const std::string what = fmt::format("post_processor.{}", key);
  const Json& value = part.at(key, "post_processor");
  const auto items = value.items(what);
  if (items.size() != 2) value.fail(what, "a token and its id");
  items[0].string(what);
  return items[1].natural(what);
}

std::vector<std::int64_t> special_ids(const Json& specials, const Json& name) {
  const std::string& id = name.string("the id of a special token of the template");
  const Json* entry = specials.find(id, "post_processor.special_tokens");
  if (entry == nullptr) {
    throw FormatError(
        fmt::format("special token {} of the template is not described", in_quotes(id)),
        name.offset());
  }
  std::vector<std::int64_t> ids;
  for (const Json& value : entry->at("ids", "a special token").items("ids of a special token")) {
    ids.push_back(value.natural("an id of a special token"));
  }
  return ids;
}

TemplatePiece template_piece(const Json& part, const Json& specials) {
  constexpr std::string_view kWhat = "a piece of the template";
  const auto members = part.members(kWhat);
  if (members.size() != 1) part.fail(kWhat, "an object of one key");
  const Json& body = members[0].value;
  TemplatePiece piece;
  piece.type_id = body.at("type_id", kWhat).natural("type_id of the template");
  const Json& id = body.at("id", kWhat);
  if (members[0].key == "SpecialToken") {
    piece.kind = Kind::special;
    piece.ids = special_ids(specials, id);
    return piece;
  }
  if (members[0].key != "Sequence") {
    throw Unsupported(fmt::format("{} is {}, supported: SpecialToken, Sequence", kWhat,
                                  in_quotes(members[0].key)));
  }
  const std::string& sequence = id.string("the sequence of the template");
  if (sequence != "A" && sequence != "B") id.fail("the sequence of the template", "'A' or 'B'");
  piece.kind = sequence == "A" ? Kind::first : Kind::second;
  return piece;
}

std::vector<TemplatePiece> read_template(const Json& part, std::string_view key, bool pair) {
  const std::string what = fmt::format("post_processor.{}", key);
  const Json& pieces = part.at(key, "post_processor");
  std::vector<TemplatePiece> out;
  std::size_t firsts = 0, seconds = 0;
  for (const Json& piece : pieces.items(what)) {
    out.push_back(template_piece(piece, part.at("special_tokens", "post_processor")));
    firsts += out.back().kind == Kind::first;
    seconds += out.back().kind == Kind::second;
  }
  if (firsts != 1 || seconds != (pair ? 1 : 0)) {
    pieces.fail(what, pair ? "a template with A and B once" : "a template with A once");
  }
  return out;
}

void read_post_processor(const Json* part, Tokenizer::Parts& out) {
  if (part == nullptr) {
    out.single = plain_template(false);
    out.pair = plain_template(true);
    return;
  }
  constexpr std::string_view kWhat = "post_processor";
  if (type_of(*part, kWhat, {"BertProcessing", "TemplateProcessing"}) == "BertProcessing") {
    require_known_keys(*part, kWhat, {"type", "sep", "cls"});
    set_bert_template(out, token_pair(*part, "cls"), token_pair(*part, "sep"));
    return;
  }
  require_known_keys(*part, kWhat, {"type", "single", "pair", "special_tokens"});
  out.single = read_template(*part, "single", false);
  out.pair = read_template(*part, "pair", true);
}

void read_decoder(const Json* part, Tokenizer::Parts& out) {
  out.wordpiece_decoder = part != nullptr;
  if (part == nullptr) return;
  constexpr std::string_view kWhat = "decoder";
  type_of(*part, kWhat, {"WordPiece"});
  require_known_keys(*part, kWhat, {"type", "prefix", "cleanup"});
  out.decoder_prefix = part->at("prefix", kWhat).string("decoder.prefix");
  out.cleanup = bool_or(*part, "cleanup", kWhat, true);
}

Side side_or_right(const Json& part, std::string_view what) {
  const Json* value = present(part, "direction", what);
  if (value == nullptr) return Side::right;
  const std::string& side = value->string(fmt::format("{}.direction", what));
  if (side != "Right" && side != "Left")
    value->fail(fmt::format("{}.direction", what), "'Right' or 'Left'");
  return side == "Right" ? Side::right : Side::left;
}

Truncation read_truncation(const Json& part) {
  constexpr std::string_view kWhat = "truncation";
  require_known_keys(part, kWhat, {"max_length", "strategy", "stride", "direction"});
  Truncation out;
  out.max_length = part.at("max_length", kWhat).natural("truncation.max_length");
  out.side = side_or_right(part, kWhat);
  const Json& strategy = part.at("strategy", kWhat);
  const std::string& name = strategy.string("truncation.strategy");
  if (name == "OnlyFirst") {
    out.strategy = Truncation::Strategy::only_first;
  } else if (name == "OnlySecond") {
    out.strategy = Truncation::Strategy::only_second;
  } else if (name != "LongestFirst") {
    strategy.fail("truncation.strategy", "'LongestFirst', 'OnlyFirst' or 'OnlySecond'");
  }
  return out;
}

Padding read_padding(const Json& part) {
  constexpr std::string_view kWhat = "padding";
  require_known_keys(
      part, kWhat,
      {"strategy", "direction", "pad_to_multiple_of", "pad_id", "pad_type_id", "pad_token"});
  Padding out;
  const Json& strategy = part.at("strategy", kWhat);
  if (strategy.is_object()) {
    require_known_keys(strategy, "padding.strategy", {"Fixed"});
    out.length = strategy.at("Fixed", "padding.strategy").natural("padding.strategy.Fixed");
  } else if (strategy.string("padding.strategy") != "BatchLongest") {
    strategy.fail("padding.strategy", "'BatchLongest' or a fixed length");
  }
  out.side = side_or_right(part, kWhat);
  out.multiple_of = natural_or(part, "pad_to_multiple_of", kWhat, 0);
  out.id = natural_or(part, "pad_id", kWhat, 0);
  out.type_id = natural_or(part, "pad_type_id", kWhat, 0);
  return out;
}

/// Model and tokens are checked where they are built; here their errors get a place in the file.
template <class Build>
auto located(std::uint64_t offset, Build build) {
  try {
    return build();
  } catch (const InvalidArgument& error) {
    throw FormatError(error.what(), offset);
  }
}

std::string_view without_trailing_space(std::string_view line) {
  const Chars chars = decode_utf8(line);
  auto end = chars.end();
  while (end != chars.begin() && is_white_space(std::prev(end)->c)) --end;
  return line.substr(0, end == chars.begin() ? 0 : std::prev(end)->end);
}

/// The token of a line is what stands before trailing white space; of equal lines the last counts.
std::vector<std::pair<std::string, std::int64_t>> read_lines(std::string_view text) {
  StringMap<std::int64_t> ids;
  for (std::int64_t id = 0; !text.empty(); ++id) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    ids.insert_or_assign(std::string(without_trailing_space(text.substr(0, end))), id);
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return {ids.begin(), ids.end()};
}

/// A special token of tokenizer_config.json: a string, or an object with the content.
std::string token_name(const Json& config, std::string_view key, std::string_view otherwise) {
  const Json* value = present(config, key, "tokenizer_config.json");
  if (value == nullptr) return std::string(otherwise);
  if (value->is_object()) return value->at("content", key).string(key);
  return value->string(key);
}

AddedToken special_token(const WordPiece& model, const std::string& content) {
  AddedToken token;
  token.id = *model.id_of(content);
  token.content = content;
  token.special = true;
  return token;
}

/// What tokenizer_config.json says of a `vocab.txt`.
struct VocabularyConfig {
  BertNormalizer normalizer;
  std::string unk = "[UNK]", sep = "[SEP]", pad = "[PAD]", cls = "[CLS]", mask = "[MASK]";
};

VocabularyConfig read_config(std::span<const std::byte> text) {
  constexpr std::string_view kWhat = "tokenizer_config.json";
  VocabularyConfig out;
  if (text.empty()) return out;
  const Json config = Json::parse(text);
  if (!bool_or(config, "do_basic_tokenize", kWhat, true)) {
    throw Unsupported("do_basic_tokenize is false, supported: true");
  }
  const Json* never = present(config, "never_split", kWhat);
  if (never != nullptr && !never->items("never_split").empty()) {
    throw Unsupported("never_split is not supported");
  }
  out.normalizer.lowercase = bool_or(config, "do_lower_case", kWhat, true);
  out.normalizer.handle_chinese_chars = bool_or(config, "tokenize_chinese_chars", kWhat, true);
  if (const Json* strip = present(config, "strip_accents", kWhat)) {
    out.normalizer.strip_accents = strip->boolean("strip_accents");
  }
  out.unk = token_name(config, "unk_token", out.unk);
  out.sep = token_name(config, "sep_token", out.sep);
  out.pad = token_name(config, "pad_token", out.pad);
  out.cls = token_name(config, "cls_token", out.cls);
  out.mask = token_name(config, "mask_token", out.mask);
  return out;
}

Tokenizer build_from_vocabulary(std::string_view text, const VocabularyConfig& config) {
  WordPiece::Options options;
  options.unk_token = config.unk;
  Tokenizer::Parts parts(WordPiece(read_lines(text), std::move(options)));
  parts.normalizer = config.normalizer;
  for (const std::string& needed : {config.sep, config.cls}) {
    if (parts.model.id_of(needed)) continue;
    throw InvalidArgument(fmt::format("the vocabulary lacks {}", in_quotes(needed)));
  }
  std::set<std::string> seen;
  for (const auto& content : {config.unk, config.sep, config.pad, config.cls, config.mask}) {
    if (!parts.model.id_of(content) || !seen.insert(content).second) continue;
    parts.added.push_back(special_token(parts.model, content));
  }
  set_bert_template(parts, *parts.model.id_of(config.cls), *parts.model.id_of(config.sep));
  return Tokenizer(std::move(parts));
}

template <class Parse>
auto in_file(const std::string& path, Parse parse) {
  try {
    return parse(read_file(path, kMaxFile));
  } catch (Error& error) {
    error.in_file(path);
    throw;
  }
}

/// A text that is no vocabulary is at fault as a whole: at its end something is missing.
Tokenizer parse_vocabulary(std::span<const std::byte> bytes, const VocabularyConfig& config) {
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  return located(text.size(), [&] { return build_from_vocabulary(text, config); });
}

Tokenizer load_vocabulary(const std::string& path, const std::string& folder) {
  const std::string config_path = folder + "/tokenizer_config.json";
  const VocabularyConfig config =
      is_file(config_path) ? in_file(config_path, read_config) : VocabularyConfig();
  return in_file(
      path, [&](const std::vector<std::byte>& text) { return parse_vocabulary(text, config); });
}

}  // namespace

Tokenizer Tokenizer::from_json(std::span<const std::byte> tokenizer_json) {
  constexpr std::string_view kWhat = "tokenizer.json";
  const Json doc = Json::parse(tokenizer_json);
  require_known_keys(doc, kWhat,
                     {"version", "truncation", "padding", "added_tokens", "normalizer",
                      "pre_tokenizer", "post_processor", "decoder", "model"});
  const Json& model = doc.at("model", kWhat);
  Parts parts(located(model.offset(), [&] { return read_model(model); }));
  read_normalizer(present(doc, "normalizer", kWhat), parts);
  check_pre_tokenizer(present(doc, "pre_tokenizer", kWhat));
  const Json* added = present(doc, "added_tokens", kWhat);
  read_added_tokens(added, parts);
  read_post_processor(present(doc, "post_processor", kWhat), parts);
  read_decoder(present(doc, "decoder", kWhat), parts);
  if (const Json* part = present(doc, "truncation", kWhat)) {
    parts.defaults.truncation = read_truncation(*part);
  }
  if (const Json* part = present(doc, "padding", kWhat))
    parts.defaults.padding = read_padding(*part);
  return located(added == nullptr ? 0 : added->offset(),
                 [&] { return Tokenizer(std::move(parts)); });
}

Tokenizer Tokenizer::from_vocabulary(std::span<const std::byte> vocab_txt,
                                     std::span<const std::byte> config) {
  return parse_vocabulary(vocab_txt, read_config(config));
}

Tokenizer Tokenizer::load(const std::string& path) {
  const bool folder = is_folder(path);
  const std::string json = folder ? path + "/tokenizer.json" : path;
  if (folder ? is_file(json) : path.ends_with(".json")) {
    return in_file(json, [](const std::vector<std::byte>& text) { return from_json(text); });
  }
  if (folder) return load_vocabulary(path + "/vocab.txt", path);
  const std::size_t slash = path.rfind('/');
  return load_vocabulary(path, slash == std::string::npos ? "." : path.substr(0, slash));
}

}  // namespace rlx
