#pragma once

#include <array>
#include <limits>

#include "ir/op.h"
#include "ops/conv.h"

namespace rlx {

// Operators that only fusion makes, after legalisation. Each is defined by its decomposition; none
// has a gradient.

/// What follows a matmul or convolution in the same kernel.
enum class FusedActivation : std::uint8_t { none, relu, gelu, gelu_tanh, silu, sigmoid, tanh };
constexpr auto enum_names(FusedActivation) {
  return std::array<std::string_view, 7>{"none", "relu",    "gelu", "gelu_tanh",
                                         "silu", "sigmoid", "tanh"};
}

/// x [..., k] times w [k, n] (or [n, k] if `transposed`), plus bias? [n]; then activation, clamp,
/// plus residual? [..., n]; or, with `activation_last`, residual, activation, clamp.
struct FusedLinear {
  bool transposed = false;
  FusedActivation activation = FusedActivation::none;
  double clamp_low = -std::numeric_limits<double>::infinity();
  double clamp_high = std::numeric_limits<double>::infinity();
  bool activation_last = false;
  static constexpr auto fields() {
    return std::tuple{Field{"transposed", &FusedLinear::transposed},
                      Field{"activation", &FusedLinear::activation},
                      Field{"clamp_low", &FusedLinear::clamp_low},
                      Field{"clamp_high", &FusedLinear::clamp_high},
                      Field{"activation_last", &FusedLinear::activation_last}};
  }
};

/// `Conv` with the same epilogue; residual? has the result's shape.
struct FusedConv {
  std::vector<std::int64_t> strides, padding_low, padding_high, dilations;
  std::int64_t groups = 1;
  FusedActivation activation = FusedActivation::none;
  double clamp_low = -std::numeric_limits<double>::infinity();
  double clamp_high = std::numeric_limits<double>::infinity();
  bool activation_last = false;
  static constexpr auto fields() {
    return std::tuple{Field{"strides", &FusedConv::strides},
                      Field{"padding_low", &FusedConv::padding_low},
                      Field{"padding_high", &FusedConv::padding_high},
                      Field{"dilations", &FusedConv::dilations},
                      Field{"groups", &FusedConv::groups},
                      Field{"activation", &FusedConv::activation},
                      Field{"clamp_low", &FusedConv::clamp_low},
                      Field{"clamp_high", &FusedConv::clamp_high},
                      Field{"activation_last", &FusedConv::activation_last}};
  }
};

/// x + residual, and a norm of it over the last axis: y, sum. Layer norm, or RMS norm if `rms`
/// (then without bias).
struct FusedAddNorm {
  bool rms = false;
  double epsilon = 1e-5;
  static constexpr auto fields() {
    return std::tuple{Field{"rms", &FusedAddNorm::rms}, Field{"epsilon", &FusedAddNorm::epsilon}};
  }
};

/// A graph of elementwise operators and casts computed in one pass. `body` has one input for each
/// input, in order, and scalars as its constants; its outputs have one shape, to which all inputs
/// broadcast.
struct Region {
  Subgraph body;
  static constexpr auto fields() { return std::tuple{Field{"body", &Region::body}}; }
};

extern const OpDef fused_linear_def, fused_conv_def, fused_add_norm_def, region_def;

/// As `find_op`, with the fused operators.
const OpDef* find_compiler_op(std::string_view name);

}  // namespace rlx
