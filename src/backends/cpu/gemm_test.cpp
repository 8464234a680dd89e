#include "backends/cpu/gemm.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <memory>
#include <random>
#include <vector>

namespace rlx::cpu {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr double kUnit = 0x1p-24;  // rounding unit of float32

std::vector<float> random_floats(std::size_t count, unsigned seed) {
  std::mt19937 bits(seed);
  std::uniform_real_distribution<float> uniform(-1, 1);
  std::vector<float> values(count);
  for (float& v : values) v = uniform(bits);
  return values;
}

/// Memory aligned to 64 bytes, filled with NaN so that an element left unwritten shows.
class Aligned {
 public:
  explicit Aligned(std::size_t bytes)
      : floats_(static_cast<float*>(std::aligned_alloc(64, (bytes + 64) / 64 * 64)), std::free) {
    std::fill_n(floats_.get(), bytes / sizeof(float), NAN);
  }
  float* get() { return floats_.get(); }

 private:
  std::unique_ptr<float, void (*)(void*)> floats_;
};

double activated(Activation activation, double x) {
  const double tanh_argument = std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x);
  switch (activation) {
    case Activation::kNone:
      return x;
    case Activation::kRelu:
      return x < 0 ? 0 : x;
    case Activation::kGeluErf:
      return x / 2 * std::erfc(-x / std::sqrt(2));
    case Activation::kGeluTanh:
      return x / (1 + std::exp(-2 * tanh_argument));
    case Activation::kSilu:
      return x / (1 + std::exp(-x));
    case Activation::kSigmoid:
      return 1 / (1 + std::exp(-x));
    case Activation::kTanh:
      return std::tanh(x);
  }
  return NAN;
}

double clamped(const Epilogue& e, double x) {
  if (x < e.clamp_low) return e.clamp_low;
  return x > e.clamp_high ? e.clamp_high : x;
}

/// A GEMM problem with operands of its own; leading dimensions leave gaps that must stay NaN.
struct Case {
  std::size_t m, n, k;
  Epilogue epilogue = {};
  bool bias = false;
  bool residual = false;
  std::vector<float> a = {}, b = {}, bias_values = {}, residual_values = {}, c = {};

  std::size_t lda() const { return k + 3; }
  std::size_t ldc() const { return n + 5; }

  void fill(unsigned seed) {
    a = random_floats(m * lda() + 1, seed);
    b = random_floats(k * n + 1, seed + 1);
    bias_values = random_floats(n + 1, seed + 2);
    residual_values = random_floats(m * (n + 2) + 1, seed + 3);
    c.assign(m * ldc() + 1, NAN);
    epilogue.bias = bias ? bias_values.data() : nullptr;
    epilogue.residual = residual ? residual_values.data() : nullptr;
    epilogue.residual_ld = n + 2;
  }

  GemmArgs args() {
    GemmArgs g;
    g.m = m, g.n = n, g.k = k;
    g.a = a.data(), g.lda = lda();
    g.b = {b.data(), n, 1, DType::f32};
    g.c = c.data(), g.ldc = ldc();
    g.epilogue = epilogue;
    return g;
  }

  void run(ThreadPool& pool) {
    GemmArgs g = args();
    Aligned scratch(gemm_scratch_bytes(g, pool.threads()));
    g.scratch = scratch.get();
    gemm(g, pool);
  }

  void run_packed(ThreadPool& pool) {
    GemmArgs g = args();
    g.layout = packed_b(k, n);
    Aligned packed(g.layout.bytes());
    pack_b(g.layout, g.b, packed.get(), pool);
    g.packed = packed.get();
    Aligned scratch(gemm_scratch_bytes(g, pool.threads()));
    g.scratch = scratch.get();
    gemm(g, pool);
  }

  /// The result in double and a bound of its error in float32.
  std::pair<double, double> reference(std::size_t i, std::size_t j) const {
    double sum = 0, terms = 0;
    for (std::size_t l = 0; l < k; ++l) {
      const double term = double(a[i * lda() + l]) * double(b[l * n + j]);
      sum += term;
      terms += std::abs(term);
    }
    double x = double(epilogue.alpha) * sum + (bias ? double(bias_values[j]) : 0.0);
    terms = std::abs(epilogue.alpha) * terms + (bias ? std::abs(bias_values[j]) : 0.0);
    const double r = residual ? double(residual_values[i * (n + 2) + j]) : 0.0;
    terms += std::abs(r);
    if (epilogue.activation_after_residual) x += r;
    x = clamped(epilogue, activated(epilogue.activation, x));
    if (!epilogue.activation_after_residual) x += r;
    // No activation here is steeper than 1.13; its own error is at most 4 units of |x|.
    return {x, 1.13 * double(k + 4) * kUnit * terms + 5 * kUnit * std::abs(x)};
  }

