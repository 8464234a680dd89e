// float32 GEMM with packed weights against oneDNN (matmul primitive with reordered weights, and
// sgemm), contestants interleaved in one run. Times are best-of, ratios median and quartiles of the
// pairs. Shares are of this machine's FMA peak and read bandwidth, measured beside each shape.

#include <fmt/format.h>
#include <sys/mman.h>

#include <CLI/CLI.hpp>
#include <cmath>
#include <memory>
#include <random>
#include <string>

#include "backends/cpu/gemm.h"
#include "machine_peaks.h"
#include "measure.h"

#ifdef RLX_BENCH_ONEDNN
#include <omp.h>

#include <dnnl.hpp>
#endif

namespace rlx::bench {
namespace {

/// Pages for operands, large ones where the system gives them: weights are loaded so too.
class Pages {
 public:
  explicit Pages(std::size_t floats) : bytes_((floats * sizeof(float) + kHuge) / kHuge * kHuge) {
    base_ = static_cast<char*>(std::aligned_alloc(kHuge, bytes_));
    madvise(base_, bytes_, MADV_HUGEPAGE);
    std::fill_n(get(), bytes_ / sizeof(float), 0.0F);
  }
  ~Pages() { std::free(base_); }
  Pages(const Pages&) = delete;
  Pages& operator=(const Pages&) = delete;
  float* get() const { return reinterpret_cast<float*>(base_); }
  std::size_t bytes() const { return bytes_; }

 private:
  static constexpr std::size_t kHuge = 2 << 20;
  std::size_t bytes_;
  char* base_;
};

struct Shape {
  std::size_t m, n, k;
};

struct Problem {
  explicit Problem(Shape s)
      : shape(s), a(s.m * s.k), b(s.k * s.n), c(s.m * s.n), bias(s.n), other_c(s.m * s.n) {
    std::mt19937 bits(1);
    std::uniform_real_distribution<float> uniform(-1, 1);
    for (std::size_t i = 0; i < s.m * s.k; ++i) a.get()[i] = uniform(bits);
    for (std::size_t i = 0; i < s.k * s.n; ++i) b.get()[i] = uniform(bits);
    for (std::size_t i = 0; i < s.n; ++i) bias.get()[i] = uniform(bits);
  }
  Shape shape;
  Pages a, b, c, bias, other_c;
};

class Ours {
 public:
  Ours(const Problem& p, ThreadPool& pool, cpu::Activation activation)
      : pool_(pool), packed_(p.shape.k * (p.shape.n + 64)) {
    g_.m = p.shape.m, g_.n = p.shape.n, g_.k = p.shape.k;
    g_.a = p.a.get(), g_.lda = g_.k;
    g_.c = p.c.get(), g_.ldc = g_.n;
    g_.layout = cpu::packed_b(g_.k, g_.n);
    cpu::pack_b(g_.layout, {p.b.get(), g_.n, 1, DType::f32}, packed_.get(), pool);
    g_.packed = packed_.get();
    g_.epilogue.bias = p.bias.get();
    g_.epilogue.activation = activation;
    scratch_ = std::make_unique<Pages>(cpu::gemm_scratch_bytes(g_, pool.threads()) / sizeof(float));
    g_.scratch = scratch_->get();
  }
  void operator()() { cpu::gemm(g_, pool_); }
  const float* packed() const { return packed_.get(); }

