#include "formats/tokenizers/tokenizer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/os_file.h"
#include "formats/json.h"
#include "rlx/error.h"
#include "temporary_folder.h"

namespace rlx {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::ThrowsMessage;

const std::string kCorpora = RLX_SOURCE_DIR "/tests/corpora/";

std::span<const std::byte> bytes_of(std::string_view text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

std::vector<std::int64_t> integers(const Json& value) {
  std::vector<std::int64_t> out;
  for (const Json& v : value.items("numbers")) out.push_back(v.integer("number"));
  return out;
}

std::vector<ByteRange> ranges(const Json& value) {
  std::vector<ByteRange> out;
  for (const Json& v : value.items("ranges")) {
    const std::vector<std::int64_t> ends = integers(v);
    out.push_back({static_cast<std::uint32_t>(ends[0]), static_cast<std::uint32_t>(ends[1])});
  }
  return out;
}

// Made by PyPI `tokenizers`: tests/python/write_tokenizer_samples.py.
TEST(Tokenizer, EqualsTheGoldenFile) {
  const Tokenizer tokenizer = Tokenizer::load(kCorpora + "tokenizer_json/small.json");
  const Json golden = Json::parse(read_file(kCorpora + "tokenizer_golden.json", 1 << 20));
  for (const Json& c : golden.at("cases", "golden").items("cases")) {
    const std::string& text = c.at("text", "case").string("text");
    const Json* pair = c.find("pair", "case");
    const Encoding e = pair == nullptr ? tokenizer.encode(text)
                                       : tokenizer.encode_pair(text, pair->string("pair"));
    EXPECT_EQ(e.ids, integers(c.at("ids", "case"))) << text;
    EXPECT_EQ(e.type_ids, integers(c.at("type_ids", "case"))) << text;
    EXPECT_EQ(e.mask, integers(c.at("mask", "case"))) << text;
    EXPECT_EQ(e.ranges, ranges(c.at("ranges", "case"))) << text;
    EXPECT_EQ(tokenizer.decode(e.ids), c.at("decoded", "case").string("decoded"));
    EXPECT_EQ(tokenizer.decode(e.ids, false), c.at("decoded_all", "case").string("decoded_all"));
  }
}

std::string plain(std::span<const Char> text) {
  std::string out;
  for (const Char& ch : text) append_utf8(out, ch.c);
  return out;
}

/// What the golden file hashes of one line: its words, and the line with its accents.
std::string normal_forms(const std::string& line) {
  const Chars normal = BertNormalizer().apply(decode_utf8(line));
  std::string out;
  for (const auto word : split_bert_words(normal)) out += (out.empty() ? "" : " ") + plain(word);
  BertNormalizer accented;
  accented.strip_accents = false;
  return out + '\n' + plain(accented.apply(decode_utf8(line)));
}

// Fails where another utf8proc knows other characters: tests/python/write_unicode_tables.py.
TEST(Tokenizer, TreatsEveryCodePointAsTheGoldenFile) {
  std::uint64_t hash = 0xcbf29ce484222325;
  std::string line;
  int count = 0;
  const auto finish_line = [&] {
    for (const char c : normal_forms(line)) {
      hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
    }
    line.clear();
    count = 0;
  };
  for (char32_t c = 0; c < 0x110000; ++c) {
    if (c >= 0xd800 && c < 0xe000) continue;
    line += count == 0 ? "a" : " a";
    append_utf8(line, c);
    line += 'b';
    if (++count == 64) finish_line();
  }
  if (count > 0) finish_line();
  const Json golden = Json::parse(read_file(kCorpora + "tokenizer_golden.json", 1 << 20));
  EXPECT_EQ(std::to_string(hash), golden.at("every_code_point", "golden").string("hash"));
}

TEST(Tokenizer, ReadsIllFormedUtf8AsReplacementCharacters) {
  const auto characters = [](std::string_view text) {
    std::u32string out;
    for (const Char& ch : decode_utf8(text)) out += ch.c;
    return out;
  };
  // Maximal parts, as in chapter 3 of the Unicode standard, table 3-8 and its neighbours.
  EXPECT_EQ(characters("\x61\xf1\x80\x80\xe1\x80\xc2\x62\x80\x63\x80\xbf\x64"),
            U"a\ufffd\ufffd\ufffdb\ufffdc\ufffd\ufffdd");
  EXPECT_EQ(characters("\xc0\xaf\xe0\x80\xbf\xf0\x81\x82\x41"),
            U"\ufffd\ufffd\ufffd\ufffd\ufffd\ufffd\ufffd\ufffdA");
  EXPECT_EQ(characters("\xed\xa0\x80\xf4\x91\x92\x93\xff"),
            U"\ufffd\ufffd\ufffd\ufffd\ufffd\ufffd\ufffd\ufffd");
  EXPECT_EQ(characters("\xe4\xbd"), U"\ufffd");
  EXPECT_EQ(characters("é漢🙂"), U"é漢🙂");
  EXPECT_EQ(decode_utf8("\xe4\xbd"
                        "a")[1]
                .begin,
            2U);
}

constexpr std::string_view kVocabulary =
    "[PAD]\n[UNK]\n[CLS]\n[SEP]\nhe\n##llo \r\n,\nh\nworld\n[MASK]";

TEST(Tokenizer, ReadsVocabularies) {
  const Tokenizer t = Tokenizer::from_vocabulary(bytes_of(kVocabulary));
  EXPECT_EQ(t.vocabulary_size(), 10U);
  EXPECT_EQ(t.id_of("##llo"), 5);
  EXPECT_EQ(t.token_of(8), "world");
  EXPECT_EQ(t.token_of(10), std::nullopt);
  const Encoding e = t.encode("Hello, [MASK] WORLDS");
  EXPECT_THAT(e.ids, ElementsAre(2, 4, 5, 6, 9, 1, 3));
  EXPECT_EQ(e.ranges[2], (ByteRange{2, 5}));
  EXPECT_EQ(e.ranges[4], (ByteRange{7, 13}));
  EXPECT_EQ(t.decode(e.ids), "hello,");
  EXPECT_EQ(t.decode(e.ids, false), "[CLS] hello, [MASK] [UNK] [SEP]");
  EXPECT_THAT([&] { t.decode(std::vector<std::int64_t>{10}); },
              ThrowsMessage<InvalidArgument>("id 10 is not in the vocabulary"));
}

TEST(Tokenizer, LoadsAFolderAndItsConfig) {
  const TemporaryFolder folder;
  write_file(folder / "vocab.txt", bytes_of(kVocabulary));
  EXPECT_THAT(Tokenizer::load(folder.path()).encode("HELLO").ids, ElementsAre(2, 4, 5, 3));
  write_file(folder / "tokenizer_config.json",
             bytes_of(R"({"do_lower_case": false, "mask_token": {"content": "world"}})"));
  const Tokenizer cased = Tokenizer::load(folder / "vocab.txt");
  EXPECT_THAT(cased.encode("HELLO hello").ids, ElementsAre(2, 1, 4, 5, 3));
  EXPECT_THAT(cased.encode("heworld").ids, ElementsAre(2, 4, 8, 3)) << "a special token splits";

  write_file(folder / "tokenizer.json", read_file(kCorpora + "tokenizer_json/tiny.json", 10000));
  EXPECT_EQ(Tokenizer::load(folder.path()).id_of("Foo"), 9) << "tokenizer.json comes first";
}

TEST(Tokenizer, CutsAndPadsABatch) {
  const Tokenizer t = Tokenizer::from_vocabulary(bytes_of(kVocabulary));
  EncodeOptions options;
  options.truncation.emplace().max_length = 5;
  options.padding.emplace();
  options.padding->multiple_of = 3;
  options.padding->id = 7;
  options.padding->type_id = 1;
  const std::vector<std::string> texts = {"he", "he h h h h", ""};
  const auto batch = t.encode_batch(texts, options);
  EXPECT_THAT(batch[0].ids, ElementsAre(2, 4, 3, 7, 7, 7));
  EXPECT_THAT(batch[0].mask, ElementsAre(1, 1, 1, 0, 0, 0));
  EXPECT_THAT(batch[0].type_ids, ElementsAre(0, 0, 0, 1, 1, 1));
  EXPECT_THAT(batch[1].ids, ElementsAre(2, 4, 7, 7, 3, 7));
  EXPECT_THAT(batch[2].ids, ElementsAre(2, 3, 7, 7, 7, 7));
  options.special_tokens = false;
  options.padding.reset();
  EXPECT_THAT(t.encode("he h h h h h", options).ids, ElementsAre(4, 7, 7, 7, 7));
  EXPECT_TRUE(t.encode_batch({}, options).empty());

  options.special_tokens = true;
  options.truncation->max_length = 1;
  EXPECT_THAT([&] { t.encode("he", options); },
              ThrowsMessage<InvalidArgument>("max_length 1 has no room for 2 special tokens"));
  options.truncation.reset();
  options.padding.emplace().length = std::int64_t{1} << 60;
  EXPECT_THAT(
      [&] { t.encode("he", options); },
      ThrowsMessage<InvalidArgument>(HasSubstr("the padded length is 1152921504606846976")));
}

TEST(Tokenizer, RefusesVocabulariesThatCannotWork) {
  const auto refused = [](std::string_view vocabulary, std::string_view config,
                          const std::string& message) {
    EXPECT_THAT([&] { Tokenizer::from_vocabulary(bytes_of(vocabulary), bytes_of(config)); },
                ThrowsMessage<Error>(HasSubstr(message)));
  };
  refused("", "", "the vocabulary lacks the unknown token '[UNK]' (at byte 0)");
  refused("[UNK]\n[CLS]", "", "the vocabulary lacks '[SEP]' (at byte 11)");
  refused(kVocabulary, R"({"do_basic_tokenize":false})", "do_basic_tokenize is false");
  refused(kVocabulary, R"({"never_split":["x"]})", "never_split is not supported");
  refused(kVocabulary, R"({"do_lower_case":1})", "do_lower_case is 1, expected true or false");
  refused(kVocabulary, "{", "not valid json");
  const TemporaryFolder folder;
  write_file(folder / "vocab.txt", bytes_of(kVocabulary));
  write_file(folder / "tokenizer_config.json", bytes_of("[]"));
  EXPECT_THAT([&] { Tokenizer::load(folder.path()); },
              ThrowsMessage<FormatError>(HasSubstr("tokenizer_config.json: ")));
  EXPECT_THAT([] { Tokenizer::load("/none"); },
              ThrowsMessage<FileError>(HasSubstr("/none: cannot open")));
}

/// tiny.json with one piece of its text replaced.
std::string changed(const std::string& from, const std::string& to) {
  const auto bytes = read_file(kCorpora + "tokenizer_json/tiny.json", 10000);
  std::string text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  const std::size_t at = text.find(from);
  if (at == std::string::npos) throw std::runtime_error("no " + from);
  return text.replace(at, from.size(), to);
}

TEST(TokenizerJson, HoldsTruncationPaddingAndAddedTokens) {
  const Tokenizer t = Tokenizer::load(kCorpora + "tokenizer_json/tiny.json");
  ASSERT_TRUE(t.defaults().truncation && t.defaults().padding);
  EXPECT_EQ(t.defaults().truncation->side, Side::left);
  EXPECT_EQ(t.defaults().padding->length, 8);
  EXPECT_EQ(t.vocabulary_size(), 7U);
  EXPECT_THAT(t.encode("ab. \tfoo").ids, ElementsAre(1, 3, 4, 5, 9, 2, 0, 0));
  EXPECT_THAT(t.encode("a a a a ab ab ab").ids, ElementsAre(1, 3, 4, 3, 4, 3, 4, 2));
}

TEST(TokenizerJson, NamesWhatIsNotSupported) {
  struct Case {
    std::string from, to, message;
  };
  const std::vector<Case> cases = {
      {R"("type": "WordPiece", "unk)", R"("type": "BPE", "unk)",
       "model is 'BPE', supported: WordPiece"},
      {R"("type": "BertNormalizer")", R"("type": "NFKC")",
       "normalizer is 'NFKC', supported: BertNormalizer"},
      {R"({"type": "BertPreTokenizer"})", R"({"type": "Whitespace"})",
       "pre_tokenizer is 'Whitespace', supported: BertPreTokenizer"},
      {R"({"type": "BertPreTokenizer"})", "null", "pre_tokenizer is null"},
      {R"("type": "TemplateProcessing")", R"("type": "RobertaProcessing")",
       "post_processor is 'RobertaProcessing', supported: BertProcessing, TemplateProcessing"},
      {R"("type": "WordPiece", "prefix")", R"("type": "Metaspace", "prefix")",
       "decoder is 'Metaspace', supported: WordPiece"},
      {R"("version")", R"("surprise")", "tokenizer.json has the key 'surprise'"},
      {R"("clean_text")", R"("clean")", "normalizer has the key 'clean', which is not known"},
      {R"({"SpecialToken")", R"({"Other")", "a piece of the template is 'Other', supported"},
  };
  for (const Case& c : cases) {
    const std::string text = changed(c.from, c.to);
    EXPECT_THAT([&] { Tokenizer::from_json(bytes_of(text)); },
                ThrowsMessage<Unsupported>(HasSubstr(c.message)));
  }
}

TEST(TokenizerJson, RefusesHostileFilesWithTheirOffset) {
  struct Case {
    std::string from, to, message, at;  ///< `at` stands where the error must point
  };
  const std::vector<Case> cases = {
      {R"("vocab": {)", R"("vocab": {"x": -1, )", "an id of model.vocab is -1", "-1"},
      {R"("a": 3)", R"("a": 3, "z": 3)", "have the same id 3", R"({"type": "WordPiece", "unk)"},
      {R"("[UNK]": 0)", R"("UNK": 0)", "lacks the unknown token", R"({"type": "WordPiece", "unk)"},
      {R"("max_input_chars_per_word": 100)", R"("max_input_chars_per_word": 100000)",
       "max_input_chars_per_word is 100000", R"({"type": "WordPiece", "unk)"},
      {R"("id": 9)", R"("id": 3)", "added token 'Foo' has the id 3 of 'a'", R"({"id": 3)"},
      {R"("content": "Foo")", R"("content": "a")", "has id 9, in the vocabulary it has 3",
       R"({"id": 9)"},
      {R"("content": "Foo")", R"("content": "")", "nothing of the added token ''", R"([{"id": 9)"},
      {R"("content": "Foo")", "\"content\": \"\u0301\"", "nothing of the added token",
       R"([{"id": 9)"},
      {R"("Fixed": 8)", R"("Fixed": "8")", "padding.strategy.Fixed is '8'", R"("8")"},
      {R"("direction": "Left")", R"("direction": "Up")", "truncation.direction is 'Up'", R"("Up")"},
      {R"("OnlyFirst")", R"("OnlyLast")", "truncation.strategy is 'OnlyLast'", R"("OnlyLast")"},
      {R"({"id": "A", "type_id": 0})", R"({"id": "C", "type_id": 0})",
       "the sequence of the template is 'C'", R"("C")"},
      {R"({"id": "A", "type_id": 0})", R"({"id": "B", "type_id": 0})",
       "expected a template with A once", R"([{"SpecialToken")"},
      {R"("id": "[CLS]", "type_id")", R"("id": "[X]", "type_id")", "'[X]' of the template is not",
       R"("[X]")"},
  };
  for (const Case& c : cases) {
    const std::string text = changed(c.from, c.to);
    try {
      Tokenizer::from_json(bytes_of(text));
      ADD_FAILURE() << c.message;
    } catch (const FormatError& error) {
      EXPECT_THAT(error.what(), HasSubstr(c.message));
      EXPECT_EQ(error.offset(), text.find(c.at)) << error.what();
    }
  }
  const std::string text = changed("", "");
  for (std::size_t n = 0; n < text.size(); ++n) {
    EXPECT_THROW(Tokenizer::from_json(bytes_of(text.substr(0, n))), FormatError) << n;
  }
}

}  // namespace
}  // namespace rlx
