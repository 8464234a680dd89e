#include "base/thread_pool.h"

#include <algorithm>
#include <system_error>
#include <thread>

#include "base/check.h"
#include "base/denormals.h"
#include "base/os_cpu.h"

namespace rlx {
namespace {

constexpr int kSpins = 20'000;     // about a millisecond of pauses
constexpr int kCrowdedSpins = 50;  // where threads outnumber CPUs, spinning keeps others from work
constexpr int kMaxThreads = 1024;
constexpr std::size_t kCacheLine = 64;
constexpr std::uint32_t kStop = 0xFFFFFFFF;  // a ticket that ends a worker; others count regions

thread_local bool in_region = false;
thread_local int thread_limit = 0;

void pause() noexcept {
#if defined(__x86_64__)
  _mm_pause();
#endif
}

/// Waits until `word` is no longer `old` and returns its value: spins first, then parks.
std::uint32_t wait_for_change(const std::atomic<std::uint32_t>& word, std::uint32_t old,
                              int spins) noexcept {
  for (int spin = 0; spin < spins; ++spin) {
    const std::uint32_t now = word.load(std::memory_order_acquire);
    if (now != old) return now;
    pause();
  }
  word.wait(old, std::memory_order_acquire);
  return word.load(std::memory_order_acquire);
}

}  // namespace

/// `ticket` is written by the caller of a region, `done` by the worker: each on a line of its own.
struct ThreadPool::Worker {
  explicit Worker(std::size_t part) : part(part) {}

  const std::size_t part;
  std::thread thread;
  alignas(kCacheLine) std::atomic<std::uint32_t> ticket = 0;
  alignas(kCacheLine) std::atomic<std::uint32_t> done = 0;
};

ThreadPool& ThreadPool::process() {
  // Never destroyed: workers may outlive static destructors, and a forked child keeps the address.
  static ThreadPool* const pool = [] {
    on_fork([] { process().abandon_workers(); });
    return new ThreadPool(available_cpus());
  }();
  return *pool;
}

ThreadPool::ThreadPool(int threads) : size_(std::min(threads, kMaxThreads)), spins_(kSpins) {
  RLX_ASSERT(threads >= 1);
}

ThreadPool::~ThreadPool() {
  for (const auto& worker : workers_) {
    worker->ticket.store(kStop);
    worker->ticket.notify_one();
    worker->thread.join();
  }
}

int ThreadPool::threads() const noexcept {
  if (in_region) return 1;
  return thread_limit > 0 ? std::min(thread_limit, kMaxThreads) : size_;
}

void ThreadPool::run(Function function, void* context, std::size_t tasks) noexcept {
  const auto parts = std::min<std::size_t>(tasks, static_cast<std::size_t>(threads()));
  if (parts <= 1 || busy_.exchange(true, std::memory_order_acquire)) {
    function(context, 0, tasks);
    return;
  }
  in_region = true;
  region_ = {function, context, tasks, 1 + start_workers(parts - 1), float_control()};
  run_in_parts();
  in_region = false;
  busy_.store(false, std::memory_order_release);
}

void ThreadPool::run_in_parts() noexcept {
  const std::size_t helpers = region_.parts - 1;
  for (std::size_t i = 0; i < helpers; ++i) {
    Worker& worker = *workers_[i];
    std::uint32_t next = worker.done.load(std::memory_order_relaxed) + 1;
    if (next == kStop) next = 0;
    // Sequentially consistent: the store must come before notify looks for a parked worker.
    worker.ticket.store(next);
    worker.ticket.notify_one();
  }
  run_part(0);
  for (std::size_t i = 0; i < helpers; ++i) {
    Worker& worker = *workers_[i];
    const std::uint32_t ticket = worker.ticket.load(std::memory_order_relaxed);
    for (std::uint32_t done = worker.done.load(std::memory_order_acquire); done != ticket;) {
      done = wait_for_change(worker.done, done, spins_);
    }
  }
}

void ThreadPool::run_part(std::size_t part) const noexcept {
  const Region& r = region_;
  // Parts differ by at most one task, computed without overflow.
  const std::size_t each = r.tasks / r.parts, rest = r.tasks % r.parts;
  const std::size_t begin = part * each + std::min(part, rest);
  r.function(r.context, begin, begin + each + (part < rest ? 1 : 0));
}

/// Starts workers until there are `count`; returns how many of those wanted exist.
std::size_t ThreadPool::start_workers(std::size_t count) noexcept {
  if (count <= workers_.size()) return count;
  try {
    workers_.reserve(count);
    while (workers_.size() < count) {
      auto worker = std::make_unique<Worker>(workers_.size() + 1);
      worker->thread = std::thread([this, w = worker.get()] { work(*w); });
      workers_.push_back(std::move(worker));
    }
  } catch (const std::exception&) {
    // The system gives no more threads: the region runs in fewer parts.
  }
  if (workers_.size() >= static_cast<std::size_t>(available_cpus())) spins_ = kCrowdedSpins;
  return std::min(count, workers_.size());
}

void ThreadPool::work(Worker& worker) noexcept {
  in_region = true;
  for (std::uint32_t ticket = 0;;) {
    ticket = wait_for_change(worker.ticket, ticket, spins_.load(std::memory_order_relaxed));
    if (ticket == kStop) return;
    if (float_control() != region_.float_control) set_float_control(region_.float_control);
    run_part(worker.part);
    worker.done.store(ticket);
    worker.done.notify_one();
  }
}

/// For a forked child, where the workers do not exist: forgets them. Their objects leak on purpose;
/// a std::thread that cannot be joined must not be destroyed.
void ThreadPool::abandon_workers() noexcept {
  for (auto& worker : workers_) static_cast<void>(worker.release());
  workers_.clear();
  in_region = false;
  busy_.store(false, std::memory_order_relaxed);
}

int set_thread_limit(int threads) noexcept {
  return std::exchange(thread_limit, std::max(0, threads));
}

}  // namespace rlx
