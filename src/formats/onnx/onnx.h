#pragma once

#include <cstddef>
#include <filesystem>
#include <span>
#include <string>

#include "rlx/load.h"

namespace rlx {

/// Reads an ONNX file. Inputs keep their names; a dimension without one is called `<input>.<axis>`.
/// Initializers become params with data, but scalars and integers of up to 1 KiB are constants.
/// Shape arithmetic is folded as nodes are read, functions and branches that are always taken are
/// inlined. Errors are those of `load`.
Graph load_onnx(const std::filesystem::path& path, const LoadOptions& options = {});

/// The same from memory; nothing of `file` is needed afterwards. External data is looked for in
/// `folder`; an empty one forbids it.
Graph read_onnx(std::span<const std::byte> file, const LoadOptions& options = {},
                const std::string& folder = {});

}  // namespace rlx
