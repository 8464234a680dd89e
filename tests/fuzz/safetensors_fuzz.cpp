#include "formats/safetensors.h"
#include "fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace rlx;
  return fuzz::expect_typed_errors([&] {
    const Safetensors file = Safetensors::parse(fuzz::bytes_of(data, size), nullptr);
    TensorList tensors;
    for (const Safetensors::Entry& entry : file.entries()) {
      tensors.emplace_back(entry.name, file.tensor(entry.name));
      fuzz::touch(tensors.back().second);
    }
    // What was read can be written, and comes back the same.
    const auto bytes = encode_safetensors(tensors, file.metadata());
    const Safetensors again = Safetensors::parse(bytes, nullptr);
    if (again.entries().size() != tensors.size()) std::abort();
  });
}