  void expect_right(const std::string& what) const {
    int wrong = 0;
    for (std::size_t i = 0; i < m && wrong < 3; ++i) {
      for (std::size_t j = 0; j < n; ++j) {
        const auto [want, bound] = reference(i, j);
        const double got = c[i * ldc() + j];
        if (std::abs(got - want) <= bound) continue;
        ADD_FAILURE() << what << " m " << m << " n " << n << " k " << k << ": [" << i << "," << j
                      << "] is " << got << ", expected " << want << " within " << bound;
        if (++wrong == 3) break;
      }
      for (std::size_t j = n; j < ldc(); ++j) ASSERT_TRUE(std::isnan(c[i * ldc() + j])) << what;
    }
  }
};

bool same_bits(const std::vector<float>& x, const std::vector<float>& y) {
  return x.size() == y.size() && std::memcmp(x.data(), y.data(), x.size() * sizeof(float)) == 0;
}

class Gemm : public testing::TestWithParam<CpuLevel> {
 protected:
  void SetUp() override {
    if (GetParam() > detected_cpu_level()) GTEST_SKIP() << "this machine lacks it";
    force_cpu_level(GetParam());
  }
  void TearDown() override { force_cpu_level(std::nullopt); }

  ThreadPool pool_{2};
};

TEST_P(Gemm, AgreesWithReferenceOverExtents) {
  for (std::size_t m : {0, 1, 2, 5, 7, 13, 14, 15, 29, 130}) {
    for (std::size_t n : {0, 1, 3, 15, 16, 17, 31, 32, 33, 65, 96}) {
      for (std::size_t k : {0, 1, 2, 3, 4, 5, 17, 64, 131}) {
        Case c{m, n, k};
        c.bias = (m + n + k) % 2 == 0;
        c.fill(static_cast<unsigned>(m * 10007 + n * 101 + k));
        c.run_packed(pool_);
        c.expect_right("packed");
      }
    }
  }
}

TEST_P(Gemm, AgreesWithReferenceAcrossBlocks) {
  const std::size_t shapes[][3] = {{1, 40, 2500}, {3, 33, 1025}, {113, 35, 1030}, {230, 70, 20}};
  for (const auto& [m, n, k] : shapes) {
    Case c{m, n, k};
    c.bias = true;
    c.residual = true;
    c.fill(7);
    c.run_packed(pool_);
    c.expect_right("packed");
  }
}

TEST_P(Gemm, EveryEpilogue) {
  for (int a = 0; a <= static_cast<int>(Activation::kTanh); ++a) {
    for (int options = 0; options < 16; ++options) {
      Case c{19, 37, 23};
      c.bias = options & 1;
      c.residual = options & 2;
      c.epilogue.activation = static_cast<Activation>(a);
      c.epilogue.activation_after_residual = options & 4;
      if (options & 8) {
        c.epilogue.alpha = 0.37F;
        c.epilogue.clamp_low = -0.25F;
        c.epilogue.clamp_high = 0.75F;
      }
      c.fill(static_cast<unsigned>(a * 16 + options));
      c.run_packed(pool_);
      c.expect_right("activation " + std::to_string(a) + " options " + std::to_string(options));
    }
  }
}

TEST_P(Gemm, PlainBGivesTheSameBits) {
  for (const auto& [m, n, k] : {std::array<std::size_t, 3>{1, 50, 70}, {40, 50, 1100}}) {
    Case packed{m, n, k}, plain{m, n, k};
    packed.fill(3);
    plain.fill(3);
    packed.run_packed(pool_);
    plain.run(pool_);
    EXPECT_TRUE(same_bits(packed.c, plain.c)) << m;
  }
}

