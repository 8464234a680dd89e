#include "formats/onnx/onnx.h"
#include "fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace rlx;
  return fuzz::expect_typed_errors([&] {
    LoadOptions options;
    options.dims.set("n", 1);
    try {
      const Graph graph = read_onnx(fuzz::bytes_of(data, size), options);
      for (const auto& param : graph.params()) fuzz::touch(*graph.data_of(param.name));
      (void)to_string(graph);
    } catch (const ShapeError&) {  // a well-formed file may hold shapes that do not fit
    }
  });
}
