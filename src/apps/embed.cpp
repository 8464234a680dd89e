#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>
#include <numeric>

#include "apps/command.h"
#include "formats/tokenizers/tokenizer.h"
#include "models/bert.h"

namespace rlx::apps {
namespace {

struct EmbedOptions {
  std::string model, file, device = "cpu";
  std::vector<std::string> texts;
  int threads = 0;
  bool json = false;
};

constexpr std::size_t kBatch = 32;

std::vector<std::string> read_texts(const EmbedOptions& options) {
  std::vector<std::string> texts = options.texts;
  if (options.file.empty()) return texts;
  std::ifstream file(options.file);
  if (!file) throw InvalidArgument(fmt::format("{}: cannot be read", options.file));
  for (std::string line; std::getline(file, line);) {
    if (line.ends_with('\r')) line.pop_back();
    if (!line.empty()) texts.push_back(line);
  }
  return texts;
}

Tensor token_tensor(std::span<const Encoding> batch, std::size_t length, std::int64_t padding,
                    const std::vector<std::int64_t> Encoding::*field) {
  Tensor t(i64, {static_cast<std::int64_t>(batch.size()), static_cast<std::int64_t>(length)});
  auto to = t.values<std::int64_t>();
  std::ranges::fill(to, padding);
  for (std::size_t i = 0; i < batch.size(); ++i)
    std::ranges::copy(batch[i].*field, to.begin() + static_cast<std::ptrdiff_t>(i * length));
  return t;
}

/// Runs texts of similar length together, so that little of a batch is padding.
class Embedder {
 public:
  explicit Embedder(const EmbedOptions& options)
      : tokenizer_(Tokenizer::load(options.model)),
        config_(BertConfig::load(options.model)),
        executable_(compiled(options)),
        context_(executable_) {}

  std::vector<std::vector<float>> embed(const std::vector<std::string>& texts) {
    EncodeOptions encode = tokenizer_.defaults();
    encode.padding.reset();
    const std::int64_t longest = config_.max_position_embeddings;
    if (!encode.truncation || encode.truncation->max_length > longest)
      encode.truncation = Truncation{.max_length = longest};
    std::vector<Encoding> encodings;
    for (const std::string& text : texts) encodings.push_back(tokenizer_.encode(text, encode));
    std::vector<std::size_t> order(texts.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::ranges::stable_sort(order, {}, [&](std::size_t i) { return encodings[i].ids.size(); });

    std::vector<std::vector<float>> embeddings(texts.size());
    for (std::size_t i = 0; i < order.size(); i += kBatch) {
      const std::span<const std::size_t> rows(order.data() + i, std::min(kBatch, order.size() - i));
      run(rows, encodings, embeddings);
    }
    return embeddings;
  }

 private:
  static Executable compiled(const EmbedOptions& options) {
    Graph graph = bert_encoder(BertConfig::load(options.model), Safetensors::load(options.model));
    add_mean_embedding(graph);
    return compile(std::move(graph), {.device = options.device, .threads = options.threads});
  }

  void run(std::span<const std::size_t> rows, const std::vector<Encoding>& encodings,
           std::vector<std::vector<float>>& embeddings) {
    std::vector<Encoding> batch;
    std::size_t length = 0;
    for (const std::size_t row : rows) {
      batch.push_back(encodings[row]);
      length = std::max(length, encodings[row].ids.size());
    }
    const NamedTensors outputs =
        context_.run({{"input_ids", token_tensor(batch, length, 0, &Encoding::ids)},
                      {"attention_mask", token_tensor(batch, length, 0, &Encoding::mask)},
                      {"token_type_ids", token_tensor(batch, length, 0, &Encoding::type_ids)}});
    const auto values = outputs.at("embedding").values<float>();
    const std::size_t width = values.size() / rows.size();
    for (std::size_t i = 0; i < rows.size(); ++i) {
      const auto from = values.begin() + static_cast<std::ptrdiff_t>(i * width);
      embeddings[rows[i]].assign(from, from + static_cast<std::ptrdiff_t>(width));
    }
  }

  Tokenizer tokenizer_;
  BertConfig config_;
  Executable executable_;
  Context context_;
};

void embed(const EmbedOptions& options) {
  const std::vector<std::string> texts = read_texts(options);
  if (texts.empty()) throw UsageError("embed: give texts or --file");
  const auto embeddings = Embedder(options).embed(texts);
  if (options.json) {
    fmt::print("{}\n", nlohmann::json{{"embeddings", embeddings}}.dump());
    return;
  }
  for (const auto& vector : embeddings) fmt::print("{:.6f}\n", fmt::join(vector, " "));
}

}  // namespace

void add_embed(CLI::App& app) {
  auto options = std::make_shared<EmbedOptions>();
  CLI::App* sub = app.add_subcommand(
      "embed", "Prints a vector of length 1 for each text: BERT, masked mean pooling.");
  sub->add_option(
         "--model", options->model,
         "Hugging Face folder: config.json, tokenizer.json or vocab.txt, model.safetensors")
      ->required();
  sub->add_option("TEXT", options->texts, "texts");
  sub->add_option("--file", options->file, "file with a text on each line");
  sub->add_option("--device", options->device, "cpu")->capture_default_str();
  sub->add_option("--threads", options->threads, "threads; 0: as many as this process may use")
      ->check(CLI::NonNegativeNumber);
  sub->add_flag("--json", options->json, "print one JSON object");
  sub->callback([options] { embed(*options); });
}

}  // namespace rlx::apps
