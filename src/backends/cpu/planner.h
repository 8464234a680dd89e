#pragma once

#include "backends/cpu/program.h"

namespace rlx::cpu {

/// Plans a run of the program for one set of sizes: lets each node's kernel plan its steps and lays
/// out the arena.
std::shared_ptr<const Plan> make_plan(const CpuProgram& program, const DimBinding& sizes);

}  // namespace rlx::cpu
