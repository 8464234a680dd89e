#include "ops/elementwise.h"

#include <limits>
#include <set>

#include "conformance/op_case.h"
#include "ops/host_array.h"

namespace rlx {
namespace {

using Dims = Tensor::Dims;
using Values = const std::vector<Value>&;
using testing::ElementsAre;

const DType kFloats[] = {f64, f32, f16, bf16};
const DType kIntegers[] = {i64, i32, i16, i8, u64, u32, u16, u8};
const DType kPlain[] = {f64, f32, f16, bf16, i64,     i32,        i16,        i8,
                        u64, u32, u16, u8,   boolean, DType::c64, DType::c128};

// Whole numbers that no double may hold.
Tensor whole(DType dtype, const std::vector<std::int64_t>& values) {
  HostArray a(dtype, {static_cast<std::int64_t>(values.size())});
  visit_numbers(a, [&](auto zero) {
    using T = decltype(zero);
    if constexpr (std::is_integral_v<T>) a.as<T>().assign(values.begin(), values.end());
  });
  return a.to_tensor();
}
std::vector<std::int64_t> whole(const Tensor& t) {
  const HostArray a(t);
  std::vector<std::int64_t> values(a.size());
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = a.index(i);
  return values;
}

// ---------------------------------------------------------------- conformance

bool takes(const OpDef& def, DType dtype) {
  const Elementwise& row = *def.elementwise;
  if (is_floating(dtype)) return (row.domain & Elementwise::kFloat) != 0;
  if (is_integer(dtype)) return (row.domain & Elementwise::kInteger) != 0;
  if (is_complex(dtype)) return (row.domain & Elementwise::kComplex) != 0;
  if (dtype == DType::string) return (row.domain & Elementwise::kString) != 0;
  return (row.domain & Elementwise::kBool) != 0;
}

bool one_of(std::string_view name, std::initializer_list<std::string_view> names) {
  return std::ranges::find(names, name) != names.end();
}

Tensor words(const Dims& dims, std::uint64_t seed) {
  std::vector<std::string> texts;
  for (const double v : doubles(random_tensor(i8, dims, seed, 0, 3)))
    texts.push_back(std::string(static_cast<std::size_t>(v), 'a'));
  return Tensor::of_strings(dims, std::move(texts));
}

Tensor without_zeros(DType dtype, const Dims& dims, std::uint64_t seed) {
  const double low = is_unsigned_integer(dtype) ? 1 : -100;
  std::vector<double> values = doubles(random_tensor(dtype, dims, seed, low, 100));
  for (double& v : values) v = v == 0 ? 1 : v;
  return tensor_of(dtype, dims, values);
}

// Runs take subnormal numbers of what they compute in f32 and f64 for 0; the reference does not.
Tensor special_normals(DType dtype, const Dims& dims, std::uint64_t seed) {
  const double least = dtype == f64   ? std::numeric_limits<double>::min()
                       : dtype == f16 ? 0
                                      : std::numeric_limits<float>::min();
  std::vector<double> values = doubles(special_tensor(dtype, dims, seed));
  for (double& v : values) v = std::fabs(v) < least ? 0 : v;
  return tensor_of(dtype, dims, values);
}

// Operand k of an operator: such that it has no data fault, small integers often equal.
Tensor operand(const OpDef& def, std::size_t k, DType dtype, const Dims& dims, bool special) {
  const std::uint64_t seed = 17 + k;
  if (def.elementwise->conditional && k == 0) return random_tensor(boolean, dims, seed);
  if (dtype == DType::string) return words(dims, seed);
  if (special) return special_normals(dtype, dims, seed);
  if (!is_integer(dtype)) return random_tensor(dtype, dims, seed);
  if (k == 1 && one_of(def.name, {"div", "remainder", "modulo"}))
    return without_zeros(dtype, dims, seed);
  if (k == 1 && one_of(def.name, {"shift_left", "shift_right", "pow"}))
    return random_tensor(dtype, dims, seed, 0, traits(dtype).bits - 1);
  const bool compares = def.elementwise->result == Elementwise::Result::boolean;
  const double reach = compares ? 3 : 100;
  return random_tensor(dtype, dims, seed, is_unsigned_integer(dtype) ? 0 : -reach, reach);
}

struct Extents {
  std::string_view name;
  Dims operands[3];
};
const Extents kExtents[] = {
    {"same", {{3, 67}, {3, 67}, {3, 67}}},    {"column_row", {{5, 1}, {1, 7}, {7}}},
    {"trailing", {{4, 33}, {33}, {4, 1}}},    {"rank_4", {{2, 1, 3, 5}, {4, 1, 1}, {1, 1, 1, 5}}},
    {"with_scalar", {{3, 19}, {}, {}}},       {"scalars", {{}, {}, {}}},
    {"single", {{1}, {1, 1}, {1}}},           {"empty", {{0, 3}, {1, 3}, {3}}},
    {"empty_stretch", {{1, 3}, {0, 1}, {3}}},
};

OpCase elementwise_case(const OpDef& def, DType dtype, const Extents& e, bool special) {
  std::vector<Tensor> operands;
  for (std::size_t k = 0; k < def.elementwise->arity; ++k)
    operands.push_back(operand(def, k, dtype, e.operands[k], special));
  return op_case(
      fmt::format("{}_{}_{}{}", def.name, name(dtype), e.name, special ? "_special" : ""), operands,
      [&def](Values v) { return elementwise(def, v); });
}

std::vector<OpCase> elementwise_cases() {
  std::vector<OpCase> cases;
  for (const OpDef* def : elementwise_ops()) {
    bool is_first = true;  // of its dtypes: with all extents
    for (const DType dtype : {f32, i32, boolean, f64, f16, bf16, i64, i16, i8, u64, u32, u16, u8,
                              DType::c64, DType::c128, DType::string}) {
      if (!takes(*def, dtype)) continue;
      for (const Extents& e : kExtents) {
        if (is_first || &e == &kExtents[1])
          cases.push_back(elementwise_case(*def, dtype, e, false));
      }
      if (is_floating(dtype)) cases.push_back(elementwise_case(*def, dtype, kExtents[0], true));
      is_first = false;
    }
  }
  return cases;
}
INSTANTIATE_TEST_SUITE_P(Elementwise, OpConformance, testing::ValuesIn(elementwise_cases()),
                         case_name);

std::vector<OpCase> cast_cases() {
  std::vector<OpCase> cases;
  const auto add = [&](DType from, DType to, const Tensor& x, std::string_view kind) {
    if (from == to) return;
    cases.push_back(op_case(fmt::format("cast_{}_to_{}_{}", name(from), name(to), kind), {x},
                            [=](Values v) { return cast(v[0], to); }));
  };
  for (const DType from : kPlain) {
    for (const DType to : kPlain) {
      const double low = is_unsigned_integer(from) ? 0 : -300;
      add(from, to, random_tensor(from, {3, 67}, 5, low, 300), "random");
      if (is_floating(from)) add(from, to, special_normals(from, {131}, 5), "special");
    }
  }
  for (int i = 0; i < kDTypeCount; ++i) {
    const auto narrow = static_cast<DType>(i);
    if (is_block(narrow) || traits(narrow).bits < 8 ||
        std::ranges::find(kPlain, narrow) != std::end(kPlain)) {
      continue;
    }
    add(f32, narrow, random_tensor(f32, {5, 7}, 5, -20, 20), "random");
    add(narrow, f32, tensor_of(narrow, {2, 3}, {0, 1, 2, 3, 1, 0}), "random");
  }
  return cases;
}
INSTANTIATE_TEST_SUITE_P(Cast, OpConformance, testing::ValuesIn(cast_cases()), case_name);

std::vector<OpCase> composite_cases() {
  std::vector<OpCase> cases;
  const std::pair<std::string, OpBuilder> builders[] = {
      {"elu", [](Values v) { return elu(v[0]); }},
      {"celu", [](Values v) { return celu(v[0], 2); }},
      {"selu", [](Values v) { return selu(v[0]); }},
      {"leaky_relu", [](Values v) { return leaky_relu(v[0], 0.25); }},
      {"prelu", [](Values v) { return prelu(v[0], v[1]); }},
      {"hard_sigmoid", [](Values v) { return hard_sigmoid(v[0]); }},
  };
  for (const auto& [name, build] : builders) {
    for (const bool special : {false, true}) {
      const Tensor x = special ? special_normals(f32, {3, 19}, 2) : random_tensor(f32, {3, 19}, 2);
      cases.push_back(
          op_case(name + (special ? "_special" : ""), {x, random_tensor(f32, {19}, 3)}, build));
    }
  }
  return cases;
}
INSTANTIATE_TEST_SUITE_P(ElementwiseBuilders, OpConformance, testing::ValuesIn(composite_cases()),
                         case_name);

// ---------------------------------------------------------------- known values

struct Known {
  const char* op;
  double y[5];
};

// NumPy 2.4 and SciPy, in double, at -2.5, -0.5, 0.25, 0.75 and 3.
const Known kKnown[] = {
    {"neg", {2.5, 0.5, -0.25, -0.75, -3.0}},
    {"abs", {2.5, 0.5, 0.25, 0.75, 3.0}},
    {"sign", {-1.0, -1.0, 1.0, 1.0, 1.0}},
    {"ceil", {-2.0, -0.0, 1.0, 1.0, 3.0}},
    {"floor", {-3.0, -1.0, 0.0, 0.0, 3.0}},
    {"round", {-2.0, -0.0, 0.0, 1.0, 3.0}},
    {"trunc", {-2.0, -0.0, 0.0, 0.0, 3.0}},
    {"sqrt", {NAN, NAN, 0.5, 0.8660254037844386, 1.7320508075688772}},
    {"rsqrt", {NAN, NAN, 2.0, 1.1547005383792517, 0.5773502691896258}},
    {"reciprocal", {-0.4, -2.0, 4.0, 1.3333333333333333, 0.3333333333333333}},
    {"exp",
     {0.0820849986238988, 0.6065306597126334, 1.2840254166877414, 2.117000016612675,
      20.085536923187668}},
    {"expm1",
     {-0.9179150013761012, -0.3934693402873666, 0.2840254166877415, 1.1170000166126746,
      19.085536923187668}},
    {"log", {NAN, NAN, -1.3862943611198906, -0.2876820724517809, 1.0986122886681098}},
    {"log1p",
     {NAN, -0.6931471805599453, 0.22314355131420976, 0.5596157879354227, 1.3862943611198906}},
    {"sin",
     {-0.5984721441039565, -0.479425538604203, 0.24740395925452294, 0.6816387600233341,
      0.1411200080598672}},
    {"cos",
     {-0.8011436155469337, 0.8775825618903728, 0.9689124217106447, 0.7316888688738209,
      -0.9899924966004454}},
    {"tan",
     {0.7470222972386603, -0.5463024898437905, 0.25534192122103627, 0.9315964599440725,
      -0.1425465430742778}},
    {"asin", {NAN, -0.5235987755982989, 0.25268025514207865, 0.848062078981481, NAN}},
    {"acos", {NAN, 2.0943951023931957, 1.318116071652818, 0.7227342478134156, NAN}},
    {"atan",
     {-1.1902899496825317, -0.4636476090008061, 0.24497866312686414, 0.6435011087932844,
      1.2490457723982544}},
    {"sinh",
     {-6.0502044810397875, -0.5210953054937474, 0.2526123168081683, 0.82231673193583,
      10.017874927409903}},
    {"cosh",
     {6.132289479663686, 1.1276259652063807, 1.0314130998795732, 1.2946832846768448,
      10.067661995777765}},
    {"tanh",
     {-0.9866142981514303, -0.46211715726000974, 0.24491866240370913, 0.6351489523872873,
      0.9950547536867305}},
    {"asinh",
     {-1.6472311463710958, -0.48121182505960347, 0.24746646154726346, 0.6931471805599453,
      1.8184464592320668}},
    {"acosh", {NAN, NAN, NAN, NAN, 1.762747174039086}},
    {"atanh", {NAN, -0.5493061443340549, 0.25541281188299536, 0.9729550745276566, NAN}},
    {"erf",
     {-0.999593047982555, -0.5204998778130465, 0.2763263901682369, 0.7111556336535151,
      0.9999779095030014}},
    {"sigmoid",
     {0.07585818002124355, 0.3775406687981454, 0.5621765008857981, 0.679178699175393,
      0.9525741268224334}},
    {"relu", {0.0, 0.0, 0.25, 0.75, 3.0}},
    {"gelu",
     {-0.01552416331444033, -0.15426876936299344, 0.14967658142073093, 0.5800294857173488,
      2.99595030590511}},
    {"gelu_tanh",
     {-0.015084266089998577, -0.15428599017485606, 0.149675350701685, 0.5799605551656203,
      2.996362607918227}},
    {"silu",
     {-0.18964545005310887, -0.1887703343990727, 0.14054412522144952, 0.5093840243815447,
      2.8577223804673}},
    {"softplus",
     {0.07888973429254963, 0.4740769841801067, 0.8259394198788436, 1.1368710061148999,
      3.048587351573742}},
    {"softsign", {-0.7142857142857143, -0.3333333333333333, 0.2, 0.42857142857142855, 0.75}},
    {"mish",
     {-0.19681620390653332, -0.22074377465173, 0.1695724096638176, 0.6100183352182933,
      2.986535004967957}},
    {"hard_swish", {-0.20833333333333334, -0.20833333333333334, 0.13541666666666666, 0.46875, 3.0}},
    {"log_sigmoid",
     {-2.5788897342925496, -0.9740769841801067, -0.5759394198788436, -0.38687100611489994,
      -0.04858735157374206}},
};

const OpDef& definition(std::string_view name) {
  for (const OpDef* def : elementwise_ops()) {
    if (def->name == name) return *def;
  }
  throw InvalidArgument(fmt::format("no elementwise operator {}", name));
}

TEST(Elementwise, KnownValuesOfUnaryFunctions) {
  const Tensor x = tensor_of(f64, {5}, {-2.5, -0.5, 0.25, 0.75, 3});
  for (const Known& known : kKnown) {
    const OpDef& def = definition(known.op);
    const std::vector<double> y =
        doubles(evaluated({x}, [&](Values v) { return elementwise(def, v); }));
    for (std::size_t i = 0; i < 5; ++i) {
      if (std::isnan(known.y[i])) {
        EXPECT_TRUE(std::isnan(y[i])) << known.op << " " << i;
      } else {
        EXPECT_NEAR(y[i], known.y[i], 4e-15 * std::fabs(known.y[i])) << known.op << " " << i;
      }
    }
  }
}

TEST(Elementwise, EveryUnaryFunctionOfFloatsHasKnownValues) {
  std::set<std::string_view> known{"is_nan", "is_inf"};
  for (const Known& k : kKnown) known.insert(k.op);
  for (const OpDef* def : elementwise_ops()) {
    if (def->elementwise->arity == 1 && takes(*def, f64)) {
      EXPECT_TRUE(known.contains(def->name)) << def->name;
    }
  }
}

std::vector<double> of(std::string_view op, DType dtype, std::vector<double> a,
                       const std::vector<double>& b = {}, const std::vector<double>& c = {}) {
  const auto count = static_cast<std::int64_t>(a.size());
  std::vector<Tensor> operands{tensor_of(dtype, {count}, a)};
  for (const auto& values : {b, c}) {
    if (!values.empty()) operands.push_back(tensor_of(dtype, {count}, values));
  }
  const OpDef& def = definition(op);
  return doubles(evaluated(operands, [&](Values v) { return elementwise(def, v); }));
}

const double kNan = std::numeric_limits<double>::quiet_NaN();

testing::Matcher<double> is_nan_value() {
  return testing::Truly([](double v) { return std::isnan(v); });
}
testing::Matcher<double> is_minus_zero() {
  return testing::Truly([](double v) { return v == 0 && std::signbit(v); });
}

TEST(Elementwise, BroadcastsBothOperands) {
  const Tensor column({2, 1}, {10.0F, 20.0F});
  const Tensor row({1, 3}, {1.0F, 2.0F, 3.0F});
  const Tensor y = evaluated({column, row}, [](Values v) { return v[0] + v[1]; });
  EXPECT_EQ(y.dims(), (Dims{2, 3}));
  EXPECT_THAT(doubles(y), ElementsAre(11, 12, 13, 21, 22, 23));
}

TEST(Elementwise, RoundingGoesToEven) {
  EXPECT_THAT(of("round", f32, {0.5, 1.5, 2.5, -0.5, -1.5, 2.6}),
              ElementsAre(0, 2, 2, is_minus_zero(), -2, 3));
}

TEST(Elementwise, SpecialValues) {
  EXPECT_THAT(of("max", f32, {kNan, 1, 0.0, -0.0}, {1, kNan, -0.0, 0.0}),
              ElementsAre(is_nan_value(), is_nan_value(), testing::Not(is_minus_zero()),
                          testing::Not(is_minus_zero())));
  EXPECT_THAT(of("min", f32, {kNan, 1, 0.0, -0.0}, {1, kNan, -0.0, 0.0}),
              ElementsAre(is_nan_value(), is_nan_value(), is_minus_zero(), is_minus_zero()));
  EXPECT_THAT(of("relu", f32, {kNan, -INFINITY, INFINITY}),
              ElementsAre(is_nan_value(), 0, INFINITY));
  EXPECT_THAT(of("sign", f32, {-0.0, kNan, -INFINITY}),
              ElementsAre(is_minus_zero(), is_nan_value(), -1));
  EXPECT_THAT(of("is_nan", f32, {kNan, INFINITY, 0}), ElementsAre(1, 0, 0));
  EXPECT_THAT(of("is_inf", f32, {kNan, INFINITY, -INFINITY}), ElementsAre(0, 1, 1));
  EXPECT_THAT(of("sigmoid", f32, {-INFINITY, INFINITY, kNan, -1000}),
              ElementsAre(0, 1, is_nan_value(), 0));
  EXPECT_THAT(of("gelu", f32, {-INFINITY, INFINITY, kNan}),
              ElementsAre(0, INFINITY, is_nan_value()));
  EXPECT_THAT(of("gelu_tanh", f32, {-INFINITY, INFINITY}), ElementsAre(0, INFINITY));
  EXPECT_THAT(of("silu", f32, {-INFINITY, INFINITY}), ElementsAre(0, INFINITY));
  EXPECT_THAT(of("softplus", f32, {-INFINITY, INFINITY, 1000, kNan}),
              ElementsAre(0, INFINITY, 1000, is_nan_value()));
  EXPECT_THAT(of("clamp", f32, {kNan, 5, -5}, {-1, -1, -1}, {1, 1, 1}),
              ElementsAre(is_nan_value(), 1, -1));
  EXPECT_THAT(of("log", f32, {0, -1}), ElementsAre(-INFINITY, is_nan_value()));
  EXPECT_THAT(of("div", f32, {1, -1, 0}, {0, 0, 0}),
              ElementsAre(INFINITY, -INFINITY, is_nan_value()));
  EXPECT_THAT(of("equal", f32, {kNan, 0}, {kNan, -0.0}), ElementsAre(0, 1));
  EXPECT_THAT(of("not_equal", f32, {kNan, 0}, {kNan, -0.0}), ElementsAre(1, 0));
  EXPECT_THAT(of("less_equal", f32, {kNan, -INFINITY}, {1, INFINITY}), ElementsAre(0, 1));
}

// numpy.power, fmod, mod and arctan2.
TEST(Elementwise, KnownValuesOfBinaryFunctions) {
  EXPECT_THAT(of("pow", f64, {2, -2, -8, 0, 0}, {0.5, 3, 1.0 / 3, 0, -1}),
              ElementsAre(1.4142135623730951, -8, is_nan_value(), 1, INFINITY));
  EXPECT_THAT(of("remainder", f64, {7, -7, 7, -7, 1}, {3, 3, -3, -3, INFINITY}),
              ElementsAre(1, -1, 1, -1, 1));
  EXPECT_THAT(of("modulo", f64, {7, -7, 7, -7, -1, 1}, {3, 3, -3, -3, INFINITY, 0}),
              ElementsAre(1, 2, -2, -1, INFINITY, is_nan_value()));
  EXPECT_THAT(of("atan2", f64, {1, 0, -1}, {1, -1, 0}),
              ElementsAre(0.7853981633974483, 3.141592653589793, -1.5707963267948966));
  EXPECT_THAT(of("modulo", i32, {7, -7, 7, -7}, {3, 3, -3, -3}), ElementsAre(1, 2, -2, -1));
  EXPECT_THAT(of("remainder", i32, {7, -7, 7, -7}, {3, 3, -3, -3}), ElementsAre(1, -1, 1, -1));
  EXPECT_THAT(of("div", i32, {7, -7, 7, -7}, {3, 3, -3, -3}), ElementsAre(2, -2, -2, 2));
}

TEST(Elementwise, SelectLeavesNothingOfWhatItDrops) {
  const Tensor y = evaluated({Tensor({2}, {true, false}), tensor_of(f32, {2}, {1, NAN}),
                              tensor_of(f32, {2}, {INFINITY, 2})},
                             [](Values v) { return select(v[0], v[1], v[2]); });
  EXPECT_THAT(doubles(y), ElementsAre(1, 2));
}

// (1 + 2^-12)^2 - (1 + 2^-11) is 2^-24, which two roundings lose; 259 / 256 lies half way between
// two bf16 numbers, so that 2^-100 decides.
TEST(Elementwise, FmaRoundsOnce) {
  const double a = 1 + 0x1p-12;
  EXPECT_THAT(of("fma", f32, {a}, {a}, {-(1 + 0x1p-11)}), ElementsAre(0x1p-24));
  EXPECT_THAT(
      of("fma", bf16, {7, 7, 7}, {37.0 / 256, 37.0 / 256, 37.0 / 256}, {-0x1p-100, 0x1p-100, 0}),
      ElementsAre(258.0 / 256, 260.0 / 256, 260.0 / 256));
  EXPECT_THAT(of("fma", f64, {1 + 0x1p-27}, {1 + 0x1p-27}, {-(1 + 0x1p-26)}), ElementsAre(0x1p-54));
  EXPECT_THAT(of("fma", f32, {INFINITY, 1e38}, {0, 1e38}, {1, -INFINITY}),
              ElementsAre(is_nan_value(), -INFINITY));
}

// numpy, complex128.
TEST(Elementwise, ComplexNumbers) {
  const auto of_complex = [](std::string_view op, std::vector<std::complex<double>> a,
                             std::vector<std::complex<double>> b) {
    std::vector<Tensor> operands;
    for (auto* values : {&a, &b}) {
      if (values->empty()) continue;
      HostArray z(DType::c128, {static_cast<std::int64_t>(values->size())});
      z.as<std::complex<double>>() = *values;
      operands.push_back(z.to_tensor());
    }
    const OpDef& def = definition(op);
    return doubles(evaluated(operands, [&](Values v) { return elementwise(def, v); }));
  };
  const auto near = [](double v) { return testing::DoubleNear(v, 1e-14); };
  EXPECT_THAT(of_complex("mul", {{1, 2}}, {{3, -1}}), ElementsAre(5, 5));
  EXPECT_THAT(of_complex("div", {{1, 2}}, {{3, -1}}), ElementsAre(near(0.1), near(0.7)));
  EXPECT_THAT(of_complex("exp", {{1, 2}}, {}),
              ElementsAre(near(-1.1312043837568135), near(2.4717266720048188)));
  EXPECT_THAT(of_complex("log", {{-1, 0}}, {}), ElementsAre(0, near(3.141592653589793)));
  EXPECT_THAT(of_complex("sqrt", {{-4, 0}}, {}), ElementsAre(near(0), 2));
  EXPECT_THAT(of_complex("equal", {{1, 2}}, {{1, 2.5}}), ElementsAre(0));
}

// ---------------------------------------------------------------- integers

std::vector<std::int64_t> of_whole(std::string_view op, DType dtype,
                                   const std::vector<std::int64_t>& a,
                                   const std::vector<std::int64_t>& b = {}) {
  std::vector<Tensor> operands{whole(dtype, a)};
  if (!b.empty()) operands.push_back(whole(dtype, b));
  const OpDef& def = definition(op);
  return whole(evaluated(operands, [&](Values v) { return elementwise(def, v); }));
}

std::int64_t greatest(DType dtype) {
  const int bits = traits(dtype).bits;
  return is_signed_integer(dtype) ? static_cast<std::int64_t>(~std::uint64_t{0} >> (65 - bits))
                                  : static_cast<std::int64_t>(~std::uint64_t{0} >> (64 - bits));
}

const DType kSigned[] = {i64, i32, i16, i8, DType::i4, DType::i2};
const DType kUnsigned[] = {u64, u32, u16, u8, DType::u4, DType::u2};

TEST(Integers, SignedOverflowWraps) {
  for (const DType d : kSigned) {
    const std::int64_t high = greatest(d);
    const std::int64_t low = -high - 1;
    EXPECT_THAT(of_whole("add", d, {high, low}, {1, -1}), ElementsAre(low, high)) << name(d);
    EXPECT_THAT(of_whole("sub", d, {low, high}, {1, -1}), ElementsAre(high, low)) << name(d);
    EXPECT_THAT(of_whole("mul", d, {high, low}, {high, low}), ElementsAre(1, 0)) << name(d);
    EXPECT_THAT(of_whole("neg", d, {low, high}), ElementsAre(low, -high)) << name(d);
    EXPECT_THAT(of_whole("abs", d, {low, -high}), ElementsAre(low, high)) << name(d);
    EXPECT_THAT(of_whole("div", d, {low, low}, {-1, 1}), ElementsAre(low, low)) << name(d);
    EXPECT_THAT(of_whole("remainder", d, {low}, {-1}), ElementsAre(0)) << name(d);
    EXPECT_THAT(of_whole("modulo", d, {low}, {-1}), ElementsAre(0)) << name(d);
    EXPECT_THAT(of_whole("bitwise_not", d, {low, 0}), ElementsAre(high, -1)) << name(d);
  }
}

TEST(Integers, UnsignedOverflowWraps) {
  for (const DType d : kUnsigned) {
    const std::int64_t high = greatest(d);
    EXPECT_THAT(of_whole("add", d, {high, 0}, {1, 1}), ElementsAre(0, 1)) << name(d);
    EXPECT_THAT(of_whole("sub", d, {0, high}, {1, high}), ElementsAre(high, 0)) << name(d);
    EXPECT_THAT(of_whole("mul", d, {high}, {high}), ElementsAre(1)) << name(d);
    EXPECT_THAT(of_whole("neg", d, {1, 0}), ElementsAre(high, 0)) << name(d);
    EXPECT_THAT(of_whole("bitwise_not", d, {0, high}), ElementsAre(high, 0)) << name(d);
    EXPECT_THAT(of_whole("abs", d, {high}), ElementsAre(high)) << name(d);
    EXPECT_THAT(of_whole("max", d, {high}, {1}), ElementsAre(high)) << name(d);
  }
}

TEST(Integers, ShiftsByTheWidthOrMoreLeaveTheSign) {
  for (const DType d : {i64, i32, i16, i8}) {
    const std::int64_t width = traits(d).bits;
    const std::int64_t low = -greatest(d) - 1;
    EXPECT_THAT(of_whole("shift_left", d, {1, 1, -1, 3}, {width - 1, width, width + 1, -1}),
                ElementsAre(low, 0, 0, 0))
        << name(d);
    EXPECT_THAT(of_whole("shift_right", d, {low, low, low, greatest(d), -8, 5},
                         {width - 1, width, width + 1, width, -1, 1}),
                ElementsAre(-1, -1, -1, 0, -1, 2))
        << name(d);
  }
  for (const DType d : {u64, u32, u16, u8}) {
    const std::int64_t width = traits(d).bits;
    const std::int64_t high = greatest(d);
    EXPECT_THAT(of_whole("shift_right", d, {high, high, high}, {width - 1, width, high}),
                ElementsAre(1, 0, 0))
        << name(d);
    EXPECT_THAT(of_whole("shift_left", d, {high, high}, {width, high}), ElementsAre(0, 0))
        << name(d);
  }
}

TEST(Integers, Powers) {
  constexpr std::int64_t kMin = std::numeric_limits<std::int64_t>::min();
  EXPECT_THAT(of_whole("pow", i64, {2, 2, 2, 3, -3, 0}, {62, 63, 64, 39, 3, 0}),
              ElementsAre(std::int64_t{1} << 62, kMin, 0, 4052555153018976267, -27, 1));
  EXPECT_THAT(of_whole("pow", i64, {2, 1, -1, -1, 0, -2}, {-1, -5, -3, -4, -1, kMin}),
              ElementsAre(0, 1, -1, 1, 0, 0));
  EXPECT_THAT(of_whole("pow", i8, {2, 2, 3, -2}, {7, 8, 5, 7}), ElementsAre(-128, 0, -13, -128));
  EXPECT_THAT(of_whole("pow", u8, {2, 3, 255}, {8, 6, 2}), ElementsAre(0, 217, 1));
}

TEST(Integers, DivisionByZeroIsAFault) {
  for (const DType d : kIntegers) {
    for (const char* op : {"div", "remainder", "modulo"}) {
      EXPECT_EQ(error_of([&] {
                  (void)of_whole(op, d, {1, 1}, {1, 0});
                }),
                fmt::format("{} ({}): integer division by zero", op, op))
          << name(d);
      EXPECT_THROW((void)of_whole(op, d, {1}, {0}), IndexError);
    }
  }
}

// ---------------------------------------------------------------- cast

std::vector<double> converted(DType from, DType to, const std::vector<double>& values) {
  const Tensor x = tensor_of(from, {static_cast<std::int64_t>(values.size())}, values);
  return doubles(evaluated({x}, [=](Values v) { return cast(v[0], to); }));
}

TEST(Cast, FloatsTruncateAndSaturate) {
  const std::vector<double> x{1e20, -1e20, -0.5, 1.9, -1.9, NAN, INFINITY, -INFINITY};
  for (const DType from : {f64, f32, bf16}) {
    for (const DType to : {i64, i32, i16, i8, DType::i4}) {
      const HostArray y(
          evaluated({tensor_of(from, {8}, x)}, [=](Values v) { return cast(v[0], to); }));
      const std::int64_t high = greatest(to);
      EXPECT_THAT(y.as<std::int64_t>(), ElementsAre(high, -high - 1, 0, 1, -1, 0, high, -high - 1))
          << name(from) << " to " << name(to);
    }
    for (const DType to : {u64, u32, u16, u8, DType::u2}) {
      const HostArray y(
          evaluated({tensor_of(from, {8}, x)}, [=](Values v) { return cast(v[0], to); }));
      const auto high = static_cast<std::uint64_t>(greatest(to));
      EXPECT_THAT(y.as<std::uint64_t>(), ElementsAre(high, 0, 0, 1, 0, 0, high, 0))
          << name(from) << " to " << name(to);
    }
  }
}

TEST(Cast, ZeroAndOneSurviveEveryPair) {
  for (int i = 0; i < kDTypeCount; ++i) {
    for (int j = 0; j < kDTypeCount; ++j) {
      const auto from = static_cast<DType>(i);
      const auto to = static_cast<DType>(j);
      const auto skipped = [](DType d) { return is_block(d) || d == DType::string; };
      if (skipped(from) || skipped(to)) continue;
      // f8e8m0 has no zero.
      const bool no_zero = from == DType::f8e8m0 || to == DType::f8e8m0;
      const std::vector<double> x = no_zero ? std::vector<double>{1, 1} : std::vector<double>{0, 1};
      std::vector<double> y = converted(from, to, x);
      if (is_complex(to)) y = {y[0], y[2]};
      EXPECT_EQ(y, x) << name(from) << " to " << name(to);
    }
  }
}

TEST(Cast, IntegersWrap) {
  EXPECT_THAT(converted(i32, i8, {300, -129, 128}), ElementsAre(44, 127, -128));
  EXPECT_THAT(converted(i32, u8, {-1, 256}), ElementsAre(255, 0));
  EXPECT_THAT(converted(u8, i8, {255, 128}), ElementsAre(-1, -128));
  EXPECT_THAT(converted(i8, u32, {-1}), ElementsAre(4294967295.0));
  EXPECT_THAT(converted(i64, i32, {4294967297.0, -2147483649.0}), ElementsAre(1, 2147483647));
  EXPECT_THAT(converted(i8, DType::i4, {7, 8, -9}), ElementsAre(7, -8, 7));
}

TEST(Cast, Bools) {
  EXPECT_THAT(converted(f32, boolean, {0, -0.0, 0.25, NAN}), ElementsAre(0, 0, 1, 1));
  EXPECT_THAT(converted(i32, boolean, {0, 256, -1}), ElementsAre(0, 1, 1));
  EXPECT_THAT(converted(boolean, f16, {0, 1}), ElementsAre(0, 1));
  HostArray z(DType::c64, {2});
  z.as<std::complex<double>>() = {{0, 1}, {0, 0}};
  EXPECT_THAT(doubles(evaluated({z.to_tensor()}, [](Values v) { return cast(v[0], boolean); })),
              ElementsAre(1, 0));
}

// Through double, or from f64 through f32, each of these would be rounded twice.
TEST(Cast, RoundsOnce) {
  const auto of_integer = [](DType from, DType to, std::int64_t x) {
    return doubles(evaluated({whole(from, {x})}, [=](Values v) { return cast(v[0], to); }))[0];
  };
  EXPECT_EQ(of_integer(i64, f32, 16777217), 16777216);
  EXPECT_EQ(of_integer(i64, f32, (std::int64_t{1} << 60) + (std::int64_t{1} << 36) + 1),
            0x1p60 + 0x1p37);
  EXPECT_EQ(of_integer(i64, bf16, (std::int64_t{1} << 62) + (std::int64_t{1} << 54) + 1),
            0x1p62 + 0x1p55);
  EXPECT_EQ(of_integer(i64, bf16, -(std::int64_t{1} << 62) - (std::int64_t{1} << 54) - 1),
            -0x1p62 - 0x1p55);
  EXPECT_EQ(of_integer(u64, f64, -1), 0x1p64);
  EXPECT_EQ(of_integer(u64, DType::c64, (std::int64_t{1} << 60) + (std::int64_t{1} << 36) + 1),
            0x1p60 + 0x1p37);
  EXPECT_THAT(converted(f64, f16, {1 + 0x1p-11 + 0x1p-30}), ElementsAre(1 + 0x1p-10));
  EXPECT_THAT(converted(f64, bf16, {1 + 0x1p-8 + 0x1p-40}), ElementsAre(1 + 0x1p-7));
}

TEST(Cast, NarrowFloatsOverflowAsTheirFormatSays) {
  EXPECT_THAT(converted(f32, f16, {65519, 65520, -1e6}), ElementsAre(65504, INFINITY, -INFINITY));
  EXPECT_THAT(converted(f32, DType::f8e4m3, {500, -1e9}), ElementsAre(448, -448));
  EXPECT_THAT(converted(f32, DType::f8e5m2, {1e9, INFINITY}), ElementsAre(57344, INFINITY));
  EXPECT_THAT(converted(f32, DType::f4e2m1, {7, 2.5}), ElementsAre(6, 2));
}

// ---------------------------------------------------------------- errors

TEST(Elementwise, RefusesWhatDoesNotFit) {
  Graph g;
  const Value x = g.input("x", {f32, {2, 3}});
  const Value i = g.input("i", {i32, {2, 3}});
  const Value b = g.input("b", {boolean, {2, 3}});
  EXPECT_EQ(error_of([&] { (void)(x + i); }), "add (add): a is f32 and b is i32");
  EXPECT_EQ(error_of([&] { (void)exp(i); }), "exp (exp): x is i32, which exp does not take");
  EXPECT_EQ(error_of([&] { (void)logical_and(b, x); }),
            "logical_and (logical_and): b is f32, which logical_and does not take");
  EXPECT_EQ(error_of([&] { (void)select(x, x, x); }),
            "select (select): condition is f32, expected bool");
  EXPECT_EQ(error_of([&] {
              (void)(x + g.input("y", {f32, {2, 4}}));
            }),
            "add.1 (add): broadcast of [2, 3] and [2, 4]: 3 and 4 differ");
  EXPECT_EQ(error_of([&] { (void)fma(x, x, i); }), "fma (fma): a is f32 and c is i32");
  EXPECT_EQ(error_of([&] {
              (void)cast(g.input("s", {DType::string, {1}}), f32);
            }),
            "cast (cast): x is string, which does not cast to f32");
}

// As a model file may ask for; found by fuzzing.
TEST(Elementwise, NeedsItsFirstOperand) {
  EXPECT_THROW((void)elementwise(add_def, {}), InvalidArgument);
  EXPECT_THROW((void)elementwise(add_def, {Value()}), InvalidArgument);
}

}  // namespace
}  // namespace rlx
