#pragma once

#include <cmath>
#include <complex>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "rlx/ops.h"

namespace rlx {

// What reductions and scans do to the wide types of HostArray. Integers wrap modulo 2^64 and, as
// the result is rounded, modulo the dtype's range.

/// The least value of the dtype.
template <class T>
T lowest(DType dtype) {
  if constexpr (std::is_same_v<T, double>) {
    return -std::numeric_limits<double>::infinity();
  } else if constexpr (std::is_signed_v<T>) {
    return static_cast<T>(~std::uint64_t{0} << (traits(dtype).bits - 1));
  } else {
    return 0;
  }
}

/// The greatest value of the dtype.
template <class T>
T highest(DType dtype) {
  if constexpr (std::is_same_v<T, double>) {
    return std::numeric_limits<double>::infinity();
  } else {
    return static_cast<T>(~std::uint64_t{0} >>
                          (64 - traits(dtype).bits + (std::is_signed_v<T> ? 1 : 0)));
  }
}

/// The result of no elements; a mean starts as a sum.
template <class T>
T identity(Reduction kind, DType dtype) {
  if constexpr (!std::is_same_v<T, std::complex<double>>) {
    if (kind == Reduction::max) return lowest<T>(dtype);
    if (kind == Reduction::min) return highest<T>(dtype);
  }
  return kind == Reduction::prod ? T(1) : T(0);
}

/// The greater or the lesser, NaN if either is.
template <class T>
T extreme(bool greater, T a, T b) {
  if constexpr (std::is_same_v<T, double>) {
    if (std::isnan(a)) return a;
    if (a == b) return std::signbit(a) == greater ? b : a;  // 0 is above -0
  }
  return (greater ? a > b : a < b) ? a : b;
}

/// One step of a reduction.
template <class T>
T combine(Reduction kind, T total, T x) {
  if constexpr (!std::is_same_v<T, std::complex<double>>) {
    if (kind == Reduction::max || kind == Reduction::min)
      return extreme(kind == Reduction::max, total, x);
  }
  if constexpr (std::is_integral_v<T>) {
    const auto a = static_cast<std::uint64_t>(total);
    const auto b = static_cast<std::uint64_t>(x);
    return static_cast<T>(kind == Reduction::prod ? a * b : a + b);
  } else {
    return kind == Reduction::prod ? total * x : total + x;
  }
}

}  // namespace rlx
