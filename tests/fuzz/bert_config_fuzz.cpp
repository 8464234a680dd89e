#include "fuzz.h"
#include "models/bert_config.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace rlx;
  return fuzz::expect_typed_errors([&] {
    const BertConfig config = BertConfig::parse(fuzz::bytes_of(data, size));
    if (config.head_size() * config.num_attention_heads != config.hidden_size) std::abort();
  });
}
