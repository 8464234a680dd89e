#include "models/bert.h"

#include <fmt/format.h>

#include <cmath>
#include <limits>

#include "rlx/ops.h"

namespace rlx {
namespace {

class Builder {
 public:
  Builder(const BertConfig& config, const Safetensors& weights)
      : config_(config), weights_(weights) {
    // Folders of whole models put the encoder below "bert.".
    if (weights.find("bert.embeddings.word_embeddings.weight") != nullptr) prefix_ = "bert.";
  }

  Graph build() {
    const TensorType tokens{i64, {"batch", "seq"}};
    const Value ids = graph_.input("input_ids", tokens);
    const Value mask = graph_.input("attention_mask", tokens);
    const Value types = graph_.input("token_type_ids", tokens);
    Value x = embeddings(ids, types);
    const Value keep = unsqueeze(not_equal(mask, scalar(mask, 0)), {1, 2});  // [batch, 1, 1, seq]
    for (std::int64_t i = 0; i < config_.num_hidden_layers; ++i)
      x = layer(x, keep, fmt::format("encoder.layer.{}.", i));
    graph_.output("last_hidden_state", x);
    return std::move(graph_);
  }

 private:
  Value weight(const std::string& name, Tensor::Dims dims) {
    const std::string key = prefix_ + name;
    if (weights_.find(key) == nullptr)
      throw FormatError(fmt::format("the weight {} is missing", key), 0);
    Tensor tensor = weights_.tensor(key);
    if (tensor.dims() != dims) {
      throw ShapeError(fmt::format("the weight {} is {}, expected {}", key,
                                   to_string(tensor.dims()), to_string(dims)));
    }
    const Value w = graph_.param(key, std::move(tensor));
    return cast(w, f32);
  }

  Value dense(Value x, const std::string& name, std::int64_t in, std::int64_t out) {
    graph_.set_origin(name);
    const Value w = weight(name + ".weight", {out, in});
    const Value y = dot_general(x, w, {}, {}, {2}, {1});
    return y + weight(name + ".bias", {out});
  }

  Value norm(Value x, const std::string& name) {
    graph_.set_origin(name);
    const std::int64_t n = config_.hidden_size;
    const Value scale = weight(name + ".weight", {n});
    return layer_norm(x, scale, weight(name + ".bias", {n}), config_.layer_norm_eps);
  }

  Value embeddings(Value ids, Value types) {
    graph_.set_origin("embeddings");
    const std::int64_t n = config_.hidden_size;
    const Value words =
        gather(weight("embeddings.word_embeddings.weight", {config_.vocab_size, n}), ids);
    const Value kinds = gather(
        weight("embeddings.token_type_embeddings.weight", {config_.type_vocab_size, n}), types);
    const Value positions =
        weight("embeddings.position_embeddings.weight", {config_.max_position_embeddings, n});
    return norm(words + kinds + slice_axis(positions, 0, 0, ids.shape()[1]),
                "embeddings.LayerNorm");
  }

  Value heads(Value x) {
    const Shape& s = x.shape();
    return reshape(x, {s[0], s[1], config_.num_attention_heads, config_.head_size()});
  }

  Value activation(Value x) const {
    switch (config_.hidden_act) {
      case BertConfig::Activation::gelu:
        return gelu(x);
      case BertConfig::Activation::gelu_tanh:
        return gelu_tanh(x);
      case BertConfig::Activation::relu:
        return relu(x);
      case BertConfig::Activation::silu:
        return silu(x);
    }
    return x;
  }

  Value layer(Value x, Value keep, const std::string& name) {
    const std::int64_t n = config_.hidden_size;
    const std::string self = name + "attention.self.";
    const Value q = heads(dense(x, self + "query", n, n));
    const Value k = heads(dense(x, self + "key", n, n));
    const Value v = heads(dense(x, self + "value", n, n));
    const Value y = attention(q, k, v, keep, {.scale = {}, .layout = AttentionLayout::bshd}).y;
    const Value joined = dense(reshape(y, x.shape()), name + "attention.output.dense", n, n);
    x = norm(joined + x, name + "attention.output.LayerNorm");
    const Value up =
        activation(dense(x, name + "intermediate.dense", n, config_.intermediate_size));
    const Value down = dense(up, name + "output.dense", config_.intermediate_size, n);
    return norm(down + x, name + "output.LayerNorm");
  }

  const BertConfig& config_;
  const Safetensors& weights_;
  std::string prefix_;
  Graph graph_;
};

}  // namespace

Graph bert_encoder(const BertConfig& config, const Safetensors& weights) {
  return Builder(config, weights).build();
}

void add_mean_embedding(Graph& graph) {
  Value hidden;
  Value mask;
  for (const auto& output : graph.outputs()) {
    if (output.name == "last_hidden_state") hidden = output.value;
  }
  for (const auto& input : graph.inputs()) {
    if (input.name == "attention_mask") mask = input.value;
  }
  if (!hidden || !mask)
    throw InvalidArgument("the graph has no output last_hidden_state or no input attention_mask");
  graph.set_origin("pooling");
  const Value weights = unsqueeze(cast(mask, hidden.dtype()), {2});
  const double least = std::numeric_limits<float>::min();
  const Value total = sum(hidden * weights, {1});
  const Value mean = total / max(sum(weights, {1}), scalar(hidden, least));
  const Value length = sqrt(sum(mean * mean, {1}, true));
  graph.output("embedding", mean / max(length, scalar(hidden, least)));
  graph.set_origin({});
}

}  // namespace rlx
