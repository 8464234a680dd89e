#include "formats/tokenizers/tokenizer.h"
#include "fuzz.h"

namespace {

constexpr std::string_view kVocabulary =
    "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\na\nb\ne\nfoo\nthe\n##a\n##b\n##e\n##ing\n##\n#\n.\n,"
    "\n漢\nа\n##а\n가";

rlx::Tokenizer make(std::string_view config) {
  const auto bytes = [](std::string_view s) {
    return std::as_bytes(std::span(s.data(), s.size()));
  };
  return rlx::Tokenizer::from_vocabulary(bytes(kVocabulary), bytes(config));
}

void check(const rlx::Tokenizer& tokenizer, std::string_view text) {
  const rlx::Encoding e = tokenizer.encode(text);
  if (e.ids.size() != e.ranges.size() || e.ids.size() != e.type_ids.size()) std::abort();
  for (const rlx::ByteRange& r : e.ranges) {
    if (r.begin > r.end || r.end > text.size()) std::abort();
  }
  (void)tokenizer.decode(e.ids);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const rlx::Tokenizer uncased = make("");
  static const rlx::Tokenizer cased = make(R"({"do_lower_case": false})");
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  check(uncased, text);
  check(cased, text);
  return 0;
}
