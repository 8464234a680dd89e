#include "formats/npz.h"
#include "fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace rlx;
  return fuzz::expect_typed_errors([&] {
    const Npz npz = Npz::parse(fuzz::bytes_of(data, size), nullptr);
    for (const std::string& name : npz.names()) {
      fuzz::expect_typed_errors([&] { fuzz::touch(npz.tensor(name)); });
    }
  });
}
