#include "ops/reduce.h"

#include "conformance/op_case.h"

namespace rlx {
namespace {

using Dims = Tensor::Dims;
using Axes = std::vector<std::int64_t>;
using Values = const std::vector<Value>&;
using testing::ElementsAre;

constexpr Reduction kKinds[] = {Reduction::sum, Reduction::mean, Reduction::max, Reduction::min,
                                Reduction::prod};

std::string_view name_of(Reduction kind) {
  return enum_names(kind)[static_cast<std::size_t>(kind)];
}

struct Place {
  std::string name;
  Dims dims;
  Axes axes;
};

std::vector<Place> places() {
  return {
      {"last", {3, 67}, {-1}},
      {"first", {67, 5}, {0}},
      {"middle", {2, 9, 3}, {1}},
      {"apart", {3, 4, 5}, {0, 2}},
      {"all", {3, 19}, {0, 1}},
      {"none", {3, 5}, {}},
      {"one_element", {4, 1}, {1}},
      {"long", {2, 5000}, {1}},
      {"scalar", {}, {}},
      {"empty_axis", {3, 0}, {1}},
      {"empty_result", {0, 3}, {1}},
      {"rank_5", {2, 3, 2, 3, 2}, {1, 3, 4}},
      {"vector_of_33", {33}, {0}},
  };
}

OpCase reduce_case(Reduction kind, DType dtype, const Place& p, bool keep_dims, bool special) {
  // Factors near 1, so that long products stay in range.
  const bool near_one = kind == Reduction::prod && is_floating(dtype);
  const double low = near_one ? 0.9 : is_unsigned_integer(dtype) ? 0 : -2;
  const Tensor x = special ? special_tensor(dtype, p.dims, 3)
                           : random_tensor(dtype, p.dims, 3, low, near_one ? 1.1 : 2);
  OpCase c = op_case(fmt::format("{}_{}_{}{}{}", name_of(kind), p.name, name(dtype),
                                 keep_dims ? "_kept" : "", special ? "_special" : ""),
                     {x}, [=](Values v) { return reduce(v[0], kind, p.axes, keep_dims); });
  const auto count = static_cast<double>(x.size());
  if (kind == Reduction::sum || kind == Reduction::mean) c.terms = count;
  if (kind == Reduction::prod) c.ulps = count + 4;
  return c;
}

std::vector<OpCase> reduce_cases() {
  std::vector<OpCase> cases;
  const std::vector<Place> all = places();
  for (const Reduction kind : kKinds) {
    for (const Place& p : all) {
      for (const bool keep_dims : {false, true})
        cases.push_back(reduce_case(kind, f32, p, keep_dims, false));
    }
    for (const DType dtype : {f64, f16, bf16, DType::c64, i64, i32, i16, i8, u64, u32, u16, u8}) {
      const bool ordered = kind == Reduction::max || kind == Reduction::min;
      if (ordered && is_complex(dtype)) continue;
      if (kind == Reduction::mean && is_integer(dtype)) continue;
      cases.push_back(reduce_case(kind, dtype, all[0], false, false));
      cases.push_back(reduce_case(kind, dtype, all[1], true, false));
    }
    if (kind != Reduction::max && kind != Reduction::min) continue;
    for (const DType dtype : {f64, f32, f16, bf16})
      cases.push_back(reduce_case(kind, dtype, all[1], false, true));
  }
  return cases;
}
INSTANTIATE_TEST_SUITE_P(Reduce, OpConformance, testing::ValuesIn(reduce_cases()), case_name);

// ---------------------------------------------------------------- known values

std::vector<double> reduced(const Tensor& x, Reduction kind, Axes axes) {
  return doubles(evaluated({x}, [=](Values v) { return reduce(v[0], kind, axes); }));
}

// numpy.sum, mean, max, min and prod.
TEST(Reduce, KnownValues) {
  const Tensor x = tensor_of(f64, {2, 3}, {1.5, -2, 0.25, 4, 8, -1});
  EXPECT_THAT(reduced(x, Reduction::sum, {0}), ElementsAre(5.5, 6, -0.75));
  EXPECT_THAT(reduced(x, Reduction::sum, {1}), ElementsAre(-0.25, 11));
  EXPECT_THAT(reduced(x, Reduction::mean, {0}), ElementsAre(2.75, 3, -0.375));
  EXPECT_THAT(reduced(x, Reduction::mean, {1, 0}), ElementsAre(1.7916666666666667));
  EXPECT_THAT(reduced(x, Reduction::max, {1}), ElementsAre(1.5, 8));
  EXPECT_THAT(reduced(x, Reduction::min, {0}), ElementsAre(1.5, -2, -1));
  EXPECT_THAT(reduced(x, Reduction::prod, {-1}), ElementsAre(-0.75, -32));
  EXPECT_THAT(reduced(x, Reduction::prod, {0, 1}), ElementsAre(24));
}

TEST(Reduce, AxesThatDoNotTouchEachOther) {
  std::vector<double> values(2 * 3 * 2);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<double>(i);
  const Tensor x = tensor_of(i32, {2, 3, 2}, values);
  EXPECT_THAT(reduced(x, Reduction::sum, {0, 2}), ElementsAre(14, 22, 30));
}

TEST(Reduce, OfNoElementsGivesTheIdentity) {
  const auto of_nothing = [](DType dtype, Reduction kind) {
    return reduced(Tensor(dtype, {0}), kind, {0}).at(0);
  };
  EXPECT_EQ(of_nothing(f32, Reduction::sum), 0);
  EXPECT_EQ(of_nothing(f32, Reduction::prod), 1);
  EXPECT_EQ(of_nothing(f32, Reduction::max), -INFINITY);
  EXPECT_EQ(of_nothing(f32, Reduction::min), INFINITY);
  EXPECT_TRUE(std::isnan(of_nothing(f32, Reduction::mean)));
  EXPECT_EQ(of_nothing(i8, Reduction::max), -128);
  EXPECT_EQ(of_nothing(i8, Reduction::min), 127);
  EXPECT_EQ(of_nothing(i32, Reduction::max), -2147483648.0);
  EXPECT_EQ(of_nothing(u8, Reduction::max), 0);
  EXPECT_EQ(of_nothing(DType::u16, Reduction::min), 65535);
  EXPECT_EQ(of_nothing(i64, Reduction::sum), 0);
}

TEST(Reduce, IntegersWrap) {
  EXPECT_THAT(reduced(tensor_of(i8, {2}, {100, 100}), Reduction::sum, {0}), ElementsAre(-56));
  EXPECT_THAT(reduced(tensor_of(i8, {2}, {100, 100}), Reduction::prod, {0}), ElementsAre(16));
  EXPECT_THAT(reduced(tensor_of(u8, {2}, {200, 100}), Reduction::sum, {0}), ElementsAre(44));
  EXPECT_THAT(reduced(tensor_of(i32, {2}, {2147483647, 1}), Reduction::sum, {0}),
              ElementsAre(-2147483648.0));
}

TEST(Reduce, NanWinsWhereverItStands) {
  for (const Reduction kind : kKinds) {
    for (const std::size_t at : {0U, 1U, 2U}) {
      std::vector<double> values{1, 2, 3};
      values[at] = NAN;
      EXPECT_TRUE(std::isnan(reduced(tensor_of(f32, {3}, values), kind, {0}).at(0)))
          << name_of(kind) << " " << at;
    }
  }
}

TEST(Reduce, InfinitiesAddAsIeeeSays) {
  EXPECT_THAT(reduced(tensor_of(f32, {2}, {INFINITY, 1}), Reduction::mean, {0}),
              ElementsAre(INFINITY));
  EXPECT_TRUE(
      std::isnan(reduced(tensor_of(f32, {2}, {INFINITY, -INFINITY}), Reduction::sum, {0}).at(0)));
}

// A sum of f16 beyond 65504 on the way, and within at its end.
TEST(Reduce, NarrowFloatsRoundOnceAtTheEnd) {
  EXPECT_THAT(reduced(tensor_of(f16, {3}, {65504, 65504, -65504}), Reduction::sum, {0}),
              ElementsAre(65504));
  EXPECT_THAT(reduced(tensor_of(bf16, {4}, {256, 1, 1, 1}), Reduction::sum, {0}),
              ElementsAre(260));  // 259 lies half way between 258 and 260
}

// numpy.sum, prod and mean of [1+2j, 3-1j].
TEST(Reduce, ComplexNumbers) {
  HostArray z(DType::c128, {2});
  z.as<std::complex<double>>() = {{1, 2}, {3, -1}};
  const Tensor x = z.to_tensor();
  EXPECT_THAT(reduced(x, Reduction::sum, {0}), ElementsAre(4, 1));
  EXPECT_THAT(reduced(x, Reduction::prod, {0}), ElementsAre(5, 5));
  EXPECT_THAT(reduced(x, Reduction::mean, {0}), ElementsAre(2, 0.5));
}

TEST(Reduce, RefusesWhatHasNoMeaning) {
  Graph g;
  const Value x = g.input("x", {f32, {"n", 3}});
  EXPECT_EQ(sum(x, {0}, true).shape(), (Shape{1, 3}));
  EXPECT_EQ(sum(x, {-1}).shape(), (Shape{"n"}));
  EXPECT_EQ(error_of([&] { (void)sum(x, {2}); }), "axis 2 is out of range for rank 2");
  EXPECT_EQ(error_of([&] { (void)sum(x, {0, -2}); }), "reduce.2 (reduce): axis 0 is listed twice");
  EXPECT_EQ(error_of([&] {
              (void)mean(g.input("i", {i32, {3}}), {0});
            }),
            "reduce.3 (reduce): x is i32, the mean takes a floating or complex type");
  EXPECT_EQ(error_of([&] {
              (void)sum(g.input("b", {boolean, {3}}), {0});
            }),
            "reduce.4 (reduce): x is bool, expected a number");
  EXPECT_EQ(error_of([&] {
              (void)reduce(g.input("z", {DType::c64, {3}}), Reduction::max, {0});
            }),
            "reduce.5 (reduce): complex numbers have no order");
}

}  // namespace
}  // namespace rlx
