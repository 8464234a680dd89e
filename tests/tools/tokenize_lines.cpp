// Tokenizes JSON lines for comparisons in Python: {"text": …} or {"text": …, "pair": …} in,
// {"ids": …, "type_ids": …, "mask": …, "ranges": …, "decoded": …, "decoded_all": …} out. The
// tokenizer's own truncation and padding apply. What cannot be encoded gives {"error": …}.
#include <iostream>
#include <nlohmann/json.hpp>
#include <string>

#include "formats/tokenizers/tokenizer.h"
#include "rlx/error.h"

namespace {

using nlohmann::json;

json answer(const rlx::Tokenizer& tokenizer, const json& request) {
  const auto text = request.at("text").get<std::string>();
  const rlx::Encoding e = request.contains("pair")
                              ? tokenizer.encode_pair(text, request["pair"].get<std::string>())
                              : tokenizer.encode(text);
  json ranges = json::array();
  for (const rlx::ByteRange& r : e.ranges) ranges.push_back({r.begin, r.end});
  return {{"ids", e.ids},
          {"type_ids", e.type_ids},
          {"mask", e.mask},
          {"ranges", ranges},
          {"decoded", tokenizer.decode(e.ids)},
          {"decoded_all", tokenizer.decode(e.ids, false)}};
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::cerr << "usage: tokenize_lines TOKENIZER < requests.jsonl\n";
    return 2;
  }
  try {
    const rlx::Tokenizer tokenizer = rlx::Tokenizer::load(argv[1]);
    for (std::string line; std::getline(std::cin, line);) {
      json reply;
      try {
        reply = answer(tokenizer, json::parse(line));
      } catch (const rlx::Error& error) {
        reply = {{"error", error.what()}};
      }
      std::cout << reply << '\n';
    }
  } catch (const std::exception& error) {
    std::cerr << error.what() << '\n';
    return 1;
  }
  return 0;
}