 private:
  ThreadPool& pool_;
  Pages packed_;
  std::unique_ptr<Pages> scratch_;
  cpu::GemmArgs g_;
};

#ifdef RLX_BENCH_ONEDNN
class OneDnn {
 public:
  OneDnn(const Problem& p, cpu::Activation activation) : stream_(engine_) {
    using dnnl::memory;
    const auto [m, n, k] = p.shape;
    const auto dims = [](std::size_t x, std::size_t y) {
      return memory::dims{static_cast<dnnl_dim_t>(x), static_cast<dnnl_dim_t>(y)};
    };
    const auto f32 = memory::data_type::f32;
    const auto rows = memory::format_tag::ab;
    const memory::desc a_desc(dims(m, k), f32, rows), c_desc(dims(m, n), f32, rows);
    const memory::desc plain_b(dims(k, n), f32, rows), bias_desc(dims(1, n), f32, rows);
    const memory::desc any_b(dims(k, n), f32, memory::format_tag::any);
    dnnl::primitive_attr attr;
    if (activation == cpu::Activation::kGeluErf) {
      dnnl::post_ops ops;
      ops.append_eltwise(1, dnnl::algorithm::eltwise_gelu_erf, 0, 0);
      attr.set_post_ops(ops);
    }
    const dnnl::matmul::primitive_desc desc(dnnl::matmul::desc(a_desc, any_b, bias_desc, c_desc),
                                            attr, engine_);
    memory b(plain_b, engine_, p.b.get());
    weights_ = memory(desc.weights_desc(), engine_);
    dnnl::reorder(b, weights_).execute(stream_, b, weights_);
    stream_.wait();
    primitive_ = dnnl::matmul(desc);
    arguments_ = {{DNNL_ARG_SRC, memory(a_desc, engine_, p.a.get())},
                  {DNNL_ARG_WEIGHTS, weights_},
                  {DNNL_ARG_BIAS, memory(bias_desc, engine_, p.bias.get())},
                  {DNNL_ARG_DST, memory(c_desc, engine_, p.other_c.get())}};
  }
  void operator()() {
    primitive_.execute(stream_, arguments_);
    stream_.wait();
  }

