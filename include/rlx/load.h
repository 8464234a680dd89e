#pragma once

#include <filesystem>

#include "rlx/dim.h"
#include "rlx/graph.h"

namespace rlx {
inline namespace v0 {

struct LoadOptions {
  /// Sizes of symbols. A model that does different things for different shapes (branches whose
  /// results differ in rank) becomes the graph for these sizes; other sizes then break a constraint
  /// of the graph. Symbols stay symbols.
  DimBinding dims;
  /// Weights stay in the mapped file where they are aligned, for as long as the graph or a tensor
  /// of it lives; a file that is truncated meanwhile kills the process. Else they are copied, one
  /// by one, and the file is closed when `load` returns.
  bool keep_mapped = false;
};

/// Reads a model: ONNX (`.onnx`) or RLX's own `.rlx`; of other names the first bytes decide.
/// Weights become params with data. Throws `FileError`, `FormatError` with the byte offset,
/// `Unsupported` listing every node that cannot be read, and what inference throws; all name the
/// file.
RLX_EXPORT Graph load(const std::filesystem::path& path, const LoadOptions& options = {});

/// Writes a graph with its weights as a `.rlx` file, atomically.
RLX_EXPORT void save(const Graph& graph, const std::filesystem::path& path);

}  // namespace v0
}  // namespace rlx
