#pragma once

#include <functional>
#include <span>
#include <string>

#include "compiler/pass.h"
#include "compiler/pipeline.h"
#include "ops/evaluate.h"

namespace rlx {

/// What the inputs of one comparison hold.
enum class InputSet : std::uint8_t {
  given,   ///< what the caller gave, normal numbers elsewhere
  normal,  ///< N(0, 1)
  zeros,
  negative_zeros,
  nan,    ///< normal numbers with a NaN in seven
  large,  ///< magnitudes up to a hundredth of the dtype's largest
};
std::string_view name(InputSet set);

struct PassCheckOptions {
  /// Of every symbol in the inputs' shapes.
  DimBinding sizes;
  /// Inputs that all sets share, such as token ids. Other integers are 1 and other bools true in
  /// the sets without zeros, so that indices stay in range.
  NamedTensors given;
  /// Difference allowed, relative to the largest magnitude of an output.
  double tolerance = 1e-4;
};

/// One comparison of the graph after a pass with the graph before all passes.
struct PassCheck {
  std::string pass;
  InputSet inputs = InputSet::given;
  std::string output;     ///< the worst
  double difference = 0;  ///< infinite where NaN or infinities do not match
  bool good = true;
  std::string node;  ///< where `good` is false: the first whose value changed, if one can be told
};

/// Runs `passes` on the graph and, after each that changed it, compares its answers with those of
/// the graph before, on several sets of inputs. `each` sees every comparison; the first that is
/// not good ends the check and is returned.
std::optional<PassCheck> check_passes(Graph graph, const PassContext& context,
                                      const PassCheckOptions& options,
                                      const std::function<void(const PassCheck&)>& each = nullptr,
                                      std::span<const Pass> passes = pipeline());

}  // namespace rlx
