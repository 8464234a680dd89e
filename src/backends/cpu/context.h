#pragma once

#include <memory>

#include "backends/cpu/program.h"

namespace rlx::cpu {

std::unique_ptr<DeviceContext> make_cpu_context(const CpuProgram& program);

}  // namespace rlx::cpu
