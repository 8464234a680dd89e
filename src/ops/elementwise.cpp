#include "ops/elementwise.h"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <limits>
#include <numbers>

#include "ir/node.h"
#include "ops/host_array.h"
#include "ops/infer.h"
#include "ops/number_formats.h"
#include "rlx/ops.h"

namespace rlx {
namespace {

using Complex = std::complex<double>;

constexpr unsigned kFloat = Elementwise::kFloat;
constexpr unsigned kInteger = Elementwise::kInteger;
constexpr unsigned kBool = Elementwise::kBool;
constexpr unsigned kComplex = Elementwise::kComplex;
constexpr unsigned kNumber = kFloat | kInteger | kComplex;
constexpr unsigned kReal = kFloat | kInteger;
constexpr unsigned kAny = kNumber | kBool | Elementwise::kString;

unsigned domain_of(DType d) {
  switch (traits(d).kind) {
    case DTypeKind::floating:
      return kFloat;
    case DTypeKind::signed_integer:
    case DTypeKind::unsigned_integer:
      return kInteger;
    case DTypeKind::boolean:
      return kBool;
    case DTypeKind::complex:
      return kComplex;
    case DTypeKind::string:
      return Elementwise::kString;
    case DTypeKind::block:
      return 0;
  }
  return 0;
}

TensorType infer(const NoAttributes&, InferArgs& in) {
  const Elementwise& row = *in.op().def().elementwise;
  const std::size_t first = row.conditional ? 1 : 0;
  if (row.conditional) require_dtype(in, 0, DType::boolean);
  for (std::size_t i = first; i < in.size(); ++i) {
    if ((domain_of(in[i].dtype) & row.domain) == 0) {
      throw InvalidArgument(fmt::format("{} is {}, which {} does not take", in.label(i),
                                        name(in[i].dtype), in.op().name()));
    }
    require_same_dtype(in, first, i);
  }
  Shape shape = in[0].shape;
  for (std::size_t i = 1; i < in.size(); ++i) shape = broadcast_shapes(in, shape, in[i].shape);
  return {row.result == Elementwise::Result::boolean ? DType::boolean : in[first].dtype,
          std::move(shape)};
}

// ---------------------------------------------------------------- reference

// Walks broadcast operands of wide type T, with the result's wide type R.
template <class T, class R, std::size_t N, class F>
void walk(Evaluation& run, F f) {
  HostArray& y = run.out();
  std::array<std::vector<std::int64_t>, N> strides;
  for (std::size_t k = 0; k < N; ++k) strides[k] = broadcast_strides(run.in(k).dims(), y.dims());
  std::vector<R>& to = y.as<R>();
  for_each_index(y.dims(), [&](std::span<const std::int64_t> at, std::int64_t i) {
    const auto operand = [&](std::size_t k) -> const T& {
      return run.in(k).as<T>()[static_cast<std::size_t>(offset_of(at, strides[k]))];
    };
    auto& result = to[static_cast<std::size_t>(i)];
    if constexpr (N == 1) {
      result = static_cast<R>(f(operand(0)));
    } else if constexpr (N == 2) {
      result = static_cast<R>(f(operand(0), operand(1)));
    } else {
      result = static_cast<R>(f(operand(0), operand(1), operand(2)));
    }
  });
}

// The type of f applied to N operands of type T; `void` where it does not take them.
template <std::size_t N, class T, class F>
auto result_of() {
  if constexpr (N == 1 && std::is_invocable_v<F, T>) {
    return std::type_identity<std::invoke_result_t<F, T>>{};
  } else if constexpr (N == 2 && std::is_invocable_v<F, T, T>) {
    return std::type_identity<std::invoke_result_t<F, T, T>>{};
  } else if constexpr (N == 3 && std::is_invocable_v<F, T, T, T>) {
    return std::type_identity<std::invoke_result_t<F, T, T, T>>{};
  } else {
    return std::type_identity<void>{};
  }
}

template <std::size_t N, class F>
void evaluate_row(Evaluation& run) {
  std::visit(
      [&](const auto& values) {
        using T = typename std::decay_t<decltype(values)>::value_type;
        using R = typename decltype(result_of<N, T, F>())::type;
        if constexpr (std::is_same_v<R, bool>) {
          walk<T, std::uint64_t, N>(run, F{});
        } else if constexpr (!std::is_void_v<R>) {
          walk<T, T, N>(run, F{});
        } else {
          fail_assertion("the row takes the operand's wide type", __FILE__, __LINE__);
        }
      },
      run.in(0).values());
}

// `select`: a bool condition chooses between operands of any type.
void evaluate_select(Evaluation& run) {
  HostArray& y = run.out();
  const auto c = broadcast_strides(run.in(0).dims(), y.dims());
  const auto t = broadcast_strides(run.in(1).dims(), y.dims());
  const auto f = broadcast_strides(run.in(2).dims(), y.dims());
  std::visit(
      [&](auto& to) {
        using T = typename std::decay_t<decltype(to)>::value_type;
        for_each_index(y.dims(), [&](std::span<const std::int64_t> at, std::int64_t i) {
          const bool on =
              run.in(0).as<std::uint64_t>()[static_cast<std::size_t>(offset_of(at, c))] != 0;
          const auto from = static_cast<std::size_t>(offset_of(at, on ? t : f));
          to[static_cast<std::size_t>(i)] = run.in(on ? 1 : 2).as<T>()[from];
        });
      },
      y.values());
}

// ---- scalar functions, one functor a row

template <class T>
constexpr bool is_integer_type =
    std::is_same_v<T, std::int64_t> || std::is_same_v<T, std::uint64_t>;

template <class T>
concept Integer = is_integer_type<T>;
template <class T>
concept Real = Integer<T> || std::is_same_v<T, double>;
template <class T>
concept Number = Real<T> || std::is_same_v<T, Complex>;

// Wraps in two's complement: the dtype's own width is applied when the array is rounded.
template <Integer T>
T wrap(std::uint64_t value) {
  return static_cast<T>(value);
}

struct Neg {
  double operator()(double x) const { return -x; }
  Complex operator()(Complex x) const { return -x; }
  template <Integer T>
  T operator()(T x) const {
    return wrap<T>(std::uint64_t{0} - static_cast<std::uint64_t>(x));
  }
};
struct Abs {
  double operator()(double x) const { return std::fabs(x); }
  std::uint64_t operator()(std::uint64_t x) const { return x; }
  std::int64_t operator()(std::int64_t x) const { return x < 0 ? Neg{}(x) : x; }
};
struct Sign {
  double operator()(double x) const { return x > 0 ? 1 : x < 0 ? -1 : x; }
  template <Integer T>
  T operator()(T x) const {
    return static_cast<T>((x > 0) - (x < 0));
  }
};
struct Ceil {
  double operator()(double x) const { return std::ceil(x); }
};
struct Floor {
  double operator()(double x) const { return std::floor(x); }
};
struct Round {
  double operator()(double x) const { return std::nearbyint(x); }
};
struct Trunc {
  double operator()(double x) const { return std::trunc(x); }
};
struct Sqrt {
  template <class T>
  requires(Number<T> && !Integer<T>) T operator()(T x) const { return std::sqrt(x); }
};
struct Rsqrt {
  double operator()(double x) const { return 1 / std::sqrt(x); }
};
struct Reciprocal {
  double operator()(double x) const { return 1 / x; }
  Complex operator()(Complex x) const { return 1.0 / x; }
};
struct Exp {
  template <class T>
  requires(Number<T> && !Integer<T>) T operator()(T x) const { return std::exp(x); }
};
struct Log {
  template <class T>
  requires(Number<T> && !Integer<T>) T operator()(T x) const { return std::log(x); }
};

// A functor for a function of <cmath>, of doubles only.
template <double (*F)(double)>
struct Real1 {
  double operator()(double x) const { return F(x); }
};

double sigmoid_of(double x) {
  return x >= 0 ? 1 / (1 + std::exp(-x)) : std::exp(x) / (1 + std::exp(x));
}
double gelu_of(double x) {
  if (std::isinf(x)) return x > 0 ? x : -0.0;
  return 0.5 * x * std::erfc(-x / std::numbers::sqrt2);
}
double gelu_tanh_of(double x) {
  if (std::isinf(x)) return x > 0 ? x : -0.0;
  const double u = std::sqrt(2 / std::numbers::pi) * (x + 0.044715 * x * x * x);
  return x * sigmoid_of(2 * u);  // (1 + tanh u) / 2 without cancellation
}
double silu_of(double x) { return std::isinf(x) && x < 0 ? -0.0 : x * sigmoid_of(x); }
double softplus_of(double x) {
  return std::fmax(x, 0) + std::log1p(std::exp(-std::fabs(x))) + (std::isnan(x) ? x : 0);
}
double softsign_of(double x) {
  return std::isinf(x) ? std::copysign(1, x) : x / (1 + std::fabs(x));
}
double mish_of(double x) { return std::isinf(x) && x < 0 ? -0.0 : x * std::tanh(softplus_of(x)); }
double relu_of(double x) { return x < 0 ? 0 : x; }
double hard_swish_of(double x) {
  if (std::isinf(x)) return x > 0 ? x : -0.0;
  const double gate = x + 3 < 0 ? 0 : x + 3 > 6 ? 6 : x + 3;
  return x * gate / 6;
}
double log_sigmoid_of(double x) { return -softplus_of(-x); }

struct LogicalNot {
  std::uint64_t operator()(std::uint64_t x) const { return x == 0; }
};
struct BitwiseNot {
  template <Integer T>
  T operator()(T x) const {
    return ~x;
  }
};
struct IsNan {
  bool operator()(double x) const { return std::isnan(x); }
};
struct IsInf {
  bool operator()(double x) const { return std::isinf(x); }
};

struct Add {
  template <class T>
  requires(Number<T> && !Integer<T>) T operator()(T a, T b) const { return a + b; }
  template <Integer T>
  T operator()(T a, T b) const {
    return wrap<T>(static_cast<std::uint64_t>(a) + static_cast<std::uint64_t>(b));
  }
};
struct Sub {
  template <class T>
  requires(Number<T> && !Integer<T>) T operator()(T a, T b) const { return a - b; }
  template <Integer T>
  T operator()(T a, T b) const {
    return wrap<T>(static_cast<std::uint64_t>(a) - static_cast<std::uint64_t>(b));
  }
};
struct Mul {
  template <class T>
  requires(Number<T> && !Integer<T>) T operator()(T a, T b) const { return a * b; }
  template <Integer T>
  T operator()(T a, T b) const {
    return wrap<T>(static_cast<std::uint64_t>(a) * static_cast<std::uint64_t>(b));
  }
};

template <Integer T>
void require_divisor(T b) {
  if (b == 0) throw IndexError("integer division by zero");
}

struct Div {
  template <class T>
  requires(Number<T> && !Integer<T>) T operator()(T a, T b) const { return a / b; }
  template <Integer T>
  T operator()(T a, T b) const {
    require_divisor(b);
    if constexpr (std::is_signed_v<T>) {
      if (b == -1) return Neg{}(a);
    }
    return a / b;
  }
};
struct Max {
  double operator()(double a, double b) const {
    return std::isnan(a) || a > b ? a : a == b && std::signbit(b) ? a : b;
  }
  template <Integer T>
  T operator()(T a, T b) const {
    return a > b ? a : b;
  }
};
struct Min {
  double operator()(double a, double b) const {
    return std::isnan(a) || a < b ? a : a == b && std::signbit(a) ? a : b;
  }
  template <Integer T>
  T operator()(T a, T b) const {
    return a < b ? a : b;
  }
};
struct Pow {
  double operator()(double a, double b) const { return std::pow(a, b); }
  Complex operator()(Complex a, Complex b) const { return std::pow(a, b); }
  // By squaring, modulo 2^64. A negative exponent gives the truncated quotient: 0 but for the bases
  // 1 and -1.
  template <Integer T>
  T operator()(T a, T b) const {
    if constexpr (std::is_signed_v<T>) {
      if (b < 0) return a == 1 ? 1 : a == -1 ? (b % 2 == 0 ? 1 : -1) : 0;
    }
    std::uint64_t result = 1;
    auto base = static_cast<std::uint64_t>(a);
    for (auto n = static_cast<std::uint64_t>(b); n != 0; n >>= 1, base *= base) {
      if (n & 1) result *= base;
    }
    return wrap<T>(result);
  }
};
struct Remainder {
  double operator()(double a, double b) const { return std::fmod(a, b); }
  template <Integer T>
  T operator()(T a, T b) const {
    require_divisor(b);
    if constexpr (std::is_signed_v<T>) {
      if (b == -1) return 0;
    }
    return a % b;
  }
};
struct Modulo {
  double operator()(double a, double b) const {
    const double r = std::fmod(a, b);
    if (r == 0) return std::copysign(0.0, b);
    return (r < 0) != (b < 0) ? r + b : r;
  }
  template <Integer T>
  T operator()(T a, T b) const {
    const T r = Remainder{}(a, b);
    return r != 0 && (r < 0) != (b < 0) ? r + b : r;
  }
};
struct Atan2 {
  double operator()(double a, double b) const { return std::atan2(a, b); }
};
struct BitAnd {
  template <Integer T>
  T operator()(T a, T b) const {
    return a & b;
  }
};
struct BitOr {
  template <Integer T>
  T operator()(T a, T b) const {
    return a | b;
  }
};
struct BitXor {
  template <Integer T>
  T operator()(T a, T b) const {
    return a ^ b;
  }
};
// Shifting by the width or more, or by a negative number, leaves only the sign.
struct ShiftLeft {
  template <Integer T>
  T operator()(T a, T b) const {
    return static_cast<std::uint64_t>(b) >= 64
               ? 0
               : wrap<T>(static_cast<std::uint64_t>(a) << static_cast<std::uint64_t>(b));
  }
};
struct ShiftRight {
  template <Integer T>
  T operator()(T a, T b) const {
    return static_cast<std::uint64_t>(b) >= 64 ? (a < 0 ? static_cast<T>(-1) : 0) : a >> b;
  }
};
struct LogicalAnd {
  std::uint64_t operator()(std::uint64_t a, std::uint64_t b) const { return a != 0 && b != 0; }
};
struct LogicalOr {
  std::uint64_t operator()(std::uint64_t a, std::uint64_t b) const { return a != 0 || b != 0; }
};
struct LogicalXor {
  std::uint64_t operator()(std::uint64_t a, std::uint64_t b) const { return (a != 0) != (b != 0); }
};
struct Equal {
  template <class T>
  bool operator()(const T& a, const T& b) const {
    return a == b;
  }
};
struct NotEqual {
  template <class T>
  bool operator()(const T& a, const T& b) const {
    return a != b;
  }
};
struct Less {
  template <Real T>
  bool operator()(T a, T b) const {
    return a < b;
  }
};
struct LessEqual {
  template <Real T>
  bool operator()(T a, T b) const {
    return a <= b;
  }
};
struct Greater {
  template <Real T>
  bool operator()(T a, T b) const {
    return a > b;
  }
};
struct GreaterEqual {
  template <Real T>
  bool operator()(T a, T b) const {
    return a >= b;
  }
};
struct Clamp {
  template <Real T>
  T operator()(T x, T low, T high) const {
    return Min{}(Max{}(x, low), high);
  }
};
struct Fma {
  double operator()(double a, double b, double c) const { return std::fma(a, b, c); }
  template <Integer T>
  T operator()(T a, T b, T c) const {
    return Add{}(Mul{}(a, b), c);
  }
};

// A sum that is rounded to double and then to a narrower dtype is rounded twice. Of a float
// narrower than double the product is exact, and the sum is kept so that the second rounding is the
// only one.
template <class F>
void evaluate_fma(Evaluation& run) {
  const DType dtype = run.out().dtype();
  if (!is_floating(dtype) || dtype == DType::f64) return evaluate_row<3, F>(run);
  walk<double, double, 3>(run, [](double a, double b, double c) { return sum_to_odd(a * b, c); });
}

// ---------------------------------------------------------------- the table

template <std::size_t N, class F>
consteval Elementwise row(unsigned domain, Elementwise::Result result = Elementwise::Result::same) {
  return {.arity = N, .domain = domain, .result = result, .evaluate = evaluate_row<N, F>};
}
template <class F>
consteval Elementwise commutative_row(unsigned domain,
                                      Elementwise::Result result = Elementwise::Result::same) {
  return {.arity = 2,
          .domain = domain,
          .result = result,
          .commutative = true,
          .evaluate = evaluate_row<2, F>};
}
constexpr auto kToBool = Elementwise::Result::boolean;

consteval OpDef op(std::string_view name, std::string_view summary, const Elementwise& row,
                   std::string_view onnx = {}, Names inputs = {}) {
  OpDef def{.name = name, .summary = summary, .inputs = {}, .outputs = {}, .onnx = onnx};
  def.inputs = inputs.size() > 0 ? inputs
               : row.conditional ? Names{"condition", "on_true", "on_false"}
               : row.arity == 1  ? Names{"x"}
               : row.arity == 2  ? Names{"a", "b"}
                                 : Names{"x", "low", "high"};
  def.outputs = {"y"};
  def.elementwise = &row;
  def.attributes = &attribute_type<NoAttributes>;
  def.infer = [](const Op& o, InferArgs& args) -> Types {
    return {infer(*o.as<NoAttributes>(), args)};
  };
  def.evaluate = [](const Op& o, Evaluation& run) { o.def().elementwise->evaluate(run); };
  return def;
}

constexpr Elementwise neg_row = row<1, Neg>(kNumber);
constexpr Elementwise abs_row = row<1, Abs>(kReal);
constexpr Elementwise sign_row = row<1, Sign>(kReal);
constexpr Elementwise ceil_row = row<1, Ceil>(kFloat);
constexpr Elementwise floor_row = row<1, Floor>(kFloat);
constexpr Elementwise round_row = row<1, Round>(kFloat);
constexpr Elementwise trunc_row = row<1, Trunc>(kFloat);
constexpr Elementwise sqrt_row = row<1, Sqrt>(kFloat | kComplex);
constexpr Elementwise rsqrt_row = row<1, Rsqrt>(kFloat);
constexpr Elementwise reciprocal_row = row<1, Reciprocal>(kFloat | kComplex);
constexpr Elementwise exp_row = row<1, Exp>(kFloat | kComplex);
constexpr Elementwise expm1_row = row<1, Real1<std::expm1>>(kFloat);
constexpr Elementwise log_row = row<1, Log>(kFloat | kComplex);
constexpr Elementwise log1p_row = row<1, Real1<std::log1p>>(kFloat);
constexpr Elementwise sin_row = row<1, Real1<std::sin>>(kFloat);
constexpr Elementwise cos_row = row<1, Real1<std::cos>>(kFloat);
constexpr Elementwise tan_row = row<1, Real1<std::tan>>(kFloat);
constexpr Elementwise asin_row = row<1, Real1<std::asin>>(kFloat);
constexpr Elementwise acos_row = row<1, Real1<std::acos>>(kFloat);
constexpr Elementwise atan_row = row<1, Real1<std::atan>>(kFloat);
constexpr Elementwise sinh_row = row<1, Real1<std::sinh>>(kFloat);
constexpr Elementwise cosh_row = row<1, Real1<std::cosh>>(kFloat);
constexpr Elementwise tanh_row = row<1, Real1<std::tanh>>(kFloat);
constexpr Elementwise asinh_row = row<1, Real1<std::asinh>>(kFloat);
constexpr Elementwise acosh_row = row<1, Real1<std::acosh>>(kFloat);
constexpr Elementwise atanh_row = row<1, Real1<std::atanh>>(kFloat);
constexpr Elementwise erf_row = row<1, Real1<std::erf>>(kFloat);
constexpr Elementwise sigmoid_row = row<1, Real1<sigmoid_of>>(kFloat);
constexpr Elementwise relu_row = row<1, Real1<relu_of>>(kFloat);
constexpr Elementwise gelu_row = row<1, Real1<gelu_of>>(kFloat);
constexpr Elementwise gelu_tanh_row = row<1, Real1<gelu_tanh_of>>(kFloat);
constexpr Elementwise silu_row = row<1, Real1<silu_of>>(kFloat);
constexpr Elementwise softplus_row = row<1, Real1<softplus_of>>(kFloat);
constexpr Elementwise softsign_row = row<1, Real1<softsign_of>>(kFloat);
constexpr Elementwise mish_row = row<1, Real1<mish_of>>(kFloat);
constexpr Elementwise hard_swish_row = row<1, Real1<hard_swish_of>>(kFloat);
constexpr Elementwise log_sigmoid_row = row<1, Real1<log_sigmoid_of>>(kFloat);
constexpr Elementwise logical_not_row = row<1, LogicalNot>(kBool);
constexpr Elementwise bitwise_not_row = row<1, BitwiseNot>(kInteger);
constexpr Elementwise is_nan_row = row<1, IsNan>(kFloat, kToBool);
constexpr Elementwise is_inf_row = row<1, IsInf>(kFloat, kToBool);

constexpr Elementwise add_row = commutative_row<Add>(kNumber);
constexpr Elementwise sub_row = row<2, Sub>(kNumber);
constexpr Elementwise mul_row = commutative_row<Mul>(kNumber);
constexpr Elementwise div_row = row<2, Div>(kNumber);
constexpr Elementwise max_row = commutative_row<Max>(kReal);
constexpr Elementwise min_row = commutative_row<Min>(kReal);
constexpr Elementwise pow_row = row<2, Pow>(kNumber);
constexpr Elementwise remainder_row = row<2, Remainder>(kReal);
constexpr Elementwise modulo_row = row<2, Modulo>(kReal);
constexpr Elementwise atan2_row = row<2, Atan2>(kFloat);
constexpr Elementwise bitwise_and_row = commutative_row<BitAnd>(kInteger);
constexpr Elementwise bitwise_or_row = commutative_row<BitOr>(kInteger);
constexpr Elementwise bitwise_xor_row = commutative_row<BitXor>(kInteger);
constexpr Elementwise shift_left_row = row<2, ShiftLeft>(kInteger);
constexpr Elementwise shift_right_row = row<2, ShiftRight>(kInteger);
constexpr Elementwise logical_and_row = commutative_row<LogicalAnd>(kBool);
constexpr Elementwise logical_or_row = commutative_row<LogicalOr>(kBool);
constexpr Elementwise logical_xor_row = commutative_row<LogicalXor>(kBool);
constexpr Elementwise equal_row = commutative_row<Equal>(kAny, kToBool);
constexpr Elementwise not_equal_row = commutative_row<NotEqual>(kAny, kToBool);
constexpr Elementwise less_row = row<2, Less>(kReal, kToBool);
constexpr Elementwise less_equal_row = row<2, LessEqual>(kReal, kToBool);
constexpr Elementwise greater_row = row<2, Greater>(kReal, kToBool);
constexpr Elementwise greater_equal_row = row<2, GreaterEqual>(kReal, kToBool);
constexpr Elementwise select_row{
    .arity = 3, .domain = kAny, .conditional = true, .evaluate = evaluate_select};
constexpr Elementwise clamp_row = row<3, Clamp>(kReal);
constexpr Elementwise fma_row{.arity = 3, .domain = kReal, .evaluate = evaluate_fma<Fma>};

}  // namespace

constinit const OpDef neg_def = op("neg", "-x", neg_row, "Neg");
constinit const OpDef abs_def = op("abs", "The magnitude of x.", abs_row, "Abs");
constinit const OpDef sign_def = op("sign", "-1, 0 or 1; NaN of NaN.", sign_row, "Sign");
constinit const OpDef ceil_def = op("ceil", "The least integer not below x.", ceil_row, "Ceil");
constinit const OpDef floor_def =
    op("floor", "The greatest integer not above x.", floor_row, "Floor");
constinit const OpDef round_def =
    op("round", "The nearest integer, half to even.", round_row, "Round");
constinit const OpDef trunc_def = op("trunc", "x without its fraction.", trunc_row);
constinit const OpDef sqrt_def = op("sqrt", "The square root.", sqrt_row, "Sqrt");
constinit const OpDef rsqrt_def = op("rsqrt", "1 / sqrt x", rsqrt_row);
constinit const OpDef reciprocal_def = op("reciprocal", "1 / x", reciprocal_row, "Reciprocal");
constinit const OpDef exp_def = op("exp", "e to the power of x.", exp_row, "Exp");
constinit const OpDef expm1_def = op("expm1", "exp x - 1, exact near 0.", expm1_row);
constinit const OpDef log_def = op("log", "The natural logarithm.", log_row, "Log");
constinit const OpDef log1p_def = op("log1p", "log(1 + x), exact near 0.", log1p_row);
constinit const OpDef sin_def = op("sin", "The sine of x in radians.", sin_row, "Sin");
constinit const OpDef cos_def = op("cos", "The cosine of x in radians.", cos_row, "Cos");
constinit const OpDef tan_def = op("tan", "The tangent of x in radians.", tan_row, "Tan");
constinit const OpDef asin_def = op("asin", "The inverse sine.", asin_row, "Asin");
constinit const OpDef acos_def = op("acos", "The inverse cosine.", acos_row, "Acos");
constinit const OpDef atan_def = op("atan", "The inverse tangent.", atan_row, "Atan");
constinit const OpDef sinh_def = op("sinh", "The hyperbolic sine.", sinh_row, "Sinh");
constinit const OpDef cosh_def = op("cosh", "The hyperbolic cosine.", cosh_row, "Cosh");
constinit const OpDef tanh_def = op("tanh", "The hyperbolic tangent.", tanh_row, "Tanh");
constinit const OpDef asinh_def = op("asinh", "The inverse hyperbolic sine.", asinh_row, "Asinh");
constinit const OpDef acosh_def = op("acosh", "The inverse hyperbolic cosine.", acosh_row, "Acosh");
constinit const OpDef atanh_def =
    op("atanh", "The inverse hyperbolic tangent.", atanh_row, "Atanh");
constinit const OpDef erf_def = op("erf", "The error function.", erf_row, "Erf");
constinit const OpDef sigmoid_def = op("sigmoid", "1 / (1 + exp(-x))", sigmoid_row, "Sigmoid");
constinit const OpDef relu_def = op("relu", "max(x, 0); NaN of NaN.", relu_row, "Relu");
constinit const OpDef gelu_def = op("gelu", "x/2 (1 + erf(x / sqrt 2))", gelu_row);
constinit const OpDef gelu_tanh_def =
    op("gelu_tanh", "x/2 (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3)))", gelu_tanh_row);
constinit const OpDef silu_def = op("silu", "x sigmoid(x)", silu_row);
constinit const OpDef softplus_def = op("softplus", "log(1 + exp x)", softplus_row, "Softplus");
constinit const OpDef softsign_def = op("softsign", "x / (1 + |x|)", softsign_row, "Softsign");
constinit const OpDef mish_def = op("mish", "x tanh(softplus x)", mish_row, "Mish");
constinit const OpDef hard_swish_def =
    op("hard_swish", "x clamp(x + 3, 0, 6) / 6", hard_swish_row, "HardSwish");
constinit const OpDef log_sigmoid_def = op("log_sigmoid", "-log(1 + exp(-x))", log_sigmoid_row);
constinit const OpDef logical_not_def =
    op("logical_not", "Whether x is false.", logical_not_row, "Not");
constinit const OpDef bitwise_not_def =
    op("bitwise_not", "Each bit turned over.", bitwise_not_row, "BitwiseNot");
constinit const OpDef is_nan_def = op("is_nan", "Whether x is NaN.", is_nan_row, "IsNaN");
constinit const OpDef is_inf_def =
    op("is_inf", "Whether x is infinite, of either sign.", is_inf_row);

constinit const OpDef add_def = op("add", "a + b; integers wrap.", add_row, "Add");
constinit const OpDef sub_def = op("sub", "a - b; integers wrap.", sub_row, "Sub");
constinit const OpDef mul_def = op("mul", "a b; integers wrap.", mul_row, "Mul");
constinit const OpDef div_def =
    op("div", "a / b; of integers the truncated quotient, division by zero a fault of the run.",
       div_row, "Div");
constinit const OpDef max_def = op("max", "The greater; NaN if either is. 0 is above -0.", max_row);
constinit const OpDef min_def = op("min", "The lesser; NaN if either is. -0 is below 0.", min_row);
constinit const OpDef pow_def =
    op("pow", "a to the power of b; of integers modulo the dtype's range.", pow_row);
constinit const OpDef remainder_def =
    op("remainder", "What a leaves over b, with the sign of a.", remainder_row);
constinit const OpDef modulo_def =
    op("modulo", "What a leaves over b, with the sign of b.", modulo_row);
constinit const OpDef atan2_def = op("atan2", "The angle of the point (b, a).", atan2_row);
constinit const OpDef bitwise_and_def =
    op("bitwise_and", "Bits set in both.", bitwise_and_row, "BitwiseAnd");
constinit const OpDef bitwise_or_def =
    op("bitwise_or", "Bits set in either.", bitwise_or_row, "BitwiseOr");
constinit const OpDef bitwise_xor_def =
    op("bitwise_xor", "Bits set in one of them.", bitwise_xor_row, "BitwiseXor");
constinit const OpDef shift_left_def =
    op("shift_left", "a 2^b, modulo the dtype's range.", shift_left_row);
constinit const OpDef shift_right_def =
    op("shift_right", "a shifted by b bits, the sign kept.", shift_right_row);
constinit const OpDef logical_and_def =
    op("logical_and", "Whether both are true.", logical_and_row, "And");
constinit const OpDef logical_or_def =
    op("logical_or", "Whether one is true.", logical_or_row, "Or");
constinit const OpDef logical_xor_def =
    op("logical_xor", "Whether exactly one is true.", logical_xor_row, "Xor");
constinit const OpDef equal_def = op("equal", "Whether a = b.", equal_row, "Equal");
constinit const OpDef not_equal_def =
    op("not_equal", "Whether a and b differ; true of NaN.", not_equal_row);
constinit const OpDef less_def = op("less", "Whether a < b.", less_row, "Less");
constinit const OpDef less_equal_def =
    op("less_equal", "Whether a <= b.", less_equal_row, "LessOrEqual");
constinit const OpDef greater_def = op("greater", "Whether a > b.", greater_row, "Greater");
constinit const OpDef greater_equal_def =
    op("greater_equal", "Whether a >= b.", greater_equal_row, "GreaterOrEqual");
constinit const OpDef select_def =
    op("select", "on_true where the condition holds, else on_false.", select_row);
constinit const OpDef clamp_def = op("clamp", "min(max(x, low), high); NaN of NaN.", clamp_row);
constinit const OpDef fma_def = op("fma", "a b + c, rounded once.", fma_row, {}, {"a", "b", "c"});

std::span<const OpDef* const> elementwise_ops() {
  static constexpr const OpDef* kOps[] = {
      &neg_def,         &abs_def,         &sign_def,        &ceil_def,        &floor_def,
      &round_def,       &trunc_def,       &sqrt_def,        &rsqrt_def,       &reciprocal_def,
      &exp_def,         &expm1_def,       &log_def,         &log1p_def,       &sin_def,
      &cos_def,         &tan_def,         &asin_def,        &acos_def,        &atan_def,
      &sinh_def,        &cosh_def,        &tanh_def,        &asinh_def,       &acosh_def,
      &atanh_def,       &erf_def,         &sigmoid_def,     &relu_def,        &gelu_def,
      &gelu_tanh_def,   &silu_def,        &softplus_def,    &softsign_def,    &mish_def,
      &hard_swish_def,  &log_sigmoid_def, &logical_not_def, &bitwise_not_def, &is_nan_def,
      &is_inf_def,      &add_def,         &sub_def,         &mul_def,         &div_def,
      &max_def,         &min_def,         &pow_def,         &remainder_def,   &modulo_def,
      &atan2_def,       &bitwise_and_def, &bitwise_or_def,  &bitwise_xor_def, &shift_left_def,
      &shift_right_def, &logical_and_def, &logical_or_def,  &logical_xor_def, &equal_def,
      &not_equal_def,   &less_def,        &less_equal_def,  &greater_def,     &greater_equal_def,
      &select_def,      &clamp_def,       &fma_def};
  return kOps;
}

Value elementwise(const OpDef& def, std::vector<Value> operands) {
  if (operands.empty() || !operands[0]) {
    throw InvalidArgument(fmt::format("{}: input {} is missing", def.name, def.inputs.label(0)));
  }
  Graph& graph = operands[0].graph();
  return graph.add1(make_op(def, NoAttributes{}), std::move(operands));
}

// ---------------------------------------------------------------- cast

TensorType infer(const Cast& op, InferArgs& in) {
  const DType from = in[0].dtype;
  if ((from == DType::string) != (op.to == DType::string)) {
    throw InvalidArgument(
        fmt::format("x is {}, which does not cast to {}", name(from), name(op.to)));
  }
  return {op.to, in[0].shape};
}

namespace {

template <class T>
T saturated(double x, unsigned bits) {
  if (std::isnan(x)) return 0;
  constexpr bool is_signed = std::is_signed_v<T>;
  const double limit = std::ldexp(1.0, static_cast<int>(bits) - (is_signed ? 1 : 0));
  const double low = is_signed ? -limit : 0;
  const T highest = is_signed ? static_cast<T>((std::uint64_t{1} << (bits - 1)) - 1)
                              : static_cast<T>(~std::uint64_t{0} >> (64 - bits));
  const double whole = std::trunc(x);
  if (whole >= limit) return highest;
  if (whole <= low) return is_signed ? static_cast<T>(~std::uint64_t{0} << (bits - 1)) : 0;
  return static_cast<T>(whole);
}

// A 64-bit integer on its way to a float narrower than double, which rounds it once.
template <class T>
double to_odd_double(T x) {
  const double high = std::ldexp(static_cast<double>(x >> 32), 32);
  return sum_to_odd(high, static_cast<double>(static_cast<std::uint64_t>(x) & 0xffffffffU));
}

template <class From, class To>
To cast_element(const From& x, DType to) {
  if constexpr (std::is_same_v<From, To>) {
    if (to == DType::boolean) {
      if constexpr (std::is_same_v<To, std::uint64_t>) return x != 0;
    }
    return x;
  } else if constexpr (std::is_same_v<From, Complex>) {
    if (to == DType::boolean) return static_cast<To>(x != Complex());
    return cast_element<double, To>(x.real(), to);
  } else if constexpr (std::is_same_v<To, Complex>) {
    return Complex(cast_element<From, double>(x, to == DType::c64 ? DType::f32 : DType::f64), 0);
  } else if constexpr (std::is_same_v<To, double>) {
    return to == DType::f64 ? static_cast<double>(x) : to_odd_double(x);
  } else {
    if (to == DType::boolean) return x != 0;
    if constexpr (std::is_same_v<From, double>) {
      return saturated<To>(x, traits(to).bits);
    } else {
      return static_cast<To>(x);
    }
  }
}

}  // namespace

void evaluate(const Cast& op, Evaluation& run) {
  const HostArray& x = run.in(0);
  HostArray& y = run.out();
  if (op.to == DType::string) {
    y = x;
    return;
  }
  visit_numbers(x, [&](auto from) {
    visit_numbers(y, [&](auto to) {
      using From = decltype(from);
      using To = decltype(to);
      for (std::size_t i = 0; i < x.size(); ++i)
        y.as<To>()[i] = cast_element<From, To>(x.as<From>()[i], op.to);
    });
  });
}

constinit const OpDef cast_def = define<Cast>({
    .name = "cast",
    .summary = "The same numbers in another dtype: integers wrap, floats truncate and saturate, "
               "NaN becomes 0.",
    .inputs = {"x"},
    .outputs = {"y"},
});

// ---------------------------------------------------------------- builders

namespace {

Tensor scalar_tensor(DType dtype, double value) {
  HostArray y(dtype, {});
  visit_numbers(y, [&](auto zero) {
    y.as<decltype(zero)>()[0] = cast_element<double, decltype(zero)>(value, dtype);
  });
  return y.to_tensor();
}

}  // namespace

inline namespace v0 {

Value scalar(Graph& graph, DType dtype, double value) {
  return graph.constant(scalar_tensor(dtype, value));
}
Value scalar(Value like, double value) { return scalar(like.graph(), like.dtype(), value); }

Value operator-(Value x) { return elementwise(neg_def, {x}); }
Value operator+(Value a, Value b) { return elementwise(add_def, {a, b}); }
Value operator-(Value a, Value b) { return elementwise(sub_def, {a, b}); }
Value operator*(Value a, Value b) { return elementwise(mul_def, {a, b}); }
Value operator/(Value a, Value b) { return elementwise(div_def, {a, b}); }
Value operator+(Value a, double b) { return a + scalar(a, b); }
Value operator-(Value a, double b) { return a - scalar(a, b); }
Value operator*(Value a, double b) { return a * scalar(a, b); }
Value operator/(Value a, double b) { return a / scalar(a, b); }
Value operator+(double a, Value b) { return scalar(b, a) + b; }
Value operator-(double a, Value b) { return scalar(b, a) - b; }
Value operator*(double a, Value b) { return scalar(b, a) * b; }
Value operator/(double a, Value b) { return scalar(b, a) / b; }

Value abs(Value x) { return elementwise(abs_def, {x}); }
Value sign(Value x) { return elementwise(sign_def, {x}); }
Value ceil(Value x) { return elementwise(ceil_def, {x}); }
Value floor(Value x) { return elementwise(floor_def, {x}); }
Value round(Value x) { return elementwise(round_def, {x}); }
Value trunc(Value x) { return elementwise(trunc_def, {x}); }
Value sqrt(Value x) { return elementwise(sqrt_def, {x}); }
Value rsqrt(Value x) { return elementwise(rsqrt_def, {x}); }
Value reciprocal(Value x) { return elementwise(reciprocal_def, {x}); }
Value exp(Value x) { return elementwise(exp_def, {x}); }
Value expm1(Value x) { return elementwise(expm1_def, {x}); }
Value log(Value x) { return elementwise(log_def, {x}); }
Value log1p(Value x) { return elementwise(log1p_def, {x}); }
Value sin(Value x) { return elementwise(sin_def, {x}); }
Value cos(Value x) { return elementwise(cos_def, {x}); }
Value tan(Value x) { return elementwise(tan_def, {x}); }
Value asin(Value x) { return elementwise(asin_def, {x}); }
Value acos(Value x) { return elementwise(acos_def, {x}); }
Value atan(Value x) { return elementwise(atan_def, {x}); }
Value sinh(Value x) { return elementwise(sinh_def, {x}); }
Value cosh(Value x) { return elementwise(cosh_def, {x}); }
Value tanh(Value x) { return elementwise(tanh_def, {x}); }
Value asinh(Value x) { return elementwise(asinh_def, {x}); }
Value acosh(Value x) { return elementwise(acosh_def, {x}); }
Value atanh(Value x) { return elementwise(atanh_def, {x}); }
Value erf(Value x) { return elementwise(erf_def, {x}); }
Value sigmoid(Value x) { return elementwise(sigmoid_def, {x}); }
Value relu(Value x) { return elementwise(relu_def, {x}); }
Value gelu(Value x) { return elementwise(gelu_def, {x}); }
Value gelu_tanh(Value x) { return elementwise(gelu_tanh_def, {x}); }
Value silu(Value x) { return elementwise(silu_def, {x}); }
Value softplus(Value x) { return elementwise(softplus_def, {x}); }
Value softsign(Value x) { return elementwise(softsign_def, {x}); }
Value mish(Value x) { return elementwise(mish_def, {x}); }
Value hard_swish(Value x) { return elementwise(hard_swish_def, {x}); }
Value log_sigmoid(Value x) { return elementwise(log_sigmoid_def, {x}); }
Value logical_not(Value x) { return elementwise(logical_not_def, {x}); }
Value bitwise_not(Value x) { return elementwise(bitwise_not_def, {x}); }
Value is_nan(Value x) { return elementwise(is_nan_def, {x}); }
Value is_inf(Value x) { return elementwise(is_inf_def, {x}); }
Value max(Value a, Value b) { return elementwise(max_def, {a, b}); }
Value min(Value a, Value b) { return elementwise(min_def, {a, b}); }
Value pow(Value a, Value b) { return elementwise(pow_def, {a, b}); }
Value remainder(Value a, Value b) { return elementwise(remainder_def, {a, b}); }
Value modulo(Value a, Value b) { return elementwise(modulo_def, {a, b}); }
Value atan2(Value a, Value b) { return elementwise(atan2_def, {a, b}); }
Value bitwise_and(Value a, Value b) { return elementwise(bitwise_and_def, {a, b}); }
Value bitwise_or(Value a, Value b) { return elementwise(bitwise_or_def, {a, b}); }
Value bitwise_xor(Value a, Value b) { return elementwise(bitwise_xor_def, {a, b}); }
Value shift_left(Value a, Value b) { return elementwise(shift_left_def, {a, b}); }
Value shift_right(Value a, Value b) { return elementwise(shift_right_def, {a, b}); }
Value logical_and(Value a, Value b) { return elementwise(logical_and_def, {a, b}); }
Value logical_or(Value a, Value b) { return elementwise(logical_or_def, {a, b}); }
Value logical_xor(Value a, Value b) { return elementwise(logical_xor_def, {a, b}); }
Value equal(Value a, Value b) { return elementwise(equal_def, {a, b}); }
Value not_equal(Value a, Value b) { return elementwise(not_equal_def, {a, b}); }
Value less(Value a, Value b) { return elementwise(less_def, {a, b}); }
Value less_equal(Value a, Value b) { return elementwise(less_equal_def, {a, b}); }
Value greater(Value a, Value b) { return elementwise(greater_def, {a, b}); }
Value greater_equal(Value a, Value b) { return elementwise(greater_equal_def, {a, b}); }
Value select(Value condition, Value on_true, Value on_false) {
  return elementwise(select_def, {condition, on_true, on_false});
}
Value clamp(Value x, Value low, Value high) { return elementwise(clamp_def, {x, low, high}); }
Value fma(Value a, Value b, Value c) { return elementwise(fma_def, {a, b, c}); }

Value elu(Value x, double alpha) { return select(greater(x, scalar(x, 0)), x, alpha * expm1(x)); }
Value celu(Value x, double alpha) {
  return select(greater(x, scalar(x, 0)), x, alpha * expm1(x / alpha));
}
Value selu(Value x, double alpha, double gamma) { return gamma * elu(x, alpha); }
Value prelu(Value x, Value slope) { return select(less(x, scalar(x, 0)), slope * x, x); }
Value leaky_relu(Value x, double alpha) { return prelu(x, scalar(x, alpha)); }
Value hard_sigmoid(Value x, double alpha, double beta) {
  return clamp(alpha * x + beta, scalar(x, 0), scalar(x, 1));
}

Value cast(Value x, DType to) {
  if (x.dtype() == to) return x;
  return x.graph().add1(make_op(cast_def, Cast{to}), {x});
}

}  // namespace v0
}  // namespace rlx
