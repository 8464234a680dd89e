#include "ops/dot_general.h"

#include <cmath>

#include "conformance/op_case.h"

namespace rlx {
namespace {

OpCase product(std::string name, DType dtype, Tensor::Dims a, Tensor::Dims b, double terms,
               bool special = false) {
  // Without the largest values: their products overflow f32, but not the reference.
  const auto make = [&](const Tensor::Dims& dims, std::uint64_t seed) {
    if (!special) return random_tensor(dtype, dims, seed);
    std::vector<double> values = doubles(special_tensor(dtype, dims, seed));
    for (double& v : values) v = std::isfinite(v) && std::fabs(v) > 1e30 ? 1 : v;
    return tensor_of(dtype, dims, values);
  };
  return {.name = std::move(name),
          .build =
              [=](Graph& g) {
                const Value x = g.input("a", {dtype, Shape::of(a)});
                g.output("y", matmul(x, g.input("b", {dtype, Shape::of(b)})));
              },
          .inputs = {{"a", make(a, 1)}, {"b", make(b, 2)}},
          .ulps = 1,
          .terms = terms};
}

OpCase contraction(std::string name, Tensor::Dims a, Tensor::Dims b, DotGeneral op, double terms) {
  return {.name = std::move(name),
          .build =
              [=](Graph& g) {
                const Value x = g.input("a", {f32, Shape::of(a)});
                const Value y = g.input("b", {f32, Shape::of(b)});
                g.output("y", dot_general(x, y, op.a_batch, op.b_batch, op.a_contracting,
                                          op.b_contracting));
              },
          .inputs = {{"a", random_tensor(f32, a, 1)}, {"b", random_tensor(f32, b, 2)}},
          .ulps = 1,
          .terms = terms};
}

OpCase byte_product(std::string name, DType a_dtype, DType b_dtype, Tensor::Dims a,
                    Tensor::Dims b) {
  const auto low = [](DType d) { return d == i8 ? -128.0 : 0.0; };
  const auto high = [](DType d) { return d == i8 ? 127.0 : 255.0; };
  return {.name = std::move(name),
          .build =
              [=](Graph& g) {
                const Value x = g.input("a", {a_dtype, Shape::of(a)});
                g.output("y", matmul(x, g.input("b", {b_dtype, Shape::of(b)})));
              },
          .inputs = {{"a", random_tensor(a_dtype, a, 1, low(a_dtype), high(a_dtype))},
                     {"b", random_tensor(b_dtype, b, 2, low(b_dtype), high(b_dtype))}}};
}

std::vector<OpCase> dot_cases() {
  return {
      product("square", f32, {16, 16}, {16, 16}, 16),
      product("odd", f32, {7, 13}, {13, 5}, 13),
      product("one", f32, {1, 1}, {1, 1}, 1),
      product("row", f32, {1, 300}, {300, 70}, 300),
      product("column", f32, {70, 300}, {300, 1}, 300),
      product("vectors", f32, {33}, {33}, 33),
      product("vector_matrix", f32, {33}, {33, 4}, 33),
      product("matrix_vector", f32, {4, 33}, {33}, 33),
      product("vector_batch", f32, {9}, {2, 9, 4}, 9),
      product("no_rows", f32, {0, 4}, {4, 3}, 4),
      product("no_inner", f32, {3, 0}, {0, 4}, 1),
      product("long_inner", f32, {3, 2100}, {2100, 17}, 2100),
      product("shared_weight", f32, {2, 3, 8}, {8, 6}, 8),
      product("batched", f32, {2, 3, 4, 5}, {2, 3, 5, 6}, 5),
      product("batch_broadcast", f32, {2, 1, 4, 5}, {1, 3, 5, 6}, 5),
      product("batch_missing", f32, {4, 5}, {3, 5, 6}, 5),
      product("special", f32, {5, 6}, {6, 7}, 6, true),
      product("f64", f64, {7, 13}, {13, 5}, 13),
      product("f64_batch_broadcast", f64, {2, 1, 4, 5}, {1, 3, 5, 6}, 5),
      product("f64_special", f64, {5, 6}, {6, 7}, 6, true),
      byte_product("u8_i8", u8, i8, {7, 65}, {65, 19}),
      byte_product("i8_u8", i8, u8, {7, 65}, {65, 19}),
      byte_product("i8_i8", i8, i8, {33, 130}, {130, 70}),
      byte_product("u8_u8", u8, u8, {1, 300}, {300, 1}),
      byte_product("bytes_batched", u8, i8, {2, 1, 4, 5}, {1, 3, 5, 6}),
      byte_product("bytes_no_inner", i8, i8, {3, 0}, {0, 4}),
      contraction("a_transposed", {8, 5}, {8, 6}, {{}, {}, {0}, {0}}, 8),
      contraction("b_transposed", {5, 8}, {6, 8}, {{}, {}, {1}, {1}}, 8),
      contraction("two_contracted", {3, 4, 5}, {4, 5, 6}, {{}, {}, {1, 2}, {0, 1}}, 20),
      contraction("contracted_apart", {4, 3, 5}, {5, 6, 4}, {{}, {}, {0, 2}, {2, 0}}, 20),
      contraction("batch_last", {3, 4, 2}, {4, 5, 2}, {{2}, {2}, {1}, {0}}, 4),
      contraction("free_apart", {2, 8, 3}, {8, 4}, {{}, {}, {1}, {0}}, 8),
      contraction("outer_product", {3}, {4}, {{}, {}, {}, {}}, 1),
      contraction("attention_scores", {2, 7, 3, 16}, {2, 9, 3, 16}, {{0, 2}, {0, 2}, {3}, {3}}, 16),
  };
}
INSTANTIATE_TEST_SUITE_P(Dot, OpConformance, testing::ValuesIn(dot_cases()), case_name);

TEST(Dot, KnownValues) {
  Graph g;
  g.output("y", matmul(g.input("a", {f32, {2, 3}}), g.input("b", {f32, {3, 2}})));
  const Tensor y =
      evaluate_graph(g, {{"a", Tensor({2, 3}, {1.0F, 2.0F, 3.0F, 4.0F, 5.0F, 6.0F})},
                         {"b", Tensor({3, 2}, {7.0F, 8.0F, 9.0F, 10.0F, 11.0F, 12.0F})}})
          .at("y");
  EXPECT_THAT(y.values<float>(), testing::ElementsAre(58, 64, 139, 154));
}

TEST(Dot, BytesGiveExactI32) {
  Graph g;
  const Value y = matmul(g.input("a", {u8, {1, 2}}), g.input("b", {i8, {2, 1}}));
  EXPECT_EQ(y.dtype(), i32);
  g.output("y", y);
  const auto out =
      evaluate_graph(g, {{"a", Tensor({1, 2}, {std::uint8_t{255}, std::uint8_t{255}})},
                         {"b", Tensor({2, 1}, {std::int8_t{-128}, std::int8_t{-128}})}});
  EXPECT_EQ(out.at("y").values<std::int32_t>()[0], -65280);
}

TEST(Dot, NamesBothExtents) {
  Graph g;
  const Value a = g.input("a", {f32, {2, 3}});
  try {
    (void)matmul(a, g.input("b", {f32, {4, 2}}));
    FAIL();
  } catch (const ShapeError& e) {
    EXPECT_STREQ(
        e.what(),
        "dot_general (dot_general): inner dimensions of [2, 3] and [4, 2]: 3 and 4 differ");
  }
  EXPECT_THROW((void)matmul(a, g.input("c", {f64, {3, 2}})), InvalidArgument);
  EXPECT_THROW((void)matmul(a, g.input("s", {f32, {}})), ShapeError);
}

}  // namespace
}  // namespace rlx
