#include "ops/selection.h"

#include <set>

#include "conformance/op_case.h"
#include "ir/binding.h"

namespace rlx {
namespace {

using Dims = Tensor::Dims;
using Values = const std::vector<Value>&;
using testing::ElementsAre;

const DType kOrdered[] = {f64, f32, f16, bf16, i64, i32, i16, i8, u64, u32, u16, u8};
const Accumulation kKinds[] = {Accumulation::sum, Accumulation::prod, Accumulation::max,
                               Accumulation::min};

struct Place {
  std::string name;
  Dims dims;
  std::int64_t axis;
};
const Place kPlaces[] = {{"rows", {3, 19}, -1}, {"columns", {19, 5}, 0}, {"middle", {2, 9, 3}, 1},
                         {"single", {4, 1}, 1}, {"long", {2, 1037}, 1},  {"no_lines", {0, 3}, 1},
                         {"vector", {33}, 0}};

// Small whole numbers, so that many are equal.
Tensor tied(DType dtype, const Dims& dims) {
  std::vector<double> values =
      doubles(random_tensor(i32, dims, 11, is_unsigned_integer(dtype) ? 0 : -3, 3));
  return tensor_of(dtype, dims, values);
}

OpCase top_k_case(const std::string& name, const Tensor& x, std::int64_t k, std::int64_t axis,
                  bool largest) {
  OpCase c = op_case(name, {x}, [](Values v) { return v[0]; });
  const TensorType type{x.dtype(), Shape::of(x.dims())};
  c.build = [=](Graph& g) {
    const TopKResult y = top_k(g.input("x0", type), k, axis, largest);
    g.output("values", y.values);
    g.output("indices", y.indices);
  };
  return c;
}

void add_arg_and_top_k(std::vector<OpCase>& cases, DType dtype, const Place& p, const Tensor& x,
                       std::string_view kind) {
  for (const bool largest : {true, false}) {
    const std::string tail =
        fmt::format("{}_{}_{}_{}", largest ? "max" : "min", p.name, name(dtype), kind);
    for (const bool last : {true, false}) {
      cases.push_back(
          op_case(fmt::format("arg_{}{}", tail, last ? "_last" : ""), {x}, [=](Values v) {
            return largest ? arg_max(v[0], p.axis, last, last) : arg_min(v[0], p.axis, last, last);
          }));
    }
    const std::int64_t extent = p.dims[p.axis < 0 ? p.dims.size() - 1 : p.axis];
    for (const std::int64_t k : std::set{std::int64_t{0}, (extent + 1) / 2, extent})
      cases.push_back(top_k_case(fmt::format("top_{}_{}", k, tail), x, k, p.axis, largest));
  }
}

void add_cumulative(std::vector<OpCase>& cases, DType dtype, const Place& p, const Tensor& x,
                    std::string_view kind) {
  const std::vector<std::string> names{"sum", "prod", "max", "min"};
  for (const Accumulation a : kKinds) {
    for (const auto& [exclusive, reverse] :
         {std::pair{false, false}, {true, true}, {true, false}}) {
      OpCase c =
          op_case(fmt::format("cumulative_{}_{}_{}_{}{}{}",
                              enum_names(a)[static_cast<std::size_t>(a)], p.name, name(dtype), kind,
                              exclusive ? "_exclusive" : "", reverse ? "_reverse" : ""),
                  {x}, [a, axis = p.axis, e = exclusive, r = reverse](Values v) {
                    return cumulative(v[0], a, axis, e, r);
                  });
      if (a == Accumulation::sum) c.terms = static_cast<double>(x.size());
      if (a == Accumulation::prod) c.ulps = 2 * static_cast<double>(x.size());
      cases.push_back(std::move(c));
    }
  }
}

std::vector<OpCase> selection_cases() {
  std::vector<OpCase> cases;
  for (const Place& p : kPlaces) {
    add_arg_and_top_k(cases, f32, p, tied(f32, p.dims), "tied");
    add_cumulative(cases, f32, p, random_tensor(f32, p.dims, 5, -1.5, 1.5), "random");
  }
  for (const DType dtype : kOrdered) {
    add_arg_and_top_k(cases, dtype, kPlaces[0], tied(dtype, kPlaces[0].dims), "every");
    add_cumulative(cases, dtype, kPlaces[2], tied(dtype, kPlaces[2].dims), "every");
  }
  for (const DType dtype : {f64, f32, f16, bf16})
    add_arg_and_top_k(cases, dtype, kPlaces[2], special_tensor(dtype, kPlaces[2].dims, 7),
                      "special");
  return cases;
}
INSTANTIATE_TEST_SUITE_P(Selection, OpConformance, testing::ValuesIn(selection_cases()), case_name);

// ---------------------------------------------------------------- known values

const Tensor& sample() {
  static const Tensor x({2, 3}, {3, 1, 2, -1, 5, 4});
  return x;
}

std::vector<double> accumulated(const Tensor& x, Accumulation kind, std::int64_t axis,
                                bool exclusive = false, bool reverse = false) {
  return doubles(
      evaluated({x}, [=](Values v) { return cumulative(v[0], kind, axis, exclusive, reverse); }));
}

// numpy.cumsum, cumprod, maximum.accumulate and minimum.accumulate.
TEST(Cumulative, KnownValues) {
  EXPECT_THAT(accumulated(sample(), Accumulation::sum, 1), ElementsAre(3, 4, 6, -1, 4, 8));
  EXPECT_THAT(accumulated(sample(), Accumulation::prod, 0), ElementsAre(3, 1, 2, -3, 5, 8));
  EXPECT_THAT(accumulated(sample(), Accumulation::max, -1), ElementsAre(3, 3, 3, -1, 5, 5));
  EXPECT_THAT(accumulated(sample(), Accumulation::min, 1, false, true),
              ElementsAre(1, 1, 2, -1, 4, 4));
}

TEST(Cumulative, ExclusiveStartsAtTheIdentity) {
  EXPECT_THAT(accumulated(sample(), Accumulation::sum, 1, true), ElementsAre(0, 3, 4, 0, -1, 4));
  EXPECT_THAT(accumulated(sample(), Accumulation::sum, 1, true, true),
              ElementsAre(3, 2, 0, 9, 4, 0));
  EXPECT_THAT(accumulated(sample(), Accumulation::prod, 1, true), ElementsAre(1, 3, 3, 1, -1, -5));
  const Tensor small = tensor_of(i8, {2}, {1, 2});
  EXPECT_THAT(accumulated(small, Accumulation::max, 0, true), ElementsAre(-128, 1));
  EXPECT_THAT(accumulated(small, Accumulation::min, 0, true), ElementsAre(127, 1));
  EXPECT_THAT(accumulated(tensor_of(DType::u16, {2}, {1, 2}), Accumulation::min, 0, true),
              ElementsAre(65535, 1));
  EXPECT_THAT(accumulated(tensor_of(f32, {2}, {1, 2}), Accumulation::max, 0, true),
              ElementsAre(-INFINITY, 1));
}

TEST(Cumulative, IntegersWrap) {
  EXPECT_THAT(accumulated(tensor_of(i8, {3}, {100, 100, 100}), Accumulation::sum, 0),
              ElementsAre(100, -56, 44));
  EXPECT_THAT(accumulated(tensor_of(DType::u8, {3}, {16, 16, 3}), Accumulation::prod, 0),
              ElementsAre(16, 0, 0));
}

TEST(Cumulative, NanStaysFromWhereItStands) {
  const Tensor x = tensor_of(f32, {4}, {1, NAN, 7, -7});
  for (const Accumulation kind : kKinds) {
    const auto y = accumulated(x, kind, 0);
    EXPECT_EQ(y[0], 1);
    for (const std::size_t i : {1, 2, 3}) EXPECT_TRUE(std::isnan(y[i])) << i;
  }
}

// numpy.cumprod of [1+2j, 3-1j].
TEST(Cumulative, ComplexNumbers) {
  HostArray z(DType::c64, {2});
  z.as<std::complex<double>>() = {{1, 2}, {3, -1}};
  EXPECT_THAT(accumulated(z.to_tensor(), Accumulation::prod, 0), ElementsAre(1, 2, 5, 5));
  Graph g;
  EXPECT_EQ(error_of([&] {
              (void)cumulative(g.input("z", {DType::c64, {2}}), Accumulation::max, 0);
            }),
            "cumulative (cumulative): complex numbers have no order");
}

std::vector<double> arg(const Tensor& x, bool largest, bool last, std::int64_t axis = 0) {
  return doubles(evaluated({x}, [=](Values v) {
    return largest ? arg_max(v[0], axis, false, last) : arg_min(v[0], axis, false, last);
  }));
}

TEST(ArgReduce, TiesAndNan) {
  const Tensor ties = tensor_of(f32, {5}, {2, 7, 7, -1, -1});
  EXPECT_THAT(arg(ties, true, false), ElementsAre(1));
  EXPECT_THAT(arg(ties, true, true), ElementsAre(2));
  EXPECT_THAT(arg(ties, false, false), ElementsAre(3));
  EXPECT_THAT(arg(ties, false, true), ElementsAre(4));
  const Tensor nan = tensor_of(f32, {5}, {INFINITY, NAN, 0, NAN, -INFINITY});
  EXPECT_THAT(arg(nan, true, false), ElementsAre(1));
  EXPECT_THAT(arg(nan, true, true), ElementsAre(3));
  EXPECT_THAT(arg(nan, false, false), ElementsAre(1));
  EXPECT_THAT(arg(nan, false, true), ElementsAre(3));
  EXPECT_THAT(arg(tensor_of(f32, {2}, {-0.0, 0.0}), true, false), ElementsAre(0));
}

TEST(ArgReduce, AnyAxisOfUnsignedAndSigned) {
  EXPECT_THAT(arg(sample(), true, false, 0), ElementsAre(0, 1, 1));
  EXPECT_THAT(arg(sample(), false, false, -1), ElementsAre(1, 0));
  EXPECT_THAT(arg(tensor_of(u64, {3}, {1, 18446744073709549568.0, 2}), true, false),
              ElementsAre(1));
}

TEST(ArgReduce, AnEmptyAxisIsAnError) {
  Graph g;
  EXPECT_EQ(error_of([&] {
              (void)arg_max(g.input("x", {f32, {2, 0}}), 1);
            }),
            "arg_reduce (arg_reduce): elements along axis 1 of [2, 0]: 1 is more than 0");
  Graph s;
  s.output("y", arg_max(s.input("x", {f32, {2, "n"}}), 1));
  EXPECT_EQ(error_of([&] {
              (void)bind_sizes(s, {{"x", {2, 0}}});
            }),
            "arg_reduce: elements along axis 1 of [2, n]: 1 is more than n = 0");
}

std::pair<std::vector<double>, std::vector<double>> top(const Tensor& x, std::int64_t k,
                                                        bool largest, std::int64_t axis = -1) {
  Graph g;
  const TopKResult y = top_k(g.input("x", {x.dtype(), Shape::of(x.dims())}), k, axis, largest);
  g.output("values", y.values);
  g.output("indices", y.indices);
  const NamedTensors out = evaluate_graph(g, {{"x", x}});
  return {doubles(out.at("values")), doubles(out.at("indices"))};
}

TEST(TopK, TiesTakeTheSmallerIndex) {
  const Tensor x = tensor_of(f32, {6}, {1, 3, 3, -2, 3, -2});
  EXPECT_THAT(top(x, 4, true).second, ElementsAre(1, 2, 4, 0));
  EXPECT_THAT(top(x, 3, false).second, ElementsAre(3, 5, 0));
  EXPECT_THAT(top(x, 3, false).first, ElementsAre(-2, -2, 1));
}

// As torch.topk: NaN is the greatest, whichever end is asked for.
TEST(TopK, NanIsTheGreatest) {
  const Tensor x = tensor_of(f32, {5}, {1, NAN, INFINITY, -INFINITY, NAN});
  EXPECT_THAT(top(x, 5, true).second, ElementsAre(1, 4, 2, 0, 3));
  EXPECT_THAT(top(x, 5, false).second, ElementsAre(3, 0, 2, 1, 4));
}

TEST(TopK, AnyAxis) {
  const auto [values, indices] = top(sample(), 1, true, 0);
  EXPECT_THAT(values, ElementsAre(3, 5, 4));
  EXPECT_THAT(indices, ElementsAre(0, 1, 1));
}

TEST(TopK, KIsAtMostTheExtent) {
  Graph g;
  const Value x = g.input("x", {f32, {2, 3}});
  EXPECT_EQ(error_of([&] { (void)top_k(x, 4); }),
            "top_k (top_k): k of 4 elements along axis 1 of [2, 3]: 4 is more than 3");
  EXPECT_EQ(error_of([&] { (void)top_k(x, -1); }),
            "top_k.1 (top_k): k of -1 elements along axis 1 of [2, 3]: 0 is more than -1");
  const Value s = g.input("s", {f32, {2, "n"}});
  g.output("y", top_k(s, "k").indices);
  EXPECT_EQ(g.outputs()[0].value.shape(), (Shape{2, "k"}));
  DimBinding sizes;
  sizes.set("k", 9);
  EXPECT_EQ(error_of([&] {
              (void)bind_sizes(g, {{"x", {2, 3}}, {"s", {2, 8}}}, sizes);
            }),
            "top_k.2: k of k elements along axis 1 of [2, n]: k = 9 is more than n = 8");
}

}  // namespace
}  // namespace rlx
