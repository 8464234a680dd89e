#include "ops/symbolic.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "rlx/ops.h"

namespace rlx {
namespace {

using testing::ElementsAre;
using Dims = std::vector<Dim>;

const Dim b("batch"), s("seq");

Value numbers(Graph& g, const std::vector<std::int64_t>& values) {
  return g.constant(
      Tensor({static_cast<std::int64_t>(values.size())}, std::span<const std::int64_t>(values)));
}
Value sizes(Graph& g, const Dims& dims) {
  return symbolic_tensor(g, i64, dims, {static_cast<std::int64_t>(dims.size())});
}
Dims known(Value v) { return symbolic_value(v).value_or(Dims{Dim("nothing")}); }

TEST(Symbolic, LeavesAndTheirTensorForm) {
  Graph g;
  EXPECT_THAT(known(g.size(b * s)), ElementsAre(b * s));
  EXPECT_THAT(known(sizes(g, {b, 3, s, -1})), ElementsAre(b, Dim(3), s, Dim(-1)));
  EXPECT_THAT(known(symbolic_tensor(g, i32, {b, s}, {2, 1})), ElementsAre(b, s));
  EXPECT_EQ(symbolic_tensor(g, i32, {b, s}, {2, 1}).type(), (TensorType{i32, {2, 1}}));
  EXPECT_EQ(symbolic_tensor(g, i64, {Dim(7)}, {}).rank(), 0U);
  EXPECT_THAT(known(iota(g, i64, {2, 2}, 1)), ElementsAre(Dim(0), Dim(1), Dim(0), Dim(1)));
}

TEST(Symbolic, DataHasNoSymbolicValue) {
  Graph g;
  const Value x = g.input("x", {i64, {2}});
  EXPECT_FALSE(symbolic_value(x));
  EXPECT_FALSE(symbolic_value(x + numbers(g, {1, 2})));
  EXPECT_FALSE(symbolic_value(g.input("y", {f32, {}})));
  EXPECT_FALSE(symbolic_value(broadcast(g.size(b), {b})));
  EXPECT_FALSE(symbolic_value(broadcast(g.size(b), {257})));
}

TEST(Symbolic, Movement) {
  Graph g;
  const Value v = sizes(g, {b, s, 3, 4});
  EXPECT_THAT(known(reshape(v, {2, 2})), ElementsAre(b, s, Dim(3), Dim(4)));
  EXPECT_THAT(known(transpose(reshape(v, {2, 2}), {1, 0})), ElementsAre(b, Dim(3), s, Dim(4)));
  EXPECT_THAT(known(slice(v, {3}, {2}, {-2})), ElementsAre(Dim(4), s));
  EXPECT_THAT(known(reverse(v, {0})), ElementsAre(Dim(4), Dim(3), s, b));
  const Value square = reshape(v, {2, 2});
  EXPECT_THAT(known(concat({square, reverse(square, {0})}, 1)),
              ElementsAre(b, s, Dim(3), Dim(4), Dim(3), Dim(4), b, s));
  EXPECT_THAT(known(broadcast(slice_axis(v, 0, 1, 1), {3})), ElementsAre(s, s, s));
}

TEST(Symbolic, Arithmetic) {
  Graph g;
  const Value v = sizes(g, {b, s});
  EXPECT_THAT(known(v * numbers(g, {12}) + v), ElementsAre(13 * b, 13 * s));
  EXPECT_THAT(known(v - numbers(g, {1})), ElementsAre(b - 1, s - 1));
  EXPECT_THAT(known(v / numbers(g, {2})), ElementsAre(floor_div(b, 2), floor_div(s, 2)));
  EXPECT_THAT(known(numbers(g, {-7, 7}) / numbers(g, {2, -2})), ElementsAre(Dim(-3), Dim(-3)));
  EXPECT_THAT(known(remainder(numbers(g, {-7}), numbers(g, {2}))), ElementsAre(Dim(-1)));
  EXPECT_THAT(known(modulo(numbers(g, {-7}), numbers(g, {2}))), ElementsAre(Dim(1)));
  EXPECT_THAT(known(min(v, numbers(g, {512}))), ElementsAre(min(b, 512), min(s, 512)));
  EXPECT_THAT(known(-v), ElementsAre(-b, -s));
  EXPECT_THAT(known(reduce(v, Reduction::prod, {0})), ElementsAre(b * s));
  EXPECT_THAT(known(sum(v, {0}, true)), ElementsAre(b + s));
  // Faults of the run have no value.
  EXPECT_FALSE(symbolic_value(v / numbers(g, {0})));
  // Wrapped results are not extents.
  const Value big = numbers(g, {std::numeric_limits<std::int64_t>::max()});
  EXPECT_FALSE(symbolic_value(big + numbers(g, {1})));
  EXPECT_FALSE(symbolic_value(cast(numbers(g, {300}), DType::u8)));
  EXPECT_THAT(known(cast(cast(v, i32), i64)), ElementsAre(b, s));
}

TEST(Symbolic, PredicatesAreDecidedByRanges) {
  Graph g;
  SymbolicValues values;
  const Value zero = scalar(g, i64, 0);
  const Value one = scalar(g, i64, 1);
  EXPECT_EQ(values.decide(greater_equal(g.size(b), zero)), true);
  EXPECT_EQ(values.decide(less(g.size(b), zero)), false);
  EXPECT_EQ(values.decide(equal(g.size(b), scalar(g, i64, -1))), false);
  EXPECT_EQ(values.decide(equal(g.size(b + 1), zero)), false);
  EXPECT_EQ(values.decide(not_equal(g.size(b * s), g.size(s * b))), false);
  EXPECT_EQ(values.decide(greater(g.size(b + 2), one)), true);
  EXPECT_EQ(values.decide(equal(g.size(b), one)), std::nullopt);
  EXPECT_EQ(values.decide(logical_not(equal(g.size(b), g.size(b)))), false);
  EXPECT_EQ(values.decide(cast(g.size(b + 1), boolean)), true);
  EXPECT_EQ(values.decide(logical_or(equal(g.size(b), one), less(zero, one))), true);
}

TEST(Symbolic, UndecidedPredicatesAreZeroOrOne) {
  Graph g;
  const Value one = scalar(g, i64, 1);
  const Value predicates[] = {equal(g.size(b), one),
                              not_equal(g.size(b), one),
                              less(g.size(b), one),
                              less_equal(g.size(b), one),
                              greater(g.size(b), one),
                              greater_equal(g.size(b), one),
                              logical_not(equal(g.size(b), one)),
                              logical_and(less(one, g.size(b)), equal(g.size(s), one))};
  const bool expected[3][8] = {{false, true, true, true, false, false, true, false},
                               {true, false, false, true, false, true, false, false},
                               {false, true, false, false, true, true, true, true}};
  for (std::int64_t size = 0; size < 3; ++size) {
    DimBinding binding;
    binding.set("batch", size);
    binding.set("seq", 1);
    for (std::size_t i = 0; i < std::size(predicates); ++i)
      EXPECT_EQ(known(predicates[i])[0].evaluate(binding), expected[size][i] ? 1 : 0)
          << i << " at " << size;
  }
  EXPECT_THAT(known(select(equal(numbers(g, {-1, 4}), numbers(g, {-1})), sizes(g, {b, s}),
                           numbers(g, {3, 4}))),
              ElementsAre(b, Dim(4)));
}

TEST(Symbolic, LongChainsNeedNoStack) {
  Graph g;
  Value v = g.size(b);
  for (int i = 0; i < 100'000; ++i) v = v + scalar(g, i64, 1);
  EXPECT_THAT(known(v), ElementsAre(b + 100'000));
}

TEST(Symbolic, ExpressionsStayBounded) {
  Graph g;
  Value v = g.size(b + s);
  for (int i = 0; i < 64; ++i) v = v * v;
  EXPECT_FALSE(symbolic_value(v));
}

}  // namespace
}  // namespace rlx
