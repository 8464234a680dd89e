#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <thread>
#include <vector>

namespace rlx::bench {

using Clock = std::chrono::steady_clock;

inline double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

/// Seconds of each call of `f`, measured over `calls` calls.
template <class F>
double seconds_per_call(F&& f, std::size_t calls) {
  const auto start = Clock::now();
  for (std::size_t i = 0; i < calls; ++i) f();
  return seconds_since(start) / static_cast<double>(calls);
}

/// How many calls of `f` fill `seconds`, at least 1.
template <class F>
std::size_t calls_for(F&& f, double seconds) {
  f();
  std::size_t calls = 1;
  for (;; calls *= 2) {
    const double each = seconds_per_call(f, calls);
    if (each * static_cast<double>(calls) >= seconds / 4) {
      return std::max<std::size_t>(1, static_cast<std::size_t>(seconds / each));
    }
  }
}

inline double quantile(std::vector<double> values, double q) {
  std::sort(values.begin(), values.end());
  const double at = q * static_cast<double>(values.size() - 1);
  const auto low = static_cast<std::size_t>(at);
  const std::size_t high = std::min(low + 1, values.size() - 1);
  return values[low] + (at - static_cast<double>(low)) * (values[high] - values[low]);
}

/// One contestant's samples, in seconds per call.
struct Samples {
  std::vector<double> seconds;
  double best() const { return *std::min_element(seconds.begin(), seconds.end()); }
};

/// Medians and quartiles of a[i] / b[i].
struct Ratio {
  double low, median, high;
};

inline Ratio paired_ratio(const Samples& a, const Samples& b) {
  std::vector<double> ratios;
  for (std::size_t i = 0; i < a.seconds.size(); ++i) {
    ratios.push_back(a.seconds[i] / b.seconds[i]);
  }
  return {quantile(ratios, 0.25), quantile(ratios, 0.5), quantile(ratios, 0.75)};
}

/// Lets the threads of the contestant before, which may still spin for work, go to sleep: libgomp's
/// spin for some 15 ms, and would take a processor from whoever is measured next.
inline void let_spinners_park(int threads) {
  std::this_thread::sleep_for(std::chrono::milliseconds(threads > 1 ? 40 : 1));
}

}  // namespace rlx::bench
