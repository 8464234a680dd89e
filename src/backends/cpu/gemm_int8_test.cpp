#include "backends/cpu/gemm_int8.h"

#include <gtest/gtest.h>

#include <memory>
#include <random>
#include <string>
#include <vector>

namespace rlx::cpu {
namespace {

constexpr std::int32_t kUnwritten = 0x5A5A5A5A;

std::vector<std::uint8_t> random_bytes(std::size_t count, unsigned seed) {
  std::mt19937 bits(seed);
  std::vector<std::uint8_t> bytes(count);
  for (auto& b : bytes) b = static_cast<std::uint8_t>(bits());
  return bytes;
}

struct Buffer {
  explicit Buffer(std::size_t bytes)
      : at(std::aligned_alloc(64, (bytes + 64) / 64 * 64), std::free) {}
  std::unique_ptr<void, void (*)(void*)> at;
};

int value_of(std::uint8_t bits, bool is_signed) {
  return is_signed ? static_cast<std::int8_t>(bits) : bits;
}

struct Case {
  std::size_t m, n, k;
  bool a_signed, b_signed;
  std::int32_t a_zero = 0, b_zero = 0;
  std::vector<std::int32_t> column_zeros = {};
  std::vector<std::uint8_t> a = {}, b = {};
  std::vector<std::int32_t> c = {};

  std::size_t lda() const { return k + 3; }
  std::size_t ldc() const { return n + 5; }

  void fill(unsigned seed) {
    a = random_bytes(m * lda() + 1, seed);
    b = random_bytes(k * n + 1, seed + 1);
  }

  /// `transposed` stores B as [N,K].
  void run(ThreadPool& pool, bool transposed = false) {
    c.assign(m * ldc() + 1, kUnwritten);
    std::vector<std::uint8_t> stored = b;
    for (std::size_t i = 0; transposed && i < k; ++i) {
      for (std::size_t j = 0; j < n; ++j) stored[j * k + i] = b[i * n + j];
    }
    Int8GemmArgs g;
    g.m = m, g.n = n, g.k = k;
    g.a = a.data(), g.lda = lda(), g.a_signed = a_signed, g.a_zero = a_zero;
    g.layout = packed_int8_b(k, n);
    const Buffer packed(g.layout.bytes());
    pack_int8_b(g.layout, {stored.data(), b_signed, transposed ? 1 : n, transposed ? k : 1},
                packed.at.get(), pool);
    g.packed = packed.at.get();
    g.b_signed = b_signed, g.b_zero = b_zero;
    g.b_zero_of_column = column_zeros.empty() ? nullptr : column_zeros.data();
    g.c = c.data(), g.ldc = ldc();
    const Buffer scratch(int8_gemm_scratch_bytes(g, pool.threads()));
    g.scratch = scratch.at.get();
    int8_gemm(g, pool);
  }

  std::vector<std::int32_t> expected() const {
    std::vector<std::int32_t> want(m * ldc() + 1, kUnwritten);
    for (std::size_t i = 0; i < m; ++i) {
      for (std::size_t j = 0; j < n; ++j) {
        const std::int64_t zero = column_zeros.empty() ? b_zero : column_zeros[j];
        std::int64_t sum = 0;
        for (std::size_t l = 0; l < k; ++l) {
          sum += (value_of(a[i * lda() + l], a_signed) - std::int64_t{a_zero}) *
                 (value_of(b[l * n + j], b_signed) - zero);
        }
        want[i * ldc() + j] = static_cast<std::int32_t>(sum);
      }
    }
    return want;
  }
};

class Int8Gemm : public testing::TestWithParam<CpuLevel> {
 protected:
  void SetUp() override {
    if (GetParam() > detected_cpu_level()) GTEST_SKIP() << "this machine lacks it";
    force_cpu_level(GetParam());
  }
  void TearDown() override { force_cpu_level(std::nullopt); }

