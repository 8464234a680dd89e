#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <type_traits>
#include <utility>
#include <vector>

namespace rlx {

/// Threads that run one parallel region at a time. The caller takes part, so a pool of n threads
/// starts n - 1 workers, on first use. Workers spin for about a millisecond after a region (a wake
/// costs 50-100 µs), then park; none is pinned.
///
/// A region splits its tasks statically: part i of n runs tasks [tasks·i/n, tasks·(i+1)/n) in
/// order. A caller that finds the pool busy, and a region started within a region, run inline on
/// the calling thread. A region starts no thread after the first of its size and allocates nothing.
/// After fork the child's process pool starts workers of its own.
class ThreadPool {
 public:
  /// The pool of this process, sized by `available_cpus()` when first used.
  static ThreadPool& process();

  /// A pool of its own, for tests and benchmarks; `threads` >= 1.
  explicit ThreadPool(int threads);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  /// Threads a region started here and now would use, the caller included: the pool's size, or the
  /// calling thread's limit where one is set. 1 within a region.
  int threads() const noexcept;

 private:
  template <class F>
  friend void parallel_for(ThreadPool& pool, std::size_t tasks, F&& f) noexcept;

  using Function = void (*)(void* context, std::size_t begin, std::size_t end) noexcept;
  struct Region {
    Function function = nullptr;
    void* context = nullptr;
    std::size_t tasks = 0;
    std::size_t parts = 0;
    unsigned float_control = 0;
  };
  struct Worker;

  void run(Function function, void* context, std::size_t tasks) noexcept;
  void run_in_parts() noexcept;
  void run_part(std::size_t part) const noexcept;
  std::size_t start_workers(std::size_t count) noexcept;
  void work(Worker& worker) noexcept;
  void abandon_workers() noexcept;

  const int size_;
  std::atomic<int> spins_;  // pauses before a wait parks; few once threads outnumber CPUs
  std::atomic<bool> busy_ = false;
  Region region_;
  std::vector<std::unique_ptr<Worker>> workers_;  // changed only by the thread that set busy_
};

/// Limits the regions that the calling thread starts to `threads`, more than the pool's size
/// included; 0 lifts the limit. Returns the limit before. Affects the calling thread only.
int set_thread_limit(int threads) noexcept;

/// Sets a thread limit for a scope.
class ThreadLimit {
 public:
  explicit ThreadLimit(int threads) noexcept : before_(set_thread_limit(threads)) {}
  ~ThreadLimit() { set_thread_limit(before_); }
  ThreadLimit(const ThreadLimit&) = delete;
  ThreadLimit& operator=(const ThreadLimit&) = delete;

 private:
  int before_;
};

/// Calls f(task) once for each task in [0, tasks), spread over the pool's threads, and returns when
/// all are done. What the tasks wrote is visible to the caller. `f` must be noexcept.
template <class F>
void parallel_for(ThreadPool& pool, std::size_t tasks, F&& f) noexcept {
  using Callable = std::remove_reference_t<F>;
  static_assert(std::is_nothrow_invocable_v<Callable&, std::size_t>, "mark the lambda noexcept");
  pool.run(
      [](void* context, std::size_t begin, std::size_t end) noexcept {
        Callable& call = *static_cast<Callable*>(context);
        for (std::size_t task = begin; task < end; ++task) call(task);
      },
      const_cast<void*>(static_cast<const void*>(std::addressof(f))), tasks);
}

}  // namespace rlx
