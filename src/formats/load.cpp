#include "rlx/load.h"

#include <fmt/format.h>

#include "base/os_file.h"
#include "formats/onnx/onnx.h"
#include "formats/rlx_file.h"
#include "rlx/error.h"

namespace rlx {
namespace {

enum class Format : std::uint8_t { onnx, rlx };

/// By the first bytes: a safetensors header starts with a brace after its length, an ONNX model
/// with the field of its version.
Format format_of(std::span<const std::byte> bytes) {
  constexpr std::size_t kHeader = 8;
  constexpr std::byte kVersionField{0x08};
  if (bytes.size() > kHeader && bytes[kHeader] == std::byte{'{'}) return Format::rlx;
  if (!bytes.empty() && bytes[0] == kVersionField) return Format::onnx;
  throw FormatError("neither an ONNX model nor an RLX graph", 0);
}

Format format_of(const std::filesystem::path& path) {
  if (path.extension() == ".onnx") return Format::onnx;
  if (path.extension() == ".rlx") return Format::rlx;
  try {
    return format_of(MappedFile::open(path.string())->bytes());
  } catch (Error& error) {
    error.in_file(path.string());
    throw;
  }
}

}  // namespace

inline namespace v0 {

Graph load(const std::filesystem::path& path, const LoadOptions& options) {
  return format_of(path) == Format::onnx ? load_onnx(path, options)
                                         : load_rlx(path.string(), options);
}

void save(const Graph& graph, const std::filesystem::path& path) { save_rlx(path.string(), graph); }

}  // namespace v0
}  // namespace rlx