TEST_P(Gemm, ResidualMayBeTheOutput) {
  for (std::size_t k : {40, 2100}) {
    Case apart{30, 45, k}, in_place{30, 45, k};
    apart.residual = true;
    apart.epilogue.activation = Activation::kGeluErf;
    in_place.epilogue.activation = Activation::kGeluErf;
    apart.fill(5);
    in_place.fill(5);
    for (std::size_t i = 0; i < 30; ++i) {
      std::copy_n(&apart.residual_values[i * 47], 45, &in_place.c[i * in_place.ldc()]);
    }
    in_place.epilogue.residual = in_place.c.data();
    in_place.epilogue.residual_ld = in_place.ldc();
    apart.run_packed(pool_);
    in_place.run_packed(pool_);
    EXPECT_TRUE(same_bits(apart.c, in_place.c)) << "k " << k;
  }
}

TEST_P(Gemm, SameBitsForAnyThreadCount) {
  for (const auto& [m, n, k] :
       {std::array<std::size_t, 3>{1, 700, 300}, {9, 700, 300}, {130, 200, 1500}, {65, 31, 900}}) {
    Case one{m, n, k}, two{m, n, k}, four{m, n, k};
    ThreadPool pool1(1), pool4(4);
    for (Case* c : {&one, &two, &four}) {
      c->bias = true;
      c->epilogue.activation = Activation::kGeluErf;
      c->fill(11);
    }
    one.run_packed(pool1);
    two.run_packed(pool_);
    four.run_packed(pool4);
    EXPECT_TRUE(same_bits(one.c, two.c)) << m;
    EXPECT_TRUE(same_bits(one.c, four.c)) << m;
  }
}

TEST_P(Gemm, RowAloneEqualsRowInBatch) {
  for (std::size_t k : {50, 1700}) {
    Case all{120, 77, k};
    all.bias = true;
    all.epilogue.activation = Activation::kSilu;
    all.fill(13);
    all.run_packed(pool_);
    for (std::size_t rows : {1, 2, 3, 8, 14, 60}) {
      for (std::size_t first : {0, 59}) {
        Case some{rows, 77, k};
        some.bias = true;
        some.epilogue.activation = Activation::kSilu;
        some.fill(13);
        some.a.assign(all.a.begin() + first * all.lda(), all.a.end());
        some.b = all.b;
        some.bias_values = all.bias_values;
        some.epilogue.bias = some.bias_values.data();
        some.run_packed(pool_);
        EXPECT_EQ(std::memcmp(some.c.data(), &all.c[first * all.ldc()],
                              ((rows - 1) * all.ldc() + all.n) * sizeof(float)),
                  0)
            << "rows " << rows << " k " << k;
      }
    }
  }
}

TEST_P(Gemm, PacksEveryOrientationAndDtype) {
  const std::size_t k = 70, n = 45;
  // Values that bf16 and f16 hold exactly.
  std::vector<float> values(k * n);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = float(int(i * 7 % 255) - 127) / 64;
  const auto bf16_bits = [](float x) {
    std::uint32_t bits;
    std::memcpy(&bits, &x, sizeof bits);
    return static_cast<std::uint16_t>(bits >> 16);
  };
  const auto f16_bits = [](float x) {  // normal values only
    if (x == 0) return std::uint16_t{0};
    std::uint32_t bits;
    std::memcpy(&bits, &x, sizeof bits);
    return static_cast<std::uint16_t>((bits >> 16 & 0x8000) | ((bits >> 13 & 0x3FFFF) - 0x1C000));
  };
  struct Order {
    std::size_t row, col;
  };
  const PackedB layout = packed_b(k, n);
  Aligned want(layout.bytes());
  pack_b(layout, {values.data(), n, 1, DType::f32}, want.get(), pool_);
  for (std::size_t p = 0; p < layout.panels(); ++p) {
    for (std::size_t i = 0; i < k; ++i) {
      for (std::size_t j = 0; j < layout.width(p); ++j) {
        const std::size_t column = p * layout.panel + j;
        ASSERT_EQ(want.get()[p * layout.panel * k + i * layout.width(p) + j],
                  column < n ? values[i * n + column] : 0.0F);
      }
    }
  }
  for (const Order order : {Order{n, 1}, Order{1, k}, Order{2 * n, 2}, Order{3, 3 * k + 1}}) {
    std::vector<float> f(k * n * 6 + 100);
    std::vector<std::uint16_t> bf(f.size()), h(f.size());
    for (std::size_t i = 0; i < k; ++i) {
      for (std::size_t j = 0; j < n; ++j) {
        const std::size_t at = i * order.row + j * order.col;
        f[at] = values[i * n + j];
        bf[at] = bf16_bits(f[at]);
        h[at] = f16_bits(f[at]);
      }
    }
    const std::pair<const void*, DType> sources[] = {
        {f.data(), DType::f32}, {bf.data(), DType::bf16}, {h.data(), DType::f16}};
    for (const auto& [source, dtype] : sources) {
      Aligned got(layout.bytes());
      pack_b(layout, {source, order.row, order.col, dtype}, got.get(), pool_);
      EXPECT_EQ(std::memcmp(got.get(), want.get(), layout.bytes()), 0)
          << name(dtype) << " strides " << order.row << " " << order.col;
    }
  }
}

