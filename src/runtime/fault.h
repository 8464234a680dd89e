#pragma once

#include <atomic>
#include <cstdint>

namespace rlx {

/// What a run's data did wrong: the lowest (step, element) wins, whichever thread comes first.
struct Fault {
  std::uint32_t step = UINT32_MAX;
  std::uint32_t kind = 0;  ///< an index of `FaultKind`
  std::uint64_t element = UINT64_MAX;
  std::int64_t value = 0;
  std::int64_t limit = 0;
};

enum class FaultKind : std::uint32_t { index_out_of_range, division_by_zero };

/// Collects faults from kernels. Rare, so a spin lock does.
class FaultSlot {
 public:
  void report(std::uint32_t step, FaultKind kind, std::uint64_t element, std::int64_t value,
              std::int64_t limit) noexcept {
    while (lock_.test_and_set(std::memory_order_acquire)) {
    }
    if (step < fault_.step || (step == fault_.step && element < fault_.element)) {
      fault_ = {step, static_cast<std::uint32_t>(kind), element, value, limit};
    }
    any_.store(true, std::memory_order_relaxed);
    lock_.clear(std::memory_order_release);
  }
  bool any() const noexcept { return any_.load(std::memory_order_relaxed); }
  const Fault& fault() const noexcept { return fault_; }
  void clear() noexcept {
    fault_ = {};
    any_.store(false, std::memory_order_relaxed);
  }

 private:
  std::atomic_flag lock_ = ATOMIC_FLAG_INIT;
  std::atomic<bool> any_ = false;
  Fault fault_;
};

}  // namespace rlx
