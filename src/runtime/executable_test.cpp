#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <new>
#include <random>
#include <thread>

#include "conformance/op_case.h"
#include "ops/evaluate.h"
#include "rlx/ops.h"
#include "rlx/runtime.h"

// Counts what the whole program allocates with new.
namespace {
std::atomic<std::size_t> allocations = 0;

void* allocate(std::size_t bytes, std::size_t alignment) {
  allocations.fetch_add(1, std::memory_order_relaxed);
  const std::size_t rounded = (bytes + alignment - 1) / alignment * alignment;
  if (void* p = std::aligned_alloc(alignment, rounded == 0 ? alignment : rounded)) return p;
  throw std::bad_alloc();
}
}  // namespace

void* operator new(std::size_t bytes) { return allocate(bytes, alignof(std::max_align_t)); }
void* operator new(std::size_t bytes, std::align_val_t alignment) {
  return allocate(bytes, static_cast<std::size_t>(alignment));
}
void operator delete(void* p) noexcept { std::free(p); }
void operator delete(void* p, std::size_t) noexcept { std::free(p); }
void operator delete(void* p, std::align_val_t) noexcept { std::free(p); }
void operator delete(void* p, std::size_t, std::align_val_t) noexcept { std::free(p); }

namespace rlx {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::vector<float> floats(const Tensor& t) {
  const auto values = t.values<float>();
  return {values.begin(), values.end()};
}

Tensor floats_of(Tensor::Dims dims, float first) {
  Tensor t(f32, std::move(dims));
  for (float& v : t.values<float>()) v = first++;
  return t;
}

bool same_bits(const Tensor& a, const Tensor& b) {
  return a.dtype() == b.dtype() && a.dims() == b.dims() &&
         std::memcmp(a.bytes().data(), b.bytes().data(), a.bytes().size()) == 0;
}

// y[n, 3] = relu(x[n, 4] w + b), its rows' softmax, and x's sum.
Graph dense_layer(bool with_data) {
  Graph g;
  const Value x = g.input("x", {f32, {"n", 4}});
  const Value w =
      with_data ? g.param("w", random_tensor(f32, {4, 3}, 1)) : g.param("w", {f32, {4, 3}});
  const Value b = with_data ? g.param("b", random_tensor(f32, {3}, 2)) : g.param("b", {f32, {3}});
  const Value y = relu(matmul(x, w) + b);
  g.output("y", y);
  g.output("p", softmax(y, -1));
  g.output("s", sum(x, {0, 1}));
  return g;
}

// ---- params

TEST(Executable, NamesParamsThatHaveNoData) {
  Executable exe = compile(dense_layer(false));
  EXPECT_THAT(error_of([&] { const Context c(exe); }),
              testing::AllOf(HasSubstr("params without data"), HasSubstr("b"), HasSubstr("w")));
  exe.set_param("w", random_tensor(f32, {4, 3}, 1));
  exe.set_param("b", random_tensor(f32, {3}, 2));
  Context set(exe);
  Context built(compile(dense_layer(true)));
  const Tensor x = random_tensor(f32, {5, 4}, 3);
  EXPECT_TRUE(same_bits(set.run({{"x", x}}).at("y"), built.run({{"x", x}}).at("y")));
}

TEST(Executable, RefusesWrongParams) {
  Executable exe = compile(dense_layer(true));
  EXPECT_THROW(exe.set_param("v", Tensor(f32, {4, 3})), InvalidArgument);
  EXPECT_THROW(exe.set_param("w", Tensor(f32, {3, 4})), ShapeError);
  EXPECT_THROW(exe.set_param("w", Tensor(f64, {4, 3})), ShapeError);
  EXPECT_THAT(error_of([&] {
                exe.set_param("w", Tensor(f64, {3, 4}));
              }),
              testing::AllOf(HasSubstr("f32[4, 3]"), HasSubstr("f64[3, 4]")));
}

TEST(Executable, RefusesParamsOnceAContextReadsThem) {
  Executable exe = compile(dense_layer(true));
  Context context(exe);
  EXPECT_THROW(exe.set_param("w", Tensor(f32, {4, 3})), InvalidArgument);
}

// ---- inputs

TEST(Context, RefusesWrongInputs) {
  Context context(compile(dense_layer(true)));
  const auto error = [&](const NamedTensors& inputs) {
    return error_of([&] { (void)context.bind(inputs); });
  };
  const Tensor x(f32, {2, 4});
  EXPECT_THAT(error({}), HasSubstr("input x f32[n, 4] is missing"));
  EXPECT_THAT(error({{"x", x}, {"z", x}}), HasSubstr("there is no input z"));
  EXPECT_THAT(error({{"x", Tensor(f64, {2, 4})}}), HasSubstr("input x is f64, expected f32"));
  EXPECT_THAT(error({{"x", Tensor(f32, {2, 4, 1})}}), HasSubstr("expected rank 2"));
  EXPECT_THAT(error({{"x", Tensor(f32, {2, 5})}}), HasSubstr("axis 1 of input x is 5, expected 4"));
  EXPECT_EQ(context.run({{"x", x}}).at("y").dims(), (Tensor::Dims{2, 3}));  // still usable
}

TEST(Context, RefusesASymbolOfTwoSizes) {
  Graph g;
  const Value a = g.input("a", {f32, {"n"}});
  g.output("y", a + g.input("b", {f32, {"n"}}));
  Context context(compile(std::move(g)));
  EXPECT_THAT(error_of([&] {
                context.run({{"a", Tensor(f32, {2})}, {"b", Tensor(f32, {3})}});
              }),
              testing::AllOf(HasSubstr("dimension n is 2"), HasSubstr("input a"),
                             HasSubstr("and 3"), HasSubstr("input b")));
}

TEST(Context, KeepsSizesGivenAtCompileTime) {
  CompileOptions options;
  options.dims.set("n", 2);
  Context context(compile(dense_layer(true), options));
  EXPECT_EQ(context.run({{"x", Tensor(f32, {2, 4})}}).at("y").dims(), (Tensor::Dims{2, 3}));
  EXPECT_THROW(context.run({{"x", Tensor(f32, {3, 4})}}), ShapeError);
}

TEST(Context, RunsEmptyBatches) {
  Context context(compile(dense_layer(true)));
  const NamedTensors results = context.run({{"x", Tensor(f32, {0, 4})}});
  EXPECT_EQ(results.at("y").dims(), (Tensor::Dims{0, 3}));
  EXPECT_THAT(floats(results.at("s")), ElementsAre(0.0F));
}

// ---- outputs

TEST(Context, OutputsMayBeLeavesViewsAndTwice) {
  Graph g;
  const Value x = g.input("x", {f32, {2, 3}});
  const Value p = g.param("p", floats_of({2, 2}, 10));
  const Value y = x * 2.0;
  g.output("input", x);
  g.output("param", p);
  g.output("constant", g.constant(floats_of({2}, 5)));
  g.output("input_view", transpose(x, {1, 0}));
  g.output("param_view", transpose(p, {1, 0}));
  g.output("y", y);
  g.output("y_again", y);
  g.output("y_view", slice(y, {0, 1}, {2, 2}));
  g.output("y_flat", reshape(y, {6}));
  Executable exe = compile(std::move(g));
  ASSERT_EQ(exe.outputs().size(), 9U);
  Context context(exe);
  const NamedTensors r = context.run({{"x", floats_of({2, 3}, 1)}});
  EXPECT_THAT(floats(r.at("input")), ElementsAre(1, 2, 3, 4, 5, 6));
  EXPECT_THAT(floats(r.at("param")), ElementsAre(10, 11, 12, 13));
  EXPECT_THAT(floats(r.at("constant")), ElementsAre(5, 6));
  EXPECT_THAT(floats(r.at("input_view")), ElementsAre(1, 4, 2, 5, 3, 6));
  EXPECT_THAT(floats(r.at("param_view")), ElementsAre(10, 12, 11, 13));
  EXPECT_THAT(floats(r.at("y")), ElementsAre(2, 4, 6, 8, 10, 12));
  EXPECT_THAT(floats(r.at("y_again")), ElementsAre(2, 4, 6, 8, 10, 12));
  EXPECT_THAT(floats(r.at("y_view")), ElementsAre(4, 6, 10, 12));
  EXPECT_THAT(floats(r.at("y_flat")), ElementsAre(2, 4, 6, 8, 10, 12));
}

TEST(Bound, NamesUnknownOutputs) {
  Context context(compile(dense_layer(true)));
  Bound bound = context.bind({{"x", Tensor(f32, {1, 4})}});
  bound.run();
  EXPECT_THROW((void)bound.output("q"), InvalidArgument);
}

TEST(Bound, SurvivesLargerBindings) {
  Context context(compile(dense_layer(true)));
  const Tensor x = random_tensor(f32, {2, 4}, 3);
  const Tensor expected = context.run({{"x", x}}).at("p");
  Bound small = context.bind({{"x", x}});
  Bound large = context.bind({{"x", random_tensor(f32, {3000, 4}, 4)}});
  large.run();
  small.run();
  EXPECT_TRUE(same_bits(small.output("p"), expected));
  large.run();
  small.run();
  EXPECT_TRUE(same_bits(small.output("p"), expected));
  EXPECT_GT(large.arena_bytes(), small.arena_bytes());
}

// ---- states

// total += x; the output is the total before.
Graph accumulator() {
  Graph g;
  const Value x = g.input("x", {f32, {"n"}});
  const Value total = g.state("total", {f32, {"n"}});
  g.output("before", total);
  g.update(total, total + x);
  return g;
}

TEST(Context, StatesLastFromRunToRun) {
  Context context(compile(accumulator()));
  const NamedTensors x{{"x", floats_of({2}, 1)}};
  EXPECT_THAT(floats(context.run(x).at("before")), ElementsAre(0, 0));
  EXPECT_THAT(floats(context.run(x).at("before")), ElementsAre(1, 2));
  EXPECT_THAT(floats(context.state("total")), ElementsAre(2, 4));
  context.set_state("total", floats_of({2}, 7));
  EXPECT_THAT(floats(context.run(x).at("before")), ElementsAre(7, 8));
  context.reset();
  EXPECT_THAT(floats(context.run(x).at("before")), ElementsAre(0, 0));
  EXPECT_THROW(context.run({{"x", floats_of({3}, 1)}}), ShapeError);
  EXPECT_THAT(floats(context.run(x).at("before")), ElementsAre(1, 2));
  context.reset();
  EXPECT_THAT(floats(context.run({{"x", floats_of({3}, 1)}}).at("before")), ElementsAre(0, 0, 0));
}

TEST(Bound, SeesStatesThatWereSetAfterIt) {
  Context context(compile(accumulator()));
  const Tensor x = floats_of({2}, 1);
  Bound bound = context.bind({{"x", x}});
  bound.run();
  context.set_state("total", floats_of({2}, 20));
  bound.run();
  EXPECT_THAT(floats(bound.output("before")), ElementsAre(20, 21));
  context.reset();
  bound.run();
  EXPECT_THAT(floats(bound.output("before")), ElementsAre(0, 0));
}

TEST(Context, RefusesWrongStates) {
  Graph g;
  const Value s = g.state("s", {f32, {2, "n"}});
  g.output("y", s + g.input("x", {f32, {2, "n"}}));
  g.update(s, s + 1.0);
  Context context(compile(std::move(g)));
  EXPECT_THROW(context.set_state("t", Tensor(f32, {2, 2})), InvalidArgument);
  EXPECT_THROW((void)context.state("t"), InvalidArgument);
  EXPECT_THROW(context.set_state("s", Tensor(f64, {2, 2})), ShapeError);
  EXPECT_THROW(context.set_state("s", Tensor(f32, {2})), ShapeError);
  EXPECT_THROW(context.set_state("s", Tensor(f32, {3, 2})), ShapeError);
  context.run({{"x", Tensor(f32, {2, 3})}});
  EXPECT_THAT(floats(context.state("s")), ElementsAre(1, 1, 1, 1, 1, 1));
}

TEST(Context, StartsFromInitialStatesAndSwapsThem) {
  Graph g;
  const Value a = g.state("a", {f32, {1}}, Tensor({1}, {3.0F}));
  const Value b = g.state("b", {f32, {1}}, Tensor({1}, {4.0F}));
  g.update(a, b);
  g.update(b, a);
  g.output("a_before", a);
  Context context(compile(std::move(g)));
  EXPECT_THAT(floats(context.run({}).at("a_before")), ElementsAre(3));
  EXPECT_THAT(floats(context.state("a")), ElementsAre(4));
  EXPECT_THAT(floats(context.state("b")), ElementsAre(3));
  EXPECT_THAT(floats(context.run({}).at("a_before")), ElementsAre(4));
  context.reset();
  EXPECT_THAT(floats(context.run({}).at("a_before")), ElementsAre(3));
}

// ---- faults

Graph lookup() {
  Graph g;
  const Value table = g.param("table", floats_of({3, 1}, 0));
  g.set_origin("words");
  g.output("y", gather(table, g.input("i", {i64, {"n"}}), 0));
  return g;
}

TEST(Context, FaultsNameNodeAndValues) {
  Context context(compile(lookup()));
  try {
    context.run({{"i", Tensor({3}, {std::int64_t{0}, std::int64_t{7}, std::int64_t{9}})}});
    FAIL() << "no error";
  } catch (const IndexError& error) {
    EXPECT_EQ(error.node(), "words");
    EXPECT_EQ(error.op(), "gather");
    EXPECT_THAT(error.what(), testing::AllOf(HasSubstr("index 7"), HasSubstr("element 1"),
                                             HasSubstr("extent 3")));
  }
  const NamedTensors good = context.run({{"i", Tensor({2}, {std::int64_t{2}, std::int64_t{1}})}});
  EXPECT_THAT(floats(good.at("y")), ElementsAre(2, 1));
}

TEST(Context, DivisionByZeroIsAFault) {
  Graph g;
  g.set_origin("share");
  g.output("y", g.input("a", {i32, {2}}) / g.input("b", {i32, {2}}));
  Context context(compile(std::move(g)));
  const Tensor a({2}, {std::int32_t{6}, std::int32_t{7}});
  const Tensor b({2}, {std::int32_t{3}, std::int32_t{0}});
  try {
    context.run({{"a", a}, {"b", b}});
    FAIL() << "no error";
  } catch (const IndexError& error) {
    EXPECT_EQ(error.node(), "share");
    EXPECT_THAT(error.what(), HasSubstr("division by zero at element 1"));
  }
}

// ---- threads, plans, memory

// Large enough that kernels split it.
Graph network() {
  Graph g;
  const Value x = g.input("x", {f32, {"n", 64}});
  const Value h = gelu(linear(x, g.param("w1", random_tensor(f32, {64, 128}, 1, -0.2, 0.2)),
                              g.param("b1", random_tensor(f32, {128}, 2))));
  const Value y = linear(h, g.param("w2", random_tensor(f32, {128, 64}, 3, -0.2, 0.2)));
  const Value z = layer_norm(x + y, g.param("scale", random_tensor(f32, {64}, 4)),
                             g.param("bias", random_tensor(f32, {64}, 5)));
  g.output("y", softmax(z, -1));
  g.output("s", sum(z, {0, 1}));
  return g;
}

TEST(Executable, AgreesWithTheReference) {
  const Graph g = network();
  const NamedTensors inputs{{"x", random_tensor(f32, {33, 64}, 7)}};
  const NamedTensors expected = evaluate_graph(g, inputs);
  Context context(compile(g.clone()));
  const Tensor found = context.run(inputs).at("y");
  const auto a = found.values<float>();
  const auto b = expected.at("y").values<float>();
  for (std::size_t i = 0; i < a.size(); ++i) ASSERT_NEAR(a[i], b[i], 1e-5F) << i;
}

TEST(Executable, GivesTheSameBitsOnAnyNumberOfThreads) {
  const NamedTensors inputs{{"x", random_tensor(f32, {700, 64}, 7)}};
  Context one(compile(network(), {.threads = 1}));
  const NamedTensors expected = one.run(inputs);
  for (const int threads : {2, 4}) {
    Context context(compile(network(), {.threads = threads}));
    const NamedTensors found = context.run(inputs);
    EXPECT_TRUE(same_bits(found.at("y"), expected.at("y"))) << threads;
    EXPECT_TRUE(same_bits(found.at("s"), expected.at("s"))) << threads;
  }
}

TEST(Executable, ServesContextsOnSeveralThreads) {
  const Executable exe = compile(network());
  std::vector<NamedTensors> inputs;
  std::vector<Tensor> expected;
  Context alone(exe);
  for (std::int64_t n = 1; n <= 24; ++n) {  // more sizes than plans are kept
    inputs.push_back({{"x", random_tensor(f32, {n, 64}, static_cast<std::uint64_t>(n))}});
    expected.push_back(alone.run(inputs.back()).at("y"));
  }
  std::atomic<int> wrong = 0;
  const auto work = [&](std::size_t start) {
    Context context(exe);
    for (std::size_t i = 0; i < 4 * inputs.size(); ++i) {
      const std::size_t at = (start + i) % inputs.size();
      if (!same_bits(context.run(inputs[at]).at("y"), expected[at])) ++wrong;
    }
  };
  std::thread first(work, 0), second(work, 11);
  first.join();
  second.join();
  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(exe.compilations(), 1);
}

TEST(Bound, RunAllocatesNothing) {
  for (const int threads : {1, 2}) {
    Context context(compile(network(), {.threads = threads}));
    Bound bound = context.bind({{"x", random_tensor(f32, {300, 64}, 7)}});
    bound.run();  // starts the workers
    const std::size_t before = allocations;
    for (int i = 0; i < 20; ++i) bound.run();
    EXPECT_EQ(allocations - before, 0U) << threads << " threads";
  }
}

std::size_t resident_bytes() {
  std::size_t total = 0, resident = 0;
  std::ifstream("/proc/self/statm") >> total >> resident;
  return resident * static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
}

bool under_sanitizer() {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  return true;  // freed memory stays in quarantine
#else
  return false;
#endif
}

TEST(Context, MemoryStaysFlatOverRandomShapes) {
  constexpr int runs = 10'000;
  const Executable exe = compile(network());
  Context context(exe);
  std::mt19937 random(1);
  std::uniform_int_distribution<std::int64_t> size(1, 200);
  const auto run_some = [&](int count) {
    for (int i = 0; i < count; ++i) context.run({{"x", Tensor(f32, {size(random), 64})}});
  };
  context.run({{"x", Tensor(f32, {200, 64})}});  // the largest arena
  run_some(500);
  const std::size_t before = resident_bytes();
  run_some(runs);
  const std::size_t after = resident_bytes();
  EXPECT_EQ(exe.compilations(), 1);
  if (!under_sanitizer()) {
    EXPECT_LE(after, before + (std::size_t{1} << 20)) << "grew by " << after - before << " bytes";
  }
}

}  // namespace
}  // namespace rlx
