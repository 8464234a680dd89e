#pragma once

#include "runtime/backend.h"

namespace rlx::cpu {

Backend& backend();

}  // namespace rlx::cpu
