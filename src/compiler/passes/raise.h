#pragma once

#include "compiler/pass.h"

namespace rlx {

/// Recognises GELU (erf and tanh), SiLU, layer norm and RMS norm where exporters wrote them out in
/// primitives.
bool raise_compositions(Graph& graph, const PassContext& context);

/// Recognises attention: softmax(q kᵀ · scale + mask) v, with the scale on q, k or the scores, the
/// mask added or selected.
bool raise_attention(Graph& graph, const PassContext& context);

}  // namespace rlx
