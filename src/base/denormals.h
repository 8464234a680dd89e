#pragma once

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace rlx {

/// The calling thread's floating-point control state: rounding, FTZ and DAZ.
inline unsigned float_control() noexcept {
#if defined(__x86_64__)
  return _mm_getcsr() & ~0x3FU;  // without the sticky exception flags
#else
  return 0;
#endif
}

inline void set_float_control([[maybe_unused]] unsigned control) noexcept {
#if defined(__x86_64__)
  _mm_setcsr(control);
#endif
}

/// While alive, the calling thread flushes denormal results to zero (FTZ) and reads denormal
/// operands as zero (DAZ), unless `keep_denormals`. Restores the state on destruction.
/// `parallel_for` gives each of its threads the caller's state, so one guard covers a run.
class FlushDenormals {
 public:
  explicit FlushDenormals(bool keep_denormals = false) noexcept : before_(float_control()) {
    constexpr unsigned kFlushToZero = 0x8000, kDenormalsAreZero = 0x0040;
    if (!keep_denormals) set_float_control(before_ | kFlushToZero | kDenormalsAreZero);
  }
  ~FlushDenormals() { set_float_control(before_); }
  FlushDenormals(const FlushDenormals&) = delete;
  FlushDenormals& operator=(const FlushDenormals&) = delete;

 private:
  unsigned before_;
};

}  // namespace rlx
