#include "models/bert_config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/os_file.h"
#include "rlx/error.h"
#include "temporary_folder.h"

namespace rlx {
namespace {

using testing::HasSubstr;
using testing::ThrowsMessage;

// As all-MiniLM-L6-v2 has it.
const std::string kMiniLm = R"({
  "architectures": ["BertModel"], "attention_probs_dropout_prob": 0.1, "hidden_act": "gelu",
  "hidden_size": 384, "intermediate_size": 1536, "layer_norm_eps": 1e-12,
  "max_position_embeddings": 512, "model_type": "bert", "num_attention_heads": 12,
  "num_hidden_layers": 6, "pad_token_id": 0, "position_embedding_type": "absolute",
  "type_vocab_size": 2, "use_cache": true, "vocab_size": 30522
})";

std::span<const std::byte> bytes_of(const std::string& text) {
  return std::as_bytes(std::span(text));
}

std::string changed(const std::string& from, const std::string& to) {
  std::string text = kMiniLm;
  return text.replace(text.find(from), from.size(), to);
}

TEST(BertConfig, ReadsTheFolderOfAModel) {
  const TemporaryFolder folder;
  write_file(folder / "config.json", bytes_of(kMiniLm));
  const BertConfig c = BertConfig::load(folder.path());
  EXPECT_EQ(c.hidden_size, 384);
  EXPECT_EQ(c.num_hidden_layers, 6);
  EXPECT_EQ(c.num_attention_heads, 12);
  EXPECT_EQ(c.head_size(), 32);
  EXPECT_EQ(c.intermediate_size, 1536);
  EXPECT_EQ(c.vocab_size, 30522);
  EXPECT_EQ(c.max_position_embeddings, 512);
  EXPECT_EQ(c.type_vocab_size, 2);
  EXPECT_EQ(c.hidden_act, BertConfig::Activation::gelu);
  EXPECT_EQ(c.layer_norm_eps, 1e-12);
}

TEST(BertConfig, TakesDefaultsAndOtherActivations) {
  const std::string text = changed(R"("layer_norm_eps": 1e-12,)", R"("layer_norm_eps": null,)");
  EXPECT_EQ(BertConfig::parse(bytes_of(text)).layer_norm_eps, 1e-12);
  const std::string tanh = changed(R"("gelu")", R"("gelu_new")");
  EXPECT_EQ(BertConfig::parse(bytes_of(tanh)).hidden_act, BertConfig::Activation::gelu_tanh);
}

struct Bad {
  std::string from, to, message;
};

TEST(BertConfig, NamesKeyFoundAndExpected) {
  const std::vector<Bad> malformed = {
      {"\"hidden_size\"", "\"size\"", "config.json has no key 'hidden_size' (at byte 0)"},
      {"384", "\"384\"", "hidden_size is '384', expected an integer"},
      {"384", "0", "hidden_size is 0, expected 1 to 2147483647"},
      {"30522", "4294967296", "vocab_size is 4294967296, expected 1 to 2147483647"},
      {": 12,", ": 7,", "num_attention_heads is 7, expected a divisor of hidden_size 384"},
      {"1e-12", "0", "layer_norm_eps is 0, expected a number between 0 and 1"},
      {"\"model_type\"", "\"type\"", "config.json has no key 'model_type'"},
      {"\"bert\"", "3", "model_type is 3, expected a string"},
      {"{", "[", "not valid json"},
  };
  for (const Bad& bad : malformed) {
    const std::string text = changed(bad.from, bad.to);
    EXPECT_THAT([&] { BertConfig::parse(bytes_of(text)); },
                ThrowsMessage<FormatError>(HasSubstr(bad.message)));
  }
  const std::vector<Bad> unsupported = {
      {"\"bert\"", "\"t5\"", "model_type is 't5', supported: bert"},
      {"\"absolute\"", "\"relative_key\"", "position_embedding_type is 'relative_key'"},
      {"\"gelu\"", "\"mish\"", "hidden_act is 'mish', supported: gelu, gelu_new"},
      {"\"use_cache\"", "\"is_decoder\"", "is_decoder is true, supported: false"},
  };
  for (const Bad& bad : unsupported) {
    const std::string text = changed(bad.from, bad.to);
    EXPECT_THAT([&] { BertConfig::parse(bytes_of(text)); },
                ThrowsMessage<Unsupported>(HasSubstr(bad.message)));
  }
  EXPECT_THAT([] { BertConfig::load("/none"); },
              ThrowsMessage<FileError>(HasSubstr("/none: cannot open")));
}

}  // namespace
}  // namespace rlx
