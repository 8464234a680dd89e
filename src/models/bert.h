#pragma once

#include "formats/safetensors.h"
#include "models/bert_config.h"
#include "rlx/graph.h"

namespace rlx {

/// The encoder of Devlin et al. 2019 (arXiv:1810.04805), post-norm, with the weights of a Hugging
/// Face folder. Inputs `input_ids`, `attention_mask` (1: token, 0: padding) and `token_type_ids`,
/// i64 [batch, seq]; output `last_hidden_state`, f32 [batch, seq, hidden]. Throws `FormatError` for
/// a weight that is missing, and `ShapeError` for one of other extents than the config says; both
/// name it.
Graph bert_encoder(const BertConfig& config, const Safetensors& weights);

/// Adds the output `embedding` [batch, hidden]: the mean of `last_hidden_state` over the tokens
/// that are no padding, scaled to length 1. A row of padding alone gives zeros.
void add_mean_embedding(Graph& graph);

}  // namespace rlx
