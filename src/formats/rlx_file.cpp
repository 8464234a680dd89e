#include "formats/rlx_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "formats/dense.h"
#include "formats/safetensors.h"
#include "ir/text.h"
#include "ops/all_ops.h"
#include "rlx/error.h"

namespace rlx {
namespace {

constexpr std::string_view kFormatKey = "rlx.format";
constexpr std::string_view kGraphKey = "rlx.graph";
constexpr std::string_view kFormat = "1";

std::string blob_name(std::size_t i) { return fmt::format("#{}", i); }

Tensor copy_of(const Tensor& tensor) {
  Tensor copy(tensor.dtype(), tensor.dims());
  std::copy(tensor.bytes().begin(), tensor.bytes().end(), copy.bytes_mutable().begin());
  return copy;
}

const std::string& metadata_at(const Safetensors& file, std::string_view key) {
  const auto at = file.metadata().find(std::string(key));
  if (at == file.metadata().end())
    throw FormatError(fmt::format("the metadata has no {}", in_quotes(key)), 0);
  return at->second;
}

Graph read(const Safetensors& file, const LoadOptions& options) {
  if (const std::string& format = metadata_at(file, kFormatKey); format != kFormat) {
    throw Unsupported(
        fmt::format("the file has format {}, RLX reads format {}", in_quotes(format), kFormat));
  }
  const auto load = [&](std::string_view name) {
    const Tensor t = file.tensor(name);
    return options.keep_mapped ? t : copy_of(t);
  };
  std::vector<Tensor> blobs;
  for (std::size_t i = 0; file.find(blob_name(i)) != nullptr; ++i)
    blobs.push_back(load(blob_name(i)));
  Graph graph = parse_graph(metadata_at(file, kGraphKey), find_op, &blobs);
  for (const auto* list : {&graph.params(), &graph.states()}) {
    for (const auto& named : *list) {
      if (file.find(named.name) != nullptr) graph.set_data(named.name, load(named.name));
    }
  }
  for (const auto& [key, text] : file.metadata()) {
    if (key != kFormatKey && key != kGraphKey) graph.metadata[key] = text;
  }
  return graph;
}

}  // namespace

void save_rlx(const std::string& path, const Graph& graph) {
  std::vector<Tensor> blobs;
  Safetensors::Metadata metadata = graph.metadata;
  metadata.insert_or_assign(std::string(kFormatKey), std::string(kFormat));
  metadata.insert_or_assign(std::string(kGraphKey), to_string(graph, &blobs));
  std::vector<std::pair<std::string, Tensor>> tensors;
  for (std::size_t i = 0; i < blobs.size(); ++i) tensors.emplace_back(blob_name(i), blobs[i]);
  for (const auto* list : {&graph.params(), &graph.states()}) {
    for (const auto& named : *list) {
      if (const Tensor* data = graph.data_of(named.name)) tensors.emplace_back(named.name, *data);
    }
  }
  save_safetensors(path, tensors, metadata);
}

Graph load_rlx(const std::string& path, const LoadOptions& options) {
  try {
    return read(Safetensors::load(path), options);
  } catch (Error& error) {
    error.in_file(path);
    throw;
  }
}

}  // namespace rlx
