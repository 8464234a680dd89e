#include <fmt/format.h>

#include "backends/cpu/backend.h"
#include "runtime/backend.h"

namespace rlx {

Backend& backend_for(std::string_view device) {
  if (device == "cpu") return cpu::backend();
  throw InvalidArgument(fmt::format("there is no device {}; the devices are cpu", device));
}

}  // namespace rlx
