#include "backends/cpu/gemm_f64.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "base/cpu_features.h"

namespace rlx::cpu {
namespace {

std::vector<double> random_doubles(std::size_t count, unsigned seed) {
  std::mt19937_64 bits(seed);
  std::uniform_real_distribution<double> uniform(-1, 1);
  std::vector<double> values(count);
  for (double& v : values) v = uniform(bits);
  return values;
}

class GemmF64 : public testing::TestWithParam<CpuLevel> {
 protected:
  void SetUp() override {
    if (GetParam() > detected_cpu_level()) GTEST_SKIP() << "this machine lacks it";
    force_cpu_level(GetParam());
  }
  void TearDown() override { force_cpu_level(std::nullopt); }

  static std::vector<double> run(Gemm64Args g, std::size_t outputs, int threads) {
    ThreadPool pool(threads);
    std::vector<double> scratch(gemm_f64_scratch_bytes(g, threads) / sizeof(double) + 1);
    std::vector<double> c(outputs, NAN);  // an element left unwritten shows
    g.scratch = scratch.data();
    g.c = c.data();
    gemm_f64(g, pool);
    return c;
  }
};

TEST_P(GemmF64, AgreesWithReference) {
  constexpr long double kUnit = 0x1p-53L;
  for (std::size_t m : {0, 1, 3, 4, 9, 70}) {
    for (std::size_t n : {0, 1, 7, 16, 17, 40}) {
      for (std::size_t k : {0, 1, 2, 33}) {
        for (bool transposed : {false, true}) {
          const std::size_t batch = 3;
          const auto a = random_doubles(batch * m * k + 1, 1);
          const auto b = random_doubles(batch * k * n + 1, 2);
          Gemm64Args g;
          g.m = m, g.n = n, g.k = k, g.batch = batch;
          g.a = a.data(), g.lda = k, g.a_batch = m * k;
          g.b = b.data(), g.b_batch = k * n;
          g.b_row_stride = transposed ? 1 : n, g.b_col_stride = transposed ? k : 1;
          g.ldc = n, g.c_batch = m * n;
          const auto c = run(g, batch * m * n, 2);
          for (std::size_t at = 0; at < c.size(); ++at) {
            const std::size_t p = at / (m * n), i = at / n % m, j = at % n;
            long double sum = 0, terms = 0;
            for (std::size_t l = 0; l < k; ++l) {
              const long double term = static_cast<long double>(a[(p * m + i) * k + l]) *
                                       b[p * k * n + l * g.b_row_stride + j * g.b_col_stride];
              sum += term;
              terms += std::abs(term);
            }
            ASSERT_LE(std::abs(c[at] - sum), (k + 4) * kUnit * terms) << m << " " << n << " " << k;
          }
        }
      }
    }
  }
}

TEST_P(GemmF64, SameBitsForAnyThreadCountAndForARowAlone) {
  const std::size_t m = 90, n = 70, k = 120;
  const auto a = random_doubles(m * k, 3), b = random_doubles(k * n, 4);
  Gemm64Args g;
  g.m = m, g.n = n, g.k = k;
  g.a = a.data(), g.lda = k, g.b = b.data(), g.b_row_stride = n, g.ldc = n;
  const auto one = run(g, m * n, 1);
  for (int threads : {2, 4}) EXPECT_EQ(run(g, m * n, threads), one) << threads;
  g.m = 1;
  g.a = a.data() + 37 * k;
  const auto row = run(g, n, 2);
  EXPECT_EQ(std::memcmp(row.data(), &one[37 * n], n * sizeof(double)), 0);
}

INSTANTIATE_TEST_SUITE_P(Cpu, GemmF64, testing::ValuesIn(kCpuLevels),
                         [](const auto& info) { return std::string(name(info.param)); });

}  // namespace
}  // namespace rlx::cpu