 private:
  dnnl::engine engine_{dnnl::engine::kind::cpu, 0};
  dnnl::stream stream_;
  dnnl::memory weights_;
  dnnl::matmul primitive_;
  std::unordered_map<int, dnnl::memory> arguments_;
};

void check_equal(const Problem& p) {
  for (std::size_t i = 0; i < p.shape.m * p.shape.n; ++i) {
    const float ours = p.c.get()[i], theirs = p.other_c.get()[i];
    if (std::abs(ours - theirs) > 1e-4F * std::sqrt(float(p.shape.k)) + 1e-5F) {
      fmt::print("MISMATCH at {}: {} {}\n", i, ours, theirs);
      return;
    }
  }
}

#endif

struct Options {
  std::vector<int> threads = {1, 2};
  std::string filter;
  int samples = 30;
  double sample_ms = 4;
  bool gelu = false;
  bool sgemm = true;
};

void measure(Shape s, int threads, const Options& options) {
  ThreadPool& pool = ThreadPool::process();
  const ThreadLimit limit(threads);
  const Problem p(s);
  const auto activation = options.gelu ? cpu::Activation::kGeluErf : cpu::Activation::kNone;
  Ours ours(p, pool, activation);
  ours();
  const double budget = options.sample_ms / 1000;
  const std::size_t calls = calls_for(ours, budget);
  Samples our_samples, matmul_samples, sgemm_samples;
#ifdef RLX_BENCH_ONEDNN
  omp_set_num_threads(threads);
  OneDnn theirs(p, activation);
  theirs();
  check_equal(p);
  const auto sgemm = [&] {
    dnnl_sgemm('N', 'N', dnnl_dim_t(s.m), dnnl_dim_t(s.n), dnnl_dim_t(s.k), 1, p.a.get(),
               dnnl_dim_t(s.k), p.b.get(), dnnl_dim_t(s.n), 0, p.other_c.get(), dnnl_dim_t(s.n));
  };
  const std::size_t their_calls = calls_for(theirs, budget);
  const std::size_t sgemm_calls = calls_for(sgemm, budget);
#endif
  double peak = 0, bandwidth = 0;
  for (int i = 0; i < options.samples; ++i) {
    if (i % 10 == 0) {
      let_spinners_park(threads);
      peak = std::max(peak, fma_peak(pool));
      bandwidth = std::max(bandwidth, read_bandwidth(pool, ours.packed(), s.n * s.k * 4));
    }
    let_spinners_park(threads);
    ours();
    our_samples.seconds.push_back(seconds_per_call(ours, calls));
#ifdef RLX_BENCH_ONEDNN
    let_spinners_park(threads);
    theirs();
    matmul_samples.seconds.push_back(seconds_per_call(theirs, their_calls));
    if (!options.sgemm) continue;
    let_spinners_park(threads);
    sgemm();
    sgemm_samples.seconds.push_back(seconds_per_call(sgemm, sgemm_calls));
#endif
  }
  const double flop = 2.0 * double(s.m) * double(s.n) * double(s.k);
  const double best = our_samples.best();
  std::string line = fmt::format(
      "{:>18} {} {:9.1f} {:7.1f} {:5.1f}% {:6.1f} {:5.1f}%", fmt::format("{}x{}x{}", s.m, s.n, s.k),
      threads, best * 1e6, flop / best / 1e9, 100 * flop / best / peak,
      double(s.n * s.k * 4) / best / 1e9, 100 * double(s.n * s.k * 4) / best / bandwidth);
  for (const Samples* other : {&matmul_samples, &sgemm_samples}) {
    if (other->seconds.empty()) continue;
    const Ratio r = paired_ratio(*other, our_samples);
    line += fmt::format(" | {:5.1f}% {:4.2f} {:4.2f} [{:4.2f} {:4.2f}]",
                        100 * flop / other->best() / peak, other->best() / best, r.median, r.low,
                        r.high);
  }
  fmt::print("{}\n", line);
  std::fflush(stdout);
}

void measure_hand_off() {
  for (int threads = 2; threads <= ThreadPool::process().threads(); ++threads) {
    const ThreadLimit limit(threads);
    ThreadPool& pool = ThreadPool::process();
    const auto region = [&] {
      parallel_for(pool, static_cast<std::size_t>(threads), [](std::size_t) noexcept {});
    };
    for (int i = 0; i < 1000; ++i) region();
    std::vector<double> samples;
    for (int i = 0; i < 2000; ++i) samples.push_back(seconds_per_call(region, 50));
    fmt::print("empty region, {} threads: median {:.2f} µs, 99th {:.2f} µs\n", threads,
               quantile(samples, 0.5) * 1e6, quantile(samples, 0.99) * 1e6);
  }
}

std::vector<Shape> shapes() {
  std::vector<Shape> all;
  for (const auto& [n, k] : {std::pair<std::size_t, std::size_t>{384, 384},
                             {1536, 384},
                             {384, 1536},
                             {768, 768},
                             {3072, 768},
                             {768, 3072}}) {
    for (std::size_t m : {1, 8, 16, 128, 512}) all.push_back({m, n, k});
  }
  for (std::size_t s : {512, 1024, 2048}) all.push_back({s, s, s});
  return all;
}

void run(const Options& options) {
  fmt::print("level {}, {} threads available\n", name(cpu_level()),
             ThreadPool::process().threads());
  measure_hand_off();
  fmt::print(
      "peer columns: share of peak, best/best, median of pairs [quartiles]; above 1 RLX is faster\n"
      "{:>18} t {:>9} {:>7} {:>6} {:>6} {:>6}   matmul primitive              | sgemm\n",
      "MxNxK", "best µs", "GFLOP/s", "peak", "GB/s", "read");
  for (const Shape s : shapes()) {
    const std::string label = fmt::format("{}x{}x{}", s.m, s.n, s.k);
    if (!options.filter.empty() && label.find(options.filter) == std::string::npos) continue;
    for (int threads : options.threads) measure(s, threads, options);
  }
}

}  // namespace
}  // namespace rlx::bench

int main(int argc, char** argv) {
  rlx::bench::Options options;
  CLI::App app("float32 GEMM against oneDNN");
  app.add_option("--threads", options.threads, "thread counts")->delimiter(',');
  app.add_option("--filter", options.filter, "only shapes MxNxK that contain this");
  app.add_option("--samples", options.samples, "samples of each contestant");
  app.add_option("--sample-ms", options.sample_ms, "length of a sample in milliseconds");
  app.add_flag("--gelu", options.gelu, "fuse GELU into the store");
  app.add_flag("!--no-sgemm", options.sgemm, "leave out sgemm");
  CLI11_PARSE(app, argc, argv);
  rlx::bench::run(options);
}