TEST_P(Gemm, HalfStorageOfAEqualsItsFloats) {
  Case floats{37, 50, 1200};
  floats.fill(17);
  std::vector<std::uint16_t> half(floats.a.size());
  for (std::size_t i = 0; i < half.size(); ++i) {
    std::uint32_t bits;
    std::memcpy(&bits, &floats.a[i], sizeof bits);
    half[i] = static_cast<std::uint16_t>(bits >> 16);
    bits &= 0xFFFF0000;
    std::memcpy(&floats.a[i], &bits, sizeof bits);
  }
  Case halves = floats;
  floats.run_packed(pool_);
  GemmArgs g = halves.args();
  g.a = half.data();
  g.a_dtype = DType::bf16;
  Aligned scratch(gemm_scratch_bytes(g, pool_.threads()));
  g.scratch = scratch.get();
  gemm(g, pool_);
  EXPECT_TRUE(same_bits(floats.c, halves.c));
}

TEST_P(Gemm, BatchesWithStridesAndSharedOperands) {
  const std::size_t m = 9, n = 35, k = 33;
  for (std::size_t batch : {1, 2, 5}) {
    for (bool share_b : {false, true}) {
      const auto a = random_floats(batch * m * k, 1), b = random_floats(batch * k * n, 2);
      std::vector<float> together(batch * m * n, NAN), single(batch * m * n, NAN);
      GemmArgs g;
      g.m = m, g.n = n, g.k = k, g.batch = batch;
      g.a = a.data(), g.lda = k, g.a_batch = m * k;
      g.b = {b.data(), n, 1, DType::f32};
      g.b_batch = share_b ? 0 : k * n;
      g.c = together.data(), g.ldc = n, g.c_batch = m * n;
      Aligned scratch(gemm_scratch_bytes(g, pool_.threads()));
      g.scratch = scratch.get();
      gemm(g, pool_);
      g.batch = 1;
      for (std::size_t i = 0; i < batch; ++i) {
        g.a = a.data() + i * m * k;
        g.b.data = b.data() + i * g.b_batch;
        g.c = single.data() + i * m * n;
        gemm(g, pool_);
      }
      EXPECT_TRUE(same_bits(together, single)) << batch << share_b;
    }
  }
}

TEST_P(Gemm, SpecialValues) {
  for (int a = 0; a <= static_cast<int>(Activation::kTanh); ++a) {
    Case c{4, 3, 2};
    c.epilogue.activation = static_cast<Activation>(a);
    c.epilogue.clamp_low = -10;
    c.fill(1);
    std::fill(c.b.begin(), c.b.end(), 1.0F);
    const float rows[4][2] = {{NAN, 1}, {kInfinity, 1}, {-kInfinity, kInfinity}, {-kInfinity, 1}};
    for (int i = 0; i < 4; ++i) std::copy_n(rows[i], 2, &c.a[i * c.lda()]);
    c.run_packed(pool_);
    for (std::size_t j = 0; j < 3; ++j) {
      EXPECT_TRUE(std::isnan(c.c[j])) << a;
      const float top = a >= static_cast<int>(Activation::kSigmoid) ? 1.0F : kInfinity;
      EXPECT_EQ(c.c[c.ldc() + j], top) << a;
      EXPECT_TRUE(std::isnan(c.c[2 * c.ldc() + j])) << a;
    }
  }
}

TEST_P(Gemm, EmptySumIsTheEpilogueOfZero) {
  Case c{3, 20, 0};
  c.bias = true;
  c.epilogue.activation = Activation::kRelu;
  c.fill(1);
  c.run_packed(pool_);
  for (std::size_t j = 0; j < 20; ++j) EXPECT_EQ(c.c[j], std::max(0.0F, c.bias_values[j]));
}

INSTANTIATE_TEST_SUITE_P(Cpu, Gemm, testing::ValuesIn(kCpuLevels),
                         [](const auto& info) { return std::string(name(info.param)); });

}  // namespace
}  // namespace rlx::cpu
