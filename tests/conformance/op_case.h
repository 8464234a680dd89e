#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <random>
#include <string>
#include <vector>

#include "ops/evaluate.h"
#include "rlx/ops.h"

namespace rlx {

/// One graph of the shared conformance tests, usually a single operator. A family's test file
/// instantiates `OpConformance` with its cases; every backend then runs them against the reference.
struct OpCase {
  std::string name;                   ///< letters, digits and underscores
  std::function<void(Graph&)> build;  ///< adds inputs, the operator under test and outputs
  NamedTensors inputs;
  /// Error allowed in units of the last place of each result.
  double ulps = 4;
  /// Terms that each result sums (0: not a sum); allows (terms + 4) u times the sum of their
  /// magnitudes, which is the reference on the magnitudes of the inputs.
  double terms = 0;
  /// Error allowed in units of the last place of the largest finite result, for composites that
  /// normalise.
  double scale_ulps = 0;
};

std::ostream& operator<<(std::ostream& out, const OpCase& c);

class OpConformance : public testing::TestWithParam<OpCase> {};

/// Names a case for INSTANTIATE_TEST_SUITE_P, and notes it in `instantiated_cases`.
std::string case_name(const testing::TestParamInfo<OpCase>& info);
/// All cases of all instantiations of `OpConformance`, filtered out or not.
const std::vector<OpCase>& instantiated_cases();

/// What an operator makes of its inputs.
using OpBuilder = std::function<Value(const std::vector<Value>&)>;
/// A case of inputs x0, x1, … with the extents of `inputs`, and one output y.
OpCase op_case(std::string name, const std::vector<Tensor>& inputs, OpBuilder build);
/// The reference's result, without a case.
Tensor evaluated(const std::vector<Tensor>& inputs, const OpBuilder& build);
/// What the error that `f` throws says; empty if it throws none.
std::string error_of(const std::function<void()>& f);

/// Uniform in [low, high], rounded to the dtype; integers include both ends. bool: even odds. Never
/// strings or blocks.
Tensor random_tensor(DType dtype, Tensor::Dims dims, std::uint64_t seed, double low = -2,
                     double high = 2);
/// As `random_tensor`, with NaN, infinities, zeros of both signs, subnormals and the largest values
/// strewn in.
Tensor special_tensor(DType dtype, Tensor::Dims dims, std::uint64_t seed);

/// Tensor of any real dtype from doubles, rounded to it.
Tensor tensor_of(DType dtype, Tensor::Dims dims, const std::vector<double>& values);
/// Elements as doubles; real and imaginary parts in turn of complex ones.
std::vector<double> doubles(const Tensor& t);

/// Whether `found` is `expected` within the case's bounds: NaN matches NaN, infinities their sign,
/// integers and bools are equal. `magnitudes` holds the sums of magnitudes where the case counts
/// terms.
testing::AssertionResult agrees(const Tensor& found, const Tensor& expected, const OpCase& c,
                                const Tensor* magnitudes = nullptr);

/// The reference on the magnitudes of all float inputs.
NamedTensors evaluate_magnitudes(const Graph& graph, const NamedTensors& inputs);

}  // namespace rlx
