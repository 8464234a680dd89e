#include "formats/onnx/onnx.h"

#include "base/os_file.h"
#include "formats/onnx/importer.h"
#include "rlx/error.h"

namespace rlx {
namespace {

Graph import(onnx::Bytes file, const std::shared_ptr<const MappedFile>& mapping,
             const LoadOptions& options, const std::string& folder) {
  const onnx::ModelProto model = onnx::parse_model(file);
  onnx::TensorLoader loader(file, mapping, mapping.get(), folder, options.keep_mapped);
  return onnx::Importer(model, loader, options).run();
}

}  // namespace

Graph load_onnx(const std::filesystem::path& path, const LoadOptions& options) {
  try {
    const auto mapping = MappedFile::open(path.string());
    const std::filesystem::path folder = path.has_parent_path() ? path.parent_path() : ".";
    return import(mapping->bytes(), mapping, options, folder.string());
  } catch (Error& error) {
    error.in_file(path.string());
    throw;
  }
}

Graph read_onnx(std::span<const std::byte> file, const LoadOptions& options,
                const std::string& folder) {
  return import(file, nullptr, options, folder);
}

}  // namespace rlx
