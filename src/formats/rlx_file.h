#pragma once

#include <string>

#include "rlx/load.h"

namespace rlx {

/// A graph with its weights, as one safetensors file: the metadata holds `rlx.format` = "1" and
/// `rlx.graph`, the graph's text; tensors are params and states under their names, and `#N` for the
/// N-th large constant of the text. Whatever else the metadata holds is the graph's metadata.
void save_rlx(const std::string& path, const Graph& graph);

/// Errors are those of `load`; the byte offset of a `FormatError` in the text counts within the
/// text.
Graph load_rlx(const std::string& path, const LoadOptions& options = {});

}  // namespace rlx
