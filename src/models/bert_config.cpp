#include "models/bert_config.h"

#include <fmt/format.h>

#include <string_view>

#include "base/os_file.h"
#include "formats/dense.h"
#include "formats/json.h"
#include "rlx/error.h"

namespace rlx {
namespace {

constexpr std::string_view kWhat = "config.json";
constexpr std::uint64_t kMaxFile = std::uint64_t{1} << 24;
constexpr std::int64_t kMaxSize = (std::int64_t{1} << 31) - 1;

struct ActivationName {
  std::string_view name;
  BertConfig::Activation activation;
};
constexpr ActivationName kActivations[] = {
    {"gelu", BertConfig::Activation::gelu},
    {"gelu_new", BertConfig::Activation::gelu_tanh},
    {"gelu_fast", BertConfig::Activation::gelu_tanh},
    {"gelu_pytorch_tanh", BertConfig::Activation::gelu_tanh},
    {"relu", BertConfig::Activation::relu},
    {"silu", BertConfig::Activation::silu},
    {"swish", BertConfig::Activation::silu},
};

/// Absent or null leaves the default.
const Json* present(const Json& config, std::string_view key) {
  const Json* value = config.find(key, kWhat);
  return value == nullptr || value->is_null() ? nullptr : value;
}

std::int64_t size_of(const Json& value, std::string_view key) {
  const std::int64_t size = value.integer(key);
  if (size < 1 || size > kMaxSize) value.fail(key, fmt::format("1 to {}", kMaxSize));
  return size;
}

void require_text(const Json& config, std::string_view key, std::string_view wanted) {
  const Json* value = present(config, key);
  if (value == nullptr || value->string(key) == wanted) return;
  throw Unsupported(fmt::format("{} is {}, supported: {}", key, value->found(), wanted));
}

void require_off(const Json& config, std::string_view key) {
  const Json* value = present(config, key);
  if (value == nullptr || !value->boolean(key)) return;
  throw Unsupported(fmt::format("{} is true, supported: false", key));
}

BertConfig::Activation activation_from(const Json& value) {
  const std::string& name = value.string("hidden_act");
  std::string known;
  for (const ActivationName& a : kActivations) {
    if (a.name == name) return a.activation;
    known += (known.empty() ? "" : ", ") + std::string(a.name);
  }
  throw Unsupported(fmt::format("hidden_act is {}, supported: {}", in_quotes(name), known));
}

}  // namespace

BertConfig BertConfig::parse(std::span<const std::byte> config_json) {
  const Json config = Json::parse(config_json);
  config.at("model_type", kWhat).string("model_type");
  require_text(config, "model_type", "bert");
  require_text(config, "position_embedding_type", "absolute");
  require_off(config, "is_decoder");
  require_off(config, "add_cross_attention");

  const auto size = [&](std::string_view key) { return size_of(config.at(key, kWhat), key); };
  BertConfig out;
  out.hidden_size = size("hidden_size");
  out.num_hidden_layers = size("num_hidden_layers");
  out.num_attention_heads = size("num_attention_heads");
  out.intermediate_size = size("intermediate_size");
  out.vocab_size = size("vocab_size");
  out.max_position_embeddings = size("max_position_embeddings");
  if (present(config, "type_vocab_size")) out.type_vocab_size = size("type_vocab_size");
  if (const Json* act = present(config, "hidden_act")) out.hidden_act = activation_from(*act);
  if (const Json* eps = present(config, "layer_norm_eps")) {
    out.layer_norm_eps = eps->number("layer_norm_eps");
    if (!(out.layer_norm_eps > 0 && out.layer_norm_eps < 1)) {
      eps->fail("layer_norm_eps", "a number between 0 and 1");
    }
  }
  if (out.hidden_size % out.num_attention_heads != 0) {
    config.at("num_attention_heads", kWhat)
        .fail("num_attention_heads", fmt::format("a divisor of hidden_size {}", out.hidden_size));
  }
  return out;
}

BertConfig BertConfig::load(const std::string& path) {
  const std::string file = is_folder(path) ? path + "/config.json" : path;
  try {
    return parse(read_file(file, kMaxFile));
  } catch (Error& error) {
    error.in_file(file);
    throw;
  }
}

}  // namespace rlx