  ThreadPool pool_{2};
};

TEST_P(Int8Gemm, IsExactOverExtentsAndSigns) {
  unsigned seed = 1;
  for (std::size_t m : {0, 1, 4, 13, 14, 15, 29}) {
    for (std::size_t n : {0, 1, 15, 16, 17, 33, 70}) {
      for (std::size_t k : {0, 1, 2, 3, 4, 5, 31, 64, 130}) {
        Case c{m, n, k, (seed & 1) != 0, (seed & 2) != 0};
        c.fill(++seed);
        c.run(pool_, (seed & 4) != 0);
        ASSERT_EQ(c.c, c.expected()) << m << " " << n << " " << k;
      }
    }
  }
}

TEST_P(Int8Gemm, ZeroPoints) {
  for (int signs = 0; signs < 4; ++signs) {
    Case c{17, 40, 75, (signs & 1) != 0, (signs & 2) != 0};
    c.fill(5);
    c.a_zero = 113;
    c.b_zero = -7;
    c.run(pool_);
    EXPECT_EQ(c.c, c.expected()) << signs;
    for (int j = 0; j < 40; ++j) c.column_zeros.push_back(j * 5 - 100);
    c.run(pool_);
    EXPECT_EQ(c.c, c.expected()) << signs;
  }
}

// Products of extremes overflow 16 bits in pairs: a saturating shortcut would show.
TEST_P(Int8Gemm, ExtremesDoNotSaturate) {
  for (int signs = 0; signs < 4; ++signs) {
    for (std::uint8_t x : {0x7F, 0x80, 0xFF}) {
      for (std::uint8_t y : {0x7F, 0x80, 0xFF}) {
        Case c{3, 20, 1001, (signs & 1) != 0, (signs & 2) != 0};
        c.fill(1);
        std::fill(c.a.begin(), c.a.end(), x);
        std::fill(c.b.begin(), c.b.end(), y);
        c.run(pool_);
        ASSERT_EQ(c.c, c.expected()) << signs << " " << int(x) << " " << int(y);
      }
    }
  }
}

TEST_P(Int8Gemm, SameForAnyThreadCount) {
  for (std::size_t m : {1, 9, 130}) {
    Case c{m, 300, 200, true, true};
    c.b_zero = 3;
    c.fill(9);
    const auto want = c.expected();
    for (int threads : {1, 2, 4}) {
      ThreadPool pool(threads);
      c.run(pool);
      EXPECT_EQ(c.c, want) << m << " threads " << threads;
    }
  }
}

TEST_P(Int8Gemm, Batches) {
  const std::size_t m = 6, n = 35, k = 50, batch = 5;
  const auto a = random_bytes(batch * m * k, 1), b = random_bytes(batch * k * n, 2);
  Int8GemmArgs g;
  g.m = m, g.n = n, g.k = k, g.batch = batch;
  g.layout = packed_int8_b(k, n);
  g.b_batch = (g.layout.bytes() + 63) / 64 * 64;
  const Buffer packed(batch * g.b_batch);
  for (std::size_t i = 0; i < batch; ++i) {
    pack_int8_b(g.layout, {b.data() + i * k * n, true, n, 1},
                static_cast<char*>(packed.at.get()) + i * g.b_batch, pool_);
  }
  g.packed = packed.at.get();
  g.a = a.data(), g.lda = k, g.a_batch = m * k;
  std::vector<std::int32_t> c(batch * m * n, kUnwritten);
  g.c = c.data(), g.ldc = n, g.c_batch = m * n;
  const Buffer scratch(int8_gemm_scratch_bytes(g, pool_.threads()));
  g.scratch = scratch.at.get();
  int8_gemm(g, pool_);
  for (std::size_t i = 0; i < batch * m; ++i) {
    for (std::size_t j = 0; j < n; ++j) {
      std::int32_t want = 0;
      for (std::size_t l = 0; l < k; ++l) {
        want += a[i * k + l] * static_cast<std::int8_t>(b[(i / m * k + l) * n + j]);
      }
      ASSERT_EQ(c[i * n + j], want) << i << " " << j;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Cpu, Int8Gemm, testing::ValuesIn(kCpuLevels),
                         [](const auto& info) { return std::string(name(info.param)); });

}  // namespace
}  // namespace rlx::cpu
