#include "ops/elementwise.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <random>

#include "base/cpu_features.h"
#include "compiler/fused.h"
#include "kernel_run.h"
#include "ops/host_array.h"
#include "rlx/ops.h"

namespace rlx {
namespace {

constexpr DType kNumbers[] = {DType::f64,     DType::f32,    DType::f16,        DType::bf16,
                              DType::f8e4m3,  DType::f8e5m2, DType::f8e4m3fnuz, DType::f8e5m2fnuz,
                              DType::f8e8m0,  DType::f6e2m3, DType::f6e3m2,     DType::f4e2m1,
                              DType::i64,     DType::i32,    DType::i16,        DType::i8,
                              DType::i4,      DType::i2,     DType::u64,        DType::u32,
                              DType::u16,     DType::u8,     DType::u4,         DType::u2,
                              DType::boolean, DType::c64,    DType::c128};

bool takes(const OpDef& op, DType dtype) {
  const unsigned domain = op.elementwise->domain;
  switch (traits(dtype).kind) {
    case DTypeKind::floating:
      return (domain & Elementwise::kFloat) != 0;
    case DTypeKind::signed_integer:
    case DTypeKind::unsigned_integer:
      return (domain & Elementwise::kInteger) != 0;
    case DTypeKind::boolean:
      return (domain & Elementwise::kBool) != 0;
    case DTypeKind::complex:
      return (domain & Elementwise::kComplex) != 0;
    default:
      return false;
  }
}

// The operator on inputs a, b, c of these extents; the first is bool for `select`.
Graph graph_of(const OpDef& op, DType dtype, const std::vector<Tensor::Dims>& dims) {
  Graph g;
  std::vector<Value> operands;
  for (std::size_t i = 0; i < op.elementwise->arity; ++i) {
    const bool condition = i == 0 && op.elementwise->conditional;
    operands.push_back(g.input(std::string(1, static_cast<char>('a' + i)),
                               {condition ? DType::boolean : dtype, Shape::of(dims[i])}));
  }
  g.output("y", elementwise(op, operands));
  return g;
}

bool divides(const OpDef& op) {
  return &op == &div_def || &op == &remainder_def || &op == &modulo_def;
}

double ulps_of(const OpDef& op) {
  // x/2·(1 + tanh u) as x·sigmoid(2u): an error of u's rounding grows with u in the left tail.
  return &op == &gelu_tanh_def ? 64 : 4;
}

OpCase case_of(const OpDef& op, DType dtype, const std::vector<Tensor::Dims>& dims,
               std::uint64_t seed) {
  OpCase c{.name = fmt::format("{} of {}", op.name, name(dtype)),
           .build = [&op, dtype, dims](Graph& g) { g = graph_of(op, dtype, dims); },
           .inputs = {},
           .ulps = ulps_of(op)};
  if (&op == &gelu_def) c.scale_ulps = 2;  // its error is a share of |x|
  for (std::size_t i = 0; i < op.elementwise->arity; ++i) {
    const bool condition = i == 0 && op.elementwise->conditional;
    const bool positive = is_integer(dtype) && (divides(op) || is_unsigned_integer(dtype));
    const double high = traits(dtype).bits == 2 ? 1 : traits(dtype).bits < 8 ? 7 : 50;
    const double low = positive ? 1 : is_integer(dtype) ? -high : -2;
    c.inputs[std::string(1, static_cast<char>('a' + i))] = random_tensor(
        condition ? DType::boolean : dtype, dims[i], seed + i, low, is_integer(dtype) ? high : 2);
  }
  return c;
}

TEST(ElementwiseKernels, EveryRowHasOneForEveryDtypeOfItsDomain) {
  for (const OpDef* op : elementwise_ops()) {
    for (const DType dtype : kNumbers) {
      if (!takes(*op, dtype)) continue;
      const Graph g = graph_of(*op, dtype, {{2}, {2}, {2}});
      std::string why;
      EXPECT_NE(cpu::choose_kernel(*g.outputs()[0].value.node(), &why), nullptr)
          << op->name << " of " << name(dtype) << ": " << why;
    }
  }
}

TEST(ElementwiseKernels, AgreeWithReference) {
  for (const OpDef* op : elementwise_ops()) {
    for (const DType dtype : kNumbers) {
      if (!takes(*op, dtype)) continue;
      const Tensor::Dims dims = {3, 67};
      check_kernel(case_of(*op, dtype, {dims, dims, dims}, 11));
    }
  }
}

// Widths from below one vector to past four AVX-512 vectors, so that every remainder path runs.
TEST(ElementwiseKernels, EveryLength) {
  for (std::int64_t n = 1; n <= 67; ++n) {
    check_kernel(case_of(exp_def, f32, {{n}}, 5));
    check_kernel(case_of(log_def, f32, {{n}}, 5));
    check_kernel(case_of(add_def, f64, {{n}, {n}}, 5));
    check_kernel(case_of(select_def, f16, {{n}, {n}, {n}}, 5));
    check_kernel(case_of(less_def, DType::i8, {{n}, {n}}, 5));
    check_kernel(case_of(add_def, DType::i4, {{n}, {n}}, 5));
  }
}

TEST(ElementwiseKernels, Broadcast) {
  const std::vector<std::vector<Tensor::Dims>> shapes = {{{}, {5, 300}},
                                                         {{5, 300}, {300}},
                                                         {{5, 300}, {5, 1}},
                                                         {{5, 1}, {1, 300}},
                                                         {{2, 3, 70}, {3, 1}},
                                                         {{2, 3, 4}, {3, 1}},
                                                         {{7, 1, 3}, {1, 5, 1}},
                                                         {{1}, {1, 1}},
                                                         {{4, 1, 2, 100}, {6, 1, 100}},
                                                         {{40, 3, 70}, {40, 1, 70}},
                                                         {{2, 3, 5, 7}, {2, 1, 5, 1}}};
  for (const auto& dims : shapes) {
    for (const DType dtype :
         {DType::f32, DType::f64, DType::f16, DType::i8, DType::u4, DType::c64}) {
      check_kernel(case_of(sub_def, dtype, dims, 21));
      check_kernel(case_of(sub_def, dtype, {dims[1], dims[0]}, 22));
    }
    check_kernel(case_of(select_def, f32, {dims[0], dims[1], {}}, 23));
    check_kernel(case_of(clamp_def, DType::i32, {dims[1], {}, dims[0]}, 24));
  }
}

TEST(ElementwiseKernels, Empty) {
  for (const Tensor::Dims& dims : {Tensor::Dims{0}, Tensor::Dims{3, 0, 2}}) {
    check_kernel(case_of(add_def, f32, {dims, {1}}, 1));
    check_kernel(case_of(exp_def, f16, {dims}, 1));
  }
}

TEST(ElementwiseKernels, LargeEnoughForThreads) {
  check_kernel(case_of(mul_def, f32, {{300, 500}, {300, 500}}, 31));
  check_kernel(case_of(gelu_def, f32, {{300, 501}}, 32));
  check_kernel(case_of(add_def, f32, {{300, 501}, {501}}, 33));
  check_kernel(case_of(equal_def, DType::i64, {{300, 501}, {300, 1}}, 34));
}

// ---- float32 over its whole range

// Numbers of every exponent and the special ones; no subnormals, which runs flush.
std::vector<float> all_kinds_of_floats(std::uint32_t step) {
  std::vector<float> values = {0.0F,
                               -0.0F,
                               INFINITY,
                               -INFINITY,
                               NAN,
                               1.0F,
                               -1.0F,
                               3.402823466e38F,
                               -3.402823466e38F,
                               1.17549435e-38F,
                               -1.17549435e-38F,
                               88.7F,
                               -88.7F,
                               -103.0F,
                               0.5F,
                               2.5F,
                               -2.5F};
  for (std::uint64_t bits = 0; bits < (std::uint64_t{1} << 32); bits += step) {
    const auto x = std::bit_cast<float>(static_cast<std::uint32_t>(bits));
    if (x == 0 || std::isnan(x) || std::fabs(x) >= 1.17549435e-38F) values.push_back(x);
  }
  return values;
}

// Units in the last place of `exact`; of the least normal number below it.
double error_in_ulps(float found, double exact) {
  const auto nearest = static_cast<float>(exact);
  if (std::isnan(exact) || std::isnan(found))
    return std::isnan(exact) == std::isnan(found) ? 0 : 1e9;
  if (std::isinf(nearest) || std::isinf(found)) return nearest == found ? 0 : 1e9;
  if (nearest == 0 && found == 0) return std::signbit(exact) == std::signbit(found) ? 0 : 1e9;
  constexpr double kLeastNormal = 1.17549435e-38;
  if (std::fabs(exact) < kLeastNormal && std::fabs(found) < kLeastNormal) return 0;  // flushed
  const double ulp = std::ldexp(1.0, std::max(std::ilogb(exact), -126) - 23);
  return std::fabs(static_cast<double>(found) - exact) / ulp;
}

struct Worst {
  double ulps = 0;
  std::string at;
};

// Largest error of a unary operator over `x`, against the reference in double.
Worst worst_error(const OpDef& op, const std::vector<float>& x, const std::vector<double>& exact) {
  const auto n = static_cast<std::int64_t>(x.size());
  const Graph g = graph_of(op, f32, {{n}, {n}, {n}});
  const Tensor y = run_kernel(g, {{"a", Tensor({n}, std::span<const float>(x))}}).at("y");
  Worst worst;
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double error = error_in_ulps(y.values<float>()[i], exact[i]);
    if (error <= worst.ulps) continue;
    worst = {error, fmt::format("{}({}) is {}, expected {}", op.name, x[i], y.values<float>()[i],
                                exact[i])};
  }
  return worst;
}

std::vector<double> exact_values(const OpDef& op, const std::vector<float>& x) {
  const auto n = static_cast<std::int64_t>(x.size());
  const Graph g = graph_of(op, f64, {{n}});
  const std::vector<double> wide(x.begin(), x.end());
  const Tensor in({n}, std::span<const double>(wide));
  const Tensor y = evaluate_graph(g, {{"a", in}}).at("y");
  return {y.values<double>().begin(), y.values<double>().end()};
}

TEST(ElementwiseKernels, UnaryFloatsOverTheirRange) {
  const std::vector<float> x = all_kinds_of_floats(30011);
  for (const OpDef* op : elementwise_ops()) {
    const Elementwise& row = *op->elementwise;
    if (row.arity != 1 || !takes(*op, f32) || row.result == Elementwise::Result::boolean) continue;
    if (op == &gelu_def || op == &gelu_tanh_def || op == &silu_def) continue;  // below
    const std::vector<double> exact = exact_values(*op, x);
    for (const CpuLevel level : {CpuLevel::kBaseline, CpuLevel::kAvx2, CpuLevel::kAvx512}) {
      force_cpu_level(level);
      const Worst worst = worst_error(*op, x, exact);
      EXPECT_LE(worst.ulps, 2.5) << worst.at << " at " << name(level);
    }
    force_cpu_level(std::nullopt);
  }
}

// Gates: the error is a small share of |x|, and the ends are exact.
TEST(ElementwiseKernels, GatesOverTheirRange) {
  const std::vector<float> x = all_kinds_of_floats(30011);
  const auto n = static_cast<std::int64_t>(x.size());
  for (const OpDef* op : {&gelu_def, &gelu_tanh_def, &silu_def}) {
    const std::vector<double> exact = exact_values(*op, x);
    for (const CpuLevel level : {CpuLevel::kBaseline, CpuLevel::kAvx2, CpuLevel::kAvx512}) {
      force_cpu_level(level);
      const Graph g = graph_of(*op, f32, {{n}});
      const Tensor y = run_kernel(g, {{"a", Tensor({n}, std::span<const float>(x))}}).at("y");
      for (std::size_t i = 0; i < x.size(); ++i) {
        const float found = y.values<float>()[i];
        if (std::isnan(x[i]) || std::isinf(x[i])) {
          ASSERT_EQ(error_in_ulps(found, exact[i]), 0) << op->name << " of " << x[i];
          continue;
        }
        const double bound = std::max(std::ldexp(std::fabs(static_cast<double>(x[i])), -22), 1e-37);
        ASSERT_NEAR(found, static_cast<float>(exact[i]), bound)
            << op->name << " of " << x[i] << " at " << name(level);
      }
    }
    force_cpu_level(std::nullopt);
  }
}

// Pairs of all kinds for operators of two.
TEST(ElementwiseKernels, BinaryFloatsOverTheirRange) {
  const std::vector<float> values = all_kinds_of_floats(20000003);
  std::vector<float> a, b;
  for (const float u : values) {
    for (const float v : values) {
      a.push_back(u);
      b.push_back(v);
    }
  }
  std::mt19937 engine(7);
  std::uniform_real_distribution<float> near(-8, 8);
  for (int i = 0; i < 20000; ++i) {
    a.push_back(near(engine));
    b.push_back(i % 3 == 0 ? std::round(near(engine)) : near(engine));
  }
  const auto n = static_cast<std::int64_t>(a.size());
  const std::vector<double> wide_a(a.begin(), a.end()), wide_b(b.begin(), b.end());
  for (const OpDef* op : {&add_def, &sub_def, &mul_def, &div_def, &max_def, &min_def, &pow_def,
                          &remainder_def, &modulo_def, &atan2_def}) {
    const Graph exact_graph = graph_of(*op, f64, {{n}, {n}});
    const Tensor exact =
        evaluate_graph(exact_graph, {{"a", Tensor({n}, std::span<const double>(wide_a))},
                                     {"b", Tensor({n}, std::span<const double>(wide_b))}})
            .at("y");
    for (const CpuLevel level : {CpuLevel::kBaseline, CpuLevel::kAvx2, CpuLevel::kAvx512}) {
      force_cpu_level(level);
      const Graph g = graph_of(*op, f32, {{n}, {n}});
      const Tensor y = run_kernel(g, {{"a", Tensor({n}, std::span<const float>(a))},
                                      {"b", Tensor({n}, std::span<const float>(b))}})
                           .at("y");
      for (std::size_t i = 0; i < a.size(); ++i) {
        ASSERT_LE(error_in_ulps(y.values<float>()[i], exact.values<double>()[i]), 1.5)
            << op->name << "(" << a[i] << ", " << b[i] << ") is " << y.values<float>()[i]
            << ", expected " << exact.values<double>()[i] << " at " << name(level);
      }
    }
    force_cpu_level(std::nullopt);
  }
}

TEST(ElementwiseKernels, ComparisonsOfSpecialValues) {
  const std::vector<float> values = {0.0F, -0.0F, 1, -1, INFINITY, -INFINITY, NAN, 3e38F};
  const auto n = static_cast<std::int64_t>(values.size());
  for (const OpDef* op : {&equal_def, &not_equal_def, &less_def, &less_equal_def, &greater_def,
                          &greater_equal_def, &max_def, &min_def}) {
    for (const DType dtype : {f32, f64, f16, bf16}) {
      OpCase c = case_of(*op, dtype, {{n, 1}, {n}}, 1);
      const std::vector<double> wide(values.begin(), values.end());
      c.inputs = {{"a", tensor_of(dtype, {n, 1}, wide)}, {"b", tensor_of(dtype, {n}, wide)}};
      check_kernel(c);
    }
  }
  for (const OpDef* op : {&is_nan_def, &is_inf_def, &sign_def, &round_def}) {
    OpCase c = case_of(*op, f32, {{n}}, 1);
    c.inputs = {{"a", Tensor({n}, std::span<const float>(values))}};
    check_kernel(c);
  }
}

// ---- integers

TEST(ElementwiseKernels, IntegersAtTheEndsOfTheirRange) {
  for (const DType dtype : kNumbers) {
    if (!is_integer(dtype)) continue;
    const unsigned bits = traits(dtype).bits;
    HostArray ends(dtype, {8});
    visit_numbers(ends, [&](auto zero) {
      using T = decltype(zero);
      const std::uint64_t top = std::uint64_t{1} << (bits - 1);
      const std::uint64_t values[] = {0, 1, 2, top, top - 1, ~std::uint64_t{0}, bits, top + 1};
      for (std::size_t i = 0; i < 8; ++i) ends.as<T>()[i] = static_cast<T>(values[i]);
    });
    const Tensor x = ends.to_tensor();
    for (const OpDef* op : elementwise_ops()) {
      if (!takes(*op, dtype) || divides(*op) || op->elementwise->arity == 3) continue;
      OpCase c = case_of(*op, dtype, {{8}, {8, 1}}, 1);
      c.inputs = {{"a", x}};
      if (op->elementwise->arity == 2) c.inputs["b"] = x.reshaped({8, 1});
      if (traits(dtype).bits < 8) c.inputs["b"] = Tensor(dtype, {8, 1});  // codes do not reshape
      if (op->elementwise->arity == 1) c.inputs.erase("b");
      check_kernel(c);
    }
  }
}

TEST(ElementwiseKernels, DivisionByZeroIsAFault) {
  const std::int64_t n = 1000;
  std::vector<std::int32_t> a(n, 7), b(n, 2);
  b[900] = b[333] = 0;
  for (const OpDef* op : {&div_def, &remainder_def, &modulo_def}) {
    const Graph g = graph_of(*op, DType::i32, {{n}, {n}});
    Fault fault;
    const Tensor y = run_kernel(g,
                                {{"a", Tensor({n}, std::span<const std::int32_t>(a))},
                                 {"b", Tensor({n}, std::span<const std::int32_t>(b))}},
                                {.threads = 2}, &fault)
                         .at("y");
    EXPECT_EQ(fault.kind, static_cast<std::uint32_t>(FaultKind::division_by_zero));
    EXPECT_EQ(fault.element, 333U);
    EXPECT_EQ(fault.value, 7);
    EXPECT_EQ(y.values<std::int32_t>()[333], 0);
  }
}

// ---- casts

TEST(CastKernel, BetweenEveryPair) {
  for (const DType from : kNumbers) {
    for (const DType to : kNumbers) {
      if (from == to) continue;
      const double high =
          is_integer(from) ? std::min(300.0, std::ldexp(1.0, traits(from).bits - 1) - 1) : 300.0;
      // The least code of f8e8m0 is subnormal in f32.
      const double least = from == DType::f8e8m0 ? 0.1 : is_unsigned_integer(from) ? 0 : -high;
      const Tensor x = random_tensor(from, {131}, 9, least, high);
      check_kernel({.name = fmt::format("{} to {}", name(from), name(to)),
                    .build =
                        [=](Graph& g) {
                          g.output("y", cast(g.input("x", {from, {131}}), to));
                        },
                    .inputs = {{"x", x}},
                    .ulps = 0});
    }
  }
}

TEST(CastKernel, OfSpecialValues) {
  const std::vector<double> values = {0,
                                      -0.0,
                                      NAN,
                                      INFINITY,
                                      -INFINITY,
                                      1e30,
                                      -1e30,
                                      0.5,
                                      -0.5,
                                      0.99,
                                      -0.99,
                                      127.5,
                                      128,
                                      -128.9,
                                      255.7,
                                      256,
                                      32767.6,
                                      32768,
                                      65535.5,
                                      65536,
                                      2147483647,
                                      2147483648.0,
                                      -2147483648.0,
                                      -2147483904.0,
                                      4294967295.0,
                                      9.2233720368547758e18,
                                      1.8446744073709552e19,
                                      -9.3e18,
                                      65519,
                                      65520,
                                      1.0009765625,
                                      1.00048828125,
                                      6e-8,
                                      2.9e-8,
                                      448,
                                      464,
                                      465};
  const auto n = static_cast<std::int64_t>(values.size());
  for (const DType from : {f64, f32, f16, bf16}) {
    for (const DType to : kNumbers) {
      if (from == to) continue;
      check_kernel({.name = fmt::format("{} to {}", name(from), name(to)),
                    .build =
                        [=](Graph& g) {
                          g.output("y", cast(g.input("x", {from, {n}}), to));
                        },
                    .inputs = {{"x", tensor_of(from, {n}, values)}},
                    .ulps = 0});
    }
  }
}

// Every code of the 16-bit floats both ways, and the midpoints between codes.
TEST(CastKernel, EveryCodeOfSixteenBits) {
  for (const DType half : {f16, bf16}) {
    Tensor all(half, {1 << 16});
    for (std::uint32_t i = 0; i < (1U << 16); ++i) {
      const auto code = static_cast<std::uint16_t>(i);
      std::memcpy(all.bytes_mutable().data() + 2 * i, &code, 2);
    }
    check_kernel({.name = fmt::format("{} to f32", name(half)),
                  .build =
                      [=](Graph& g) {
                        g.output("y", cast(g.input("x", {half, {1 << 16}}), f32));
                      },
                  .inputs = {{"x", all}},
                  .ulps = 0});
    const std::vector<double> exact = doubles(all);
    std::vector<double> midpoints;
    for (std::size_t i = 0; i + 1 < exact.size(); ++i) {
      const double middle = (exact[i] + exact[i + 1]) / 2;
      if (std::fabs(middle) < 1.2e-38) continue;  // flushed
      for (const double v : {middle, middle * (1 + 1e-6), middle * (1 - 1e-6)})
        midpoints.push_back(v);
    }
    const auto n = static_cast<std::int64_t>(midpoints.size());
    check_kernel({.name = fmt::format("f32 to {}", name(half)),
                  .build =
                      [=](Graph& g) {
                        g.output("y", cast(g.input("x", {f32, {n}}), half));
                      },
                  .inputs = {{"x", tensor_of(f32, {n}, midpoints)}},
                  .ulps = 0});
  }
}

}  // namespace
}  // namespace rlx
