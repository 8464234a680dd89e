#pragma once

#include <span>
#include <string_view>

#include "ir/op.h"

namespace rlx {

/// A row of the elementwise table: operators that compute each element from the elements at the
/// same place of their broadcast operands. Backends have a row of the same name; a test compares
/// the tables.
struct Elementwise {
  /// Which dtypes the operands may have.
  enum Domain : unsigned { kFloat = 1, kInteger = 2, kBool = 4, kComplex = 8, kString = 16 };
  enum class Result : std::uint8_t { same, boolean };

  std::size_t arity;
  unsigned domain;
  Result result = Result::same;
  /// The first operand is bool and the others decide the dtype (select).
  bool conditional = false;
  bool commutative = false;
  /// The reference: all elements, in the wide types of HostArray.
  void (*evaluate)(Evaluation& run) = nullptr;
};

/// All of them, in the order of the table.
std::span<const OpDef* const> elementwise_ops();

/// Adds the elementwise operator `def` to the operands' graph.
Value elementwise(const OpDef& def, std::vector<Value> operands);

extern const OpDef neg_def, abs_def, sign_def, ceil_def, floor_def, round_def, trunc_def, sqrt_def,
    rsqrt_def, reciprocal_def, exp_def, expm1_def, log_def, log1p_def, sin_def, cos_def, tan_def,
    asin_def, acos_def, atan_def, sinh_def, cosh_def, tanh_def, asinh_def, acosh_def, atanh_def,
    erf_def, sigmoid_def, relu_def, gelu_def, gelu_tanh_def, silu_def, softplus_def, softsign_def,
    mish_def, hard_swish_def, log_sigmoid_def, logical_not_def, bitwise_not_def, is_nan_def,
    is_inf_def;
extern const OpDef add_def, sub_def, mul_def, div_def, max_def, min_def, pow_def, remainder_def,
    modulo_def, atan2_def, bitwise_and_def, bitwise_or_def, bitwise_xor_def, shift_left_def,
    shift_right_def, logical_and_def, logical_or_def, logical_xor_def, equal_def, not_equal_def,
    less_def, less_equal_def, greater_def, greater_equal_def;
extern const OpDef select_def, clamp_def, fma_def;

/// Changes the dtype: integers wrap, floats truncate and saturate, NaN becomes 0, anything non-zero
/// is true. Not in the table since its result dtype is an attribute, but regions take it as one of
/// theirs.
struct Cast {
  DType to = DType::f32;
  static constexpr auto fields() { return std::tuple{Field{"to", &Cast::to}}; }
};
extern const OpDef cast_def;

}  // namespace rlx
