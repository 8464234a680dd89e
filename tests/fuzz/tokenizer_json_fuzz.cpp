#include "formats/tokenizers/tokenizer.h"
#include "fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace rlx;
  return fuzz::expect_typed_errors([&] {
    const Tokenizer tokenizer = Tokenizer::from_json(fuzz::bytes_of(data, size));
    // Long enough to be cut and split, short enough for a file that asks for much padding.
    const std::string text = "Foo a\tab. [MASK] \xc3\xa9\xe6\xbc\xa2\xff the end";
    EncodeOptions options = tokenizer.defaults();
    if (options.padding && options.padding->length.value_or(0) > 4096) options.padding.reset();
    if (options.padding && options.padding->multiple_of > 4096) options.padding.reset();
    const Encoding one = tokenizer.encode(text, options);
    for (const ByteRange& r : one.ranges) {
      if (r.begin > r.end || r.end > text.size()) std::abort();
    }
    (void)tokenizer.encode_pair(text, text, options);
    options.truncation.reset();
    options.padding.reset();
    for (const std::int64_t id : tokenizer.encode(text, options).ids) {
      fuzz::expect_typed_errors([&] { (void)tokenizer.decode(std::span(&id, 1)); });
    }
  });
}
