// y = gelu(x·a + b)·c + r as one elementwise region, against the same loop written by hand with the
// same vector function, interleaved. Ratios are of times, region over loop: below 1 the region
// wins.

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cmath>
#include <cstdio>
#include <random>

#include "base/thread_pool.h"
#include "compiler/fused.h"
#include "measure.h"
#include "rlx/ops.h"
#include "rlx/runtime.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "../bench/region_bench.cpp"
#include <hwy/foreach_target.h>
// After foreach_target.h, which includes this file again for each instruction set.
#include <hwy/cache_control.h>
#include <hwy/highway.h>

#include "backends/cpu/kernels/vector_math-inl.h"

#ifndef RLX_BENCH_REGION_LOOP
#define RLX_BENCH_REGION_LOOP
namespace rlx::bench {
struct Loop {
  const float* x;
  const float* r;
  float* y;
  float a, b, c;
};
}  // namespace rlx::bench
#endif

HWY_BEFORE_NAMESPACE();
namespace rlx::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

template <bool kStreamed>
HWY_INLINE void loop(const bench::Loop& l, std::size_t begin, std::size_t end) {
  const hn::ScalableTag<float> d;
  const auto a = hn::Set(d, l.a), b = hn::Set(d, l.b), c = hn::Set(d, l.c);
  for (std::size_t i = begin; i < end; i += hn::Lanes(d)) {
    const auto u = hn::MulAdd(hn::LoadU(d, l.x + i), a, b);
    const auto y = hn::MulAdd(gelu_erf(d, u), c, hn::LoadU(d, l.r + i));
    if constexpr (kStreamed) {
      hn::Stream(y, d, l.y + i);
    } else {
      hn::StoreU(y, d, l.y + i);
    }
  }
}
void plain_loop(const bench::Loop& l, std::size_t begin, std::size_t end) {
  loop<false>(l, begin, end);
}
void streamed_loop(const bench::Loop& l, std::size_t begin, std::size_t end) {
  loop<true>(l, begin, end);
  hwy::FlushStream();
}

}  // namespace rlx::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace rlx::cpu {
HWY_EXPORT(plain_loop);
HWY_EXPORT(streamed_loop);

void hand_loop(const bench::Loop& l, bool streamed, std::size_t begin, std::size_t end) noexcept {
  if (streamed) return HWY_DYNAMIC_DISPATCH(streamed_loop)(l, begin, end);
  HWY_DYNAMIC_DISPATCH(plain_loop)(l, begin, end);
}
}  // namespace rlx::cpu

namespace rlx::bench {
namespace {

constexpr float kA = 1.25F, kB = -0.5F, kC = 0.75F;

Graph region_graph(std::int64_t n) {
  Graph inner;
  {
    const Value x = inner.input("x", {f32, {n}}), r = inner.input("r", {f32, {n}});
    inner.output("y", gelu(x * kA + kB) * kC + r);
  }
  Graph g;
  const std::vector<Value> inputs = {g.input("x", {f32, {n}}), g.input("r", {f32, {n}})};
  const auto body = std::make_shared<const Graph>(std::move(inner));
  g.output("y", g.add1(make_op(region_def, Region{body}), inputs));
  return g;
}

Tensor normal_numbers(std::int64_t n, unsigned seed) {
  std::mt19937 engine(seed);
  std::normal_distribution<float> normal;
  Tensor t(f32, {n});
  for (float& v : t.values<float>()) v = normal(engine);
  return t;
}

double largest_difference(const Tensor& a, const Tensor& b) {
  double worst = 0;
  for (std::size_t i = 0; i < a.size(); ++i)
    worst = std::max(worst, std::fabs(static_cast<double>(a.values<float>()[i]) -
                                      static_cast<double>(b.values<float>()[i])));
  return worst;
}

void compare(std::int64_t n, int threads, int rounds) {
  const Tensor x = normal_numbers(n, 1), r = normal_numbers(n, 2);
  Tensor y(f32, {n});
  ThreadPool& pool = ThreadPool::process();
  const Loop l{
      x.values<float>().data(), r.values<float>().data(), y.values<float>().data(), kA, kB, kC};
  const auto parts = static_cast<std::size_t>(threads);
  const auto vectors = static_cast<std::size_t>(n) / 16;
  const auto by_hand = [&](bool streamed) {
    const ThreadLimit limit(threads);
    parallel_for(pool, parts, [&](std::size_t part) noexcept {
      cpu::hand_loop(l, streamed, vectors * part / parts * 16, vectors * (part + 1) / parts * 16);
    });
  };
  const auto plain = [&] { by_hand(false); };
  const auto streamed = [&] { by_hand(true); };

  const Executable executable = compile(region_graph(n), {.optimization = 0, .threads = threads});
  Context context(executable);
  Bound bound = context.bind({{"x", x}, {"r", r}});
  const auto region = [&] { bound.run(); };

  plain();
  region();
  const double difference = largest_difference(y, bound.output("y"));
  if (!(difference < 1e-5))
    throw InternalError(fmt::format("the results differ by {}", difference));

  Samples of_plain, of_streamed, of_region;
  const std::size_t calls = calls_for(plain, 0.02);
  for (int i = 0; i < rounds; ++i) {
    of_plain.seconds.push_back(seconds_per_call(plain, calls));
    of_region.seconds.push_back(seconds_per_call(region, calls));
    of_streamed.seconds.push_back(seconds_per_call(streamed, calls));
  }
  const Ratio ratio = paired_ratio(of_region, of_plain);
  const Ratio streamed_ratio = paired_ratio(of_region, of_streamed);
  fmt::print("{:>9} {:>7} {:>10.2f} {:>10.2f} {:>10.2f}   {:.2f} [{:.2f}, {:.2f}]   {:.2f}\n", n,
             threads, of_plain.best() * 1e6, of_streamed.best() * 1e6, of_region.best() * 1e6,
             ratio.median, ratio.low, ratio.high, streamed_ratio.median);
  std::fflush(stdout);
}

int run(int argc, char** argv) {
  CLI::App app("Elementwise regions against hand-fused loops, float32");
  int rounds = 31;
  app.add_option("--rounds", rounds, "samples of each, interleaved");
  CLI11_PARSE(app, argc, argv);
  fmt::print("y = gelu(x·a + b)·c + r, float32; best times in µs, ratios as median [quartiles]\n");
  fmt::print("{:>9} {:>7} {:>10} {:>10} {:>10}   {}   {}\n", "elements", "threads", "by hand",
             "streamed", "region", "region / by hand", "/ streamed");
  for (const std::int64_t n : {std::int64_t{10000}, std::int64_t{16} << 20}) {
    for (const int threads : {1, 2}) compare(n, threads, rounds);
  }
  return 0;
}

}  // namespace
}  // namespace rlx::bench

int main(int argc, char** argv) { return rlx::bench::run(argc, argv); }
#endif
