#pragma once

#include <memory>
#include <string>
#include <vector>

#include "backends/cpu/kernel.h"
#include "conformance/op_case.h"
#include "ops/evaluate.h"
#include "runtime/fault.h"

namespace rlx {

/// How `run_kernel` runs a node.
struct KernelRun {
  std::string kernel = {};  ///< by name; empty: the first that accepts the node
  int threads = 1;
  bool in_place = false;  ///< output 0 in the bytes of the first input that allows it
};

/// The outputs of the graph's only operator from one CPU kernel, without an executor. Outputs and
/// scratch hold 0xff bytes first (NaN for floats), so that an element left unwritten shows.
/// `fault` receives what the kernel reported. Throws `Unsupported` if no kernel accepts the node.
NamedTensors run_kernel(const Graph& graph, const NamedTensors& inputs, const KernelRun& how = {},
                        Fault* fault = nullptr);

/// Runs the case's operator at every instruction set of this machine, on 1, 2 and 4 threads, and in
/// place where the kernel allows that. Results agree with the reference within the case's bounds,
/// and at each instruction set all have the same bits.
void check_kernel(const OpCase& c, const std::string& kernel = {});

/// Elements [begin, end) along the first axis.
Tensor rows_of(const Tensor& t, std::int64_t begin, std::int64_t end);

}  // namespace rlx
