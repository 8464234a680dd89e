#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace rlx {

/// What config.json of a Hugging Face folder says of a BERT encoder. All sizes are positive and
/// below 2^31.
struct BertConfig {
  enum class Activation { gelu, gelu_tanh, relu, silu };

  std::int64_t hidden_size = 0;
  std::int64_t num_hidden_layers = 0;
  std::int64_t num_attention_heads = 0;  ///< divides `hidden_size`
  std::int64_t intermediate_size = 0;
  std::int64_t vocab_size = 0;
  std::int64_t max_position_embeddings = 0;
  std::int64_t type_vocab_size = 2;
  Activation hidden_act = Activation::gelu;
  double layer_norm_eps = 1e-12;  ///< positive, below 1

  std::int64_t head_size() const { return hidden_size / num_attention_heads; }

  /// Throws `FormatError` naming key, found and expected, and `Unsupported` for a model type other
  /// than "bert", positions that are not absolute, a decoder, or an unknown activation. Keys that
  /// only matter in training are left alone; those with a default here may be absent.
  static BertConfig parse(std::span<const std::byte> config_json);
  /// `path` is config.json or its folder.
  static BertConfig load(const std::string& path);
};

}  // namespace rlx
