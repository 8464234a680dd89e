#include "formats/npy.h"
#include "fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace rlx;
  return fuzz::expect_typed_errors([&] {
    const Tensor tensor = parse_npy(fuzz::bytes_of(data, size), nullptr);
    fuzz::touch(tensor);
    const std::vector<std::byte> bytes = encode_npy(tensor);
    if (parse_npy(bytes, nullptr).dims() != tensor.dims()) std::abort();
  });
}
