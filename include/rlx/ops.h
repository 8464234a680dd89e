#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "rlx/graph.h"

/// Functions that add operators to the graph of their first value. Shapes follow NumPy: elementwise
/// operands broadcast from the trailing axes, a negative axis counts from the end. All throw
/// `ShapeError` or `InvalidArgument` that name the node, the input and both values. What each
/// operator means is in docs/operators.md, made from the definitions.
namespace rlx {
inline namespace v0 {

// ---- elementwise. Operands have one dtype; a double stands for a scalar constant of the other
// operand's dtype.
RLX_EXPORT Value operator+(Value a, Value b);
RLX_EXPORT Value operator-(Value a, Value b);
RLX_EXPORT Value operator*(Value a, Value b);
RLX_EXPORT Value operator/(Value a, Value b);
RLX_EXPORT Value operator-(Value x);
RLX_EXPORT Value operator+(Value a, double b);
RLX_EXPORT Value operator-(Value a, double b);
RLX_EXPORT Value operator*(Value a, double b);
RLX_EXPORT Value operator/(Value a, double b);
RLX_EXPORT Value operator+(double a, Value b);
RLX_EXPORT Value operator-(double a, Value b);
RLX_EXPORT Value operator*(double a, Value b);
RLX_EXPORT Value operator/(double a, Value b);
/// A constant of rank 0 in the graph of `like`, of its dtype.
RLX_EXPORT Value scalar(Value like, double value);
RLX_EXPORT Value scalar(Graph& graph, DType dtype, double value);

RLX_EXPORT Value abs(Value x);
RLX_EXPORT Value sign(Value x);
RLX_EXPORT Value ceil(Value x);
RLX_EXPORT Value floor(Value x);
RLX_EXPORT Value round(Value x);  ///< half to even
RLX_EXPORT Value trunc(Value x);
RLX_EXPORT Value sqrt(Value x);
RLX_EXPORT Value rsqrt(Value x);
RLX_EXPORT Value reciprocal(Value x);
RLX_EXPORT Value exp(Value x);
RLX_EXPORT Value expm1(Value x);
RLX_EXPORT Value log(Value x);
RLX_EXPORT Value log1p(Value x);
RLX_EXPORT Value sin(Value x);
RLX_EXPORT Value cos(Value x);
RLX_EXPORT Value tan(Value x);
RLX_EXPORT Value asin(Value x);
RLX_EXPORT Value acos(Value x);
RLX_EXPORT Value atan(Value x);
RLX_EXPORT Value sinh(Value x);
RLX_EXPORT Value cosh(Value x);
RLX_EXPORT Value tanh(Value x);
RLX_EXPORT Value asinh(Value x);
RLX_EXPORT Value acosh(Value x);
RLX_EXPORT Value atanh(Value x);
RLX_EXPORT Value erf(Value x);
RLX_EXPORT Value sigmoid(Value x);
RLX_EXPORT Value relu(Value x);
RLX_EXPORT Value gelu(Value x);       ///< x/2 (1 + erf(x/sqrt 2))
RLX_EXPORT Value gelu_tanh(Value x);  ///< x/2 (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3)))
RLX_EXPORT Value silu(Value x);
RLX_EXPORT Value softplus(Value x);
RLX_EXPORT Value softsign(Value x);
RLX_EXPORT Value mish(Value x);
RLX_EXPORT Value hard_swish(Value x);  ///< x clamp(x + 3, 0, 6) / 6
RLX_EXPORT Value log_sigmoid(Value x);
RLX_EXPORT Value elu(Value x, double alpha = 1);
RLX_EXPORT Value selu(Value x, double alpha = 1.67326319217681884765625,
                      double gamma = 1.05070102214813232421875);
RLX_EXPORT Value celu(Value x, double alpha = 1);
RLX_EXPORT Value leaky_relu(Value x, double alpha = 0.01);
RLX_EXPORT Value prelu(Value x, Value slope);
RLX_EXPORT Value hard_sigmoid(Value x, double alpha = 1.0 / 6,
                              double beta = 0.5);  ///< clamp(alpha x + beta, 0, 1)
RLX_EXPORT Value logical_not(Value x);
RLX_EXPORT Value bitwise_not(Value x);
RLX_EXPORT Value is_nan(Value x);
RLX_EXPORT Value is_inf(Value x);

RLX_EXPORT Value max(Value a, Value b);  ///< NaN if either is
RLX_EXPORT Value min(Value a, Value b);
RLX_EXPORT Value pow(Value a, Value b);
RLX_EXPORT Value remainder(Value a, Value b);  ///< sign of the dividend, as C's fmod
RLX_EXPORT Value modulo(Value a, Value b);     ///< sign of the divisor, as Python's %
RLX_EXPORT Value atan2(Value a, Value b);
RLX_EXPORT Value bitwise_and(Value a, Value b);
RLX_EXPORT Value bitwise_or(Value a, Value b);
RLX_EXPORT Value bitwise_xor(Value a, Value b);
RLX_EXPORT Value shift_left(Value a, Value b);
RLX_EXPORT Value shift_right(Value a, Value b);
RLX_EXPORT Value logical_and(Value a, Value b);
RLX_EXPORT Value logical_or(Value a, Value b);
RLX_EXPORT Value logical_xor(Value a, Value b);
RLX_EXPORT Value equal(Value a, Value b);  ///< these six give bool
RLX_EXPORT Value not_equal(Value a, Value b);
RLX_EXPORT Value less(Value a, Value b);
RLX_EXPORT Value less_equal(Value a, Value b);
RLX_EXPORT Value greater(Value a, Value b);
RLX_EXPORT Value greater_equal(Value a, Value b);
RLX_EXPORT Value select(Value condition, Value on_true, Value on_false);
RLX_EXPORT Value clamp(Value x, Value low, Value high);
RLX_EXPORT Value fma(Value a, Value b, Value c);  ///< a b + c, rounded once

/// Integers wrap, floats truncate and saturate (NaN gives 0), narrower floats round to nearest
/// even.
RLX_EXPORT Value cast(Value x, DType to);

// ---- movement
RLX_EXPORT Value reshape(Value x, Shape to);
RLX_EXPORT Value transpose(Value x, std::vector<std::int64_t> permutation);
RLX_EXPORT Value broadcast(Value x, Shape to);
/// y[i] = x[starts + i * steps], one entry an axis; a negative step walks down from its start.
RLX_EXPORT Value slice(Value x, std::vector<Dim> starts, std::vector<Dim> sizes,
                       std::vector<std::int64_t> steps = {});
RLX_EXPORT Value slice_axis(Value x, std::int64_t axis, Dim start, Dim size);
RLX_EXPORT Value reverse(Value x, std::vector<std::int64_t> axes);
enum class PadMode : std::uint8_t { constant, reflect, edge, wrap };
/// `value`, a scalar of x's dtype, is for the constant mode; zero where absent.
RLX_EXPORT Value pad(Value x, std::vector<Dim> low, std::vector<Dim> high,
                     PadMode mode = PadMode::constant, Value value = {});
RLX_EXPORT Value concat(std::vector<Value> xs, std::int64_t axis);
RLX_EXPORT std::vector<Value> split(Value x, const std::vector<Dim>& sizes, std::int64_t axis);
RLX_EXPORT Value tile(Value x, const std::vector<Dim>& repeats);
RLX_EXPORT Value squeeze(Value x, std::vector<std::int64_t> axes);
RLX_EXPORT Value unsqueeze(Value x, std::vector<std::int64_t> axes);  ///< axes of the result
RLX_EXPORT Value flatten(Value x,
                         std::int64_t axis);  ///< to [product before axis, product from it]
/// 0, 1, 2, … along `axis`.
RLX_EXPORT Value iota(Graph& graph, DType dtype, Shape shape, std::int64_t axis);
/// Keeps the upper (else lower) triangle of the last two axes, zero elsewhere; `diagonal` shifts it
/// to the right.
RLX_EXPORT Value triangle(Value x, bool upper, std::int64_t diagonal = 0);

// ---- indexing. Indices are i32 or i64; a negative one counts from the end; out of range is an
// `IndexError` of the run.
RLX_EXPORT Value gather(Value x, Value indices, std::int64_t axis = 0);
RLX_EXPORT Value gather_elements(Value x, Value indices, std::int64_t axis);
RLX_EXPORT Value gather_nd(Value x, Value indices, std::int64_t batch_dims = 0);
RLX_EXPORT Value embedding(Value table, Value indices);
RLX_EXPORT Value one_hot(Value indices, Dim depth, Value off_value, Value on_value,
                         std::int64_t axis = -1);

// ---- reductions, scans along an axis, selection
enum class Reduction : std::uint8_t { sum, mean, max, min, prod };
RLX_EXPORT Value reduce(Value x, Reduction kind, std::vector<std::int64_t> axes,
                        bool keep_dims = false);
RLX_EXPORT Value sum(Value x, std::vector<std::int64_t> axes, bool keep_dims = false);
RLX_EXPORT Value mean(Value x, std::vector<std::int64_t> axes, bool keep_dims = false);
RLX_EXPORT Value arg_max(Value x, std::int64_t axis, bool keep_dims = false,
                         bool select_last = false);
RLX_EXPORT Value arg_min(Value x, std::int64_t axis, bool keep_dims = false,
                         bool select_last = false);
enum class Accumulation : std::uint8_t { sum, prod, max, min };
RLX_EXPORT Value cumulative(Value x, Accumulation kind, std::int64_t axis, bool exclusive = false,
                            bool reverse = false);
struct TopKResult {
  Value values, indices;
};
RLX_EXPORT TopKResult top_k(Value x, Dim k, std::int64_t axis = -1, bool largest = true,
                            bool sorted = true);
RLX_EXPORT Value softmax(Value x, std::int64_t axis);
RLX_EXPORT Value log_softmax(Value x, std::int64_t axis);

// ---- normalisation; scale and bias may be absent
RLX_EXPORT Value layer_norm(Value x, Value scale, Value bias, double epsilon = 1e-5,
                            std::int64_t axis = -1);
RLX_EXPORT Value rms_norm(Value x, Value scale, double epsilon = 1e-5, std::int64_t axis = -1);
RLX_EXPORT Value group_norm(Value x, Value scale, Value bias, std::int64_t groups,
                            double epsilon = 1e-5);
RLX_EXPORT Value batch_norm(Value x, Value scale, Value bias, Value mean, Value variance,
                            double epsilon = 1e-5, std::int64_t axis = 1);

// ---- contractions
/// [batch…, free axes of a…, free axes of b…]. Batch extents are equal, and so are the contracted
/// ones.
RLX_EXPORT Value dot_general(Value a, Value b, std::vector<std::int64_t> a_batch,
                             std::vector<std::int64_t> b_batch,
                             std::vector<std::int64_t> a_contracting,
                             std::vector<std::int64_t> b_contracting,
                             std::optional<DType> result = std::nullopt);
/// NumPy's matmul: batch axes broadcast, rank-1 operands are vectors. Of 8-bit integers the result
/// is i32.
RLX_EXPORT Value matmul(Value a, Value b);
/// x w (+ bias): x [..., k], w [k, n], bias [n].
RLX_EXPORT Value linear(Value x, Value w, Value bias = {});

enum class AttentionLayout : std::uint8_t { bhsd, bshd };
struct AttentionOptions {
  std::optional<double> scale;  ///< head_dim^-1/2 where absent
  double softcap = 0;           ///< scores become c tanh(score / c) before any mask; 0: none
  bool causal = false;          ///< query i sees keys up to i + (keys - queries)
  std::int64_t window =
      -1;  ///< with w >= 0, only the w keys before its position and that position itself
  AttentionLayout layout = AttentionLayout::bhsd;
};
struct AttentionResult {
  Value y;    ///< as q, with v's head_dim
  Value lse;  ///< [batch, heads, queries] f32: log-sum-exp of the masked scores, -inf for a row
              ///< without keys
};
/// q [b, h, sq, d], k [b, hk, sk, d], v [b, hk, sk, dv] (or [b, s, h, d]); h is a multiple of hk.
/// `mask` broadcasts to [b, h, sq, sk]: bool keeps where true, float is added to the scores.
RLX_EXPORT AttentionResult attention(Value q, Value k, Value v, Value mask = {},
                                     const AttentionOptions& options = {});

struct ConvOptions {
  /// One entry an axis; empty: 1, 0, 0, 1.
  std::vector<std::int64_t> strides = {}, padding_low = {}, padding_high = {}, dilations = {};
  std::int64_t groups = 1;
};
/// x [n, c, spatial…], w [co, c / groups, kernel…], bias [co]; 1 to 3 spatial axes;
/// cross-correlation.
RLX_EXPORT Value conv(Value x, Value w, Value bias = {}, const ConvOptions& options = {});
enum class Pooling : std::uint8_t { max, average };
struct PoolOptions {
  std::vector<std::int64_t> kernel = {}, strides = {}, padding_low = {}, padding_high = {},
                            dilations = {};
  bool ceil_mode = false;
  bool count_include_pad = false;  ///< average only
};
RLX_EXPORT Value pool(Value x, Pooling kind, const PoolOptions& options);

// ---- control flow; subgraphs are closed, `captures` become their last inputs
RLX_EXPORT std::vector<Value> if_else(Value predicate, Graph then_branch, Graph else_branch,
                                      std::vector<Value> captures);
struct ScanOptions {
  bool reverse = false;  ///< walks xs from the last step to the first; ys stand at their own steps
};
/// Body inputs: carries, one slice of each of xs, captures. Body outputs: next carries, then one
/// slice of each of ys. Result: final carries, then ys [length, …]. Without xs, `length` says how
/// many steps; zero steps give `initial`.
RLX_EXPORT std::vector<Value> scan(Graph body, std::vector<Value> initial, std::vector<Value> xs,
                                   std::vector<Value> captures,
                                   std::optional<Dim> length = std::nullopt,
                                   const ScanOptions& options = {});

// ---- recurrent cells, time first: x [t, b, i], w [dirs, gates h, i], r [dirs, gates h, h], bias
// [dirs, 2 gates h]
enum class RecurrentDirection : std::uint8_t { forward, reverse, bidirectional };
struct RecurrentResult {
  Value y;  ///< [t, dirs, b, h]
  Value h;  ///< [dirs, b, h]
  Value c;  ///< [dirs, b, h], LSTM only
};
/// Gate rows in the order i, f, g, o. `lengths` [b] ends each sequence early; absent inputs are
/// zero (full length).
RLX_EXPORT RecurrentResult lstm(Value x, Value w, Value r, Value bias = {}, Value lengths = {},
                                Value h0 = {}, Value c0 = {},
                                RecurrentDirection direction = RecurrentDirection::forward);
/// Gate rows in the order r, z, n. `reset_after`: the reset gate multiplies W_hn h + b_hn
/// (PyTorch), else h (paper).
RLX_EXPORT RecurrentResult gru(Value x, Value w, Value r, Value bias = {}, Value lengths = {},
                               Value h0 = {},
                               RecurrentDirection direction = RecurrentDirection::forward,
                               bool reset_after = true);
RLX_EXPORT RecurrentResult rnn(Value x, Value w, Value r, Value bias = {}, Value lengths = {},
                               Value h0 = {},
                               RecurrentDirection direction = RecurrentDirection::forward,
                               bool relu = false);

}  // namespace v0
}  // namespace rlx
