#include "base/thread_pool.h"

#include <gtest/gtest.h>
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <numeric>
#include <thread>
#include <vector>

#include "base/denormals.h"
#include "base/os_cpu.h"

namespace rlx {
namespace {

/// How often each task ran, in a region of `tasks` tasks.
std::vector<int> counts_of_region(ThreadPool& pool, std::size_t tasks) {
  std::vector<std::atomic<int>> counts(tasks);
  parallel_for(pool, tasks, [&](std::size_t task) noexcept { ++counts[task]; });
  return {counts.begin(), counts.end()};
}

TEST(ThreadPool, RunsEachTaskOnce) {
  for (int threads : {1, 2, 3, 4, 7}) {
    ThreadPool pool(threads);
    for (std::size_t tasks : {0, 1, 2, 3, 5, 8, 64, 1001}) {
      EXPECT_EQ(counts_of_region(pool, tasks), std::vector<int>(tasks, 1))
          << threads << " threads, " << tasks << " tasks";
    }
  }
}

TEST(ThreadPool, SplitsStaticallyInOrder) {
  ThreadPool pool(3);
  std::vector<std::thread::id> ran_on(10);
  parallel_for(pool, 10,
               [&](std::size_t task) noexcept { ran_on[task] = std::this_thread::get_id(); });
  const std::vector<std::vector<int>> parts = {{0, 1, 2, 3}, {4, 5, 6}, {7, 8, 9}};
  for (const auto& part : parts) {
    for (int task : part) EXPECT_EQ(ran_on[task], ran_on[part[0]]) << task;
  }
  EXPECT_EQ(ran_on[0], std::this_thread::get_id());
  EXPECT_NE(ran_on[0], ran_on[4]);
  EXPECT_NE(ran_on[4], ran_on[7]);
}

TEST(ThreadPool, ManyRegionsSeeEachOthersWrites) {
  for (const auto& [threads, regions] : {std::pair{2, 20'000L}, {4, 1'000L}}) {
    ThreadPool pool(threads);
    std::vector<long> sums(4, 0);
    for (long region = 0; region < regions; ++region) {
      // Not atomic: the end of each region orders it before the next.
      parallel_for(pool, 4, [&](std::size_t task) noexcept {
        sums[(task + static_cast<std::size_t>(region)) % 4] += region;
      });
    }
    EXPECT_EQ(sums, std::vector<long>(4, regions * (regions - 1) / 2)) << threads;
  }
}

TEST(ThreadPool, WakesParkedWorkers) {
  ThreadPool pool(3);
  for (int round = 0; round < 3; ++round) {
    EXPECT_EQ(counts_of_region(pool, 30), std::vector<int>(30, 1));
    std::this_thread::sleep_for(std::chrono::milliseconds(30));  // far beyond the spin
  }
}

TEST(ThreadPool, NestedRegionsRunInline) {
  ThreadPool pool(4);
  std::atomic<int> inner = 0, threads_seen = 0, moved = 0;
  parallel_for(pool, 8, [&](std::size_t) noexcept {
    const auto outer_thread = std::this_thread::get_id();
    threads_seen += pool.threads();
    parallel_for(pool, 5, [&](std::size_t) noexcept {
      ++inner;
      if (std::this_thread::get_id() != outer_thread) ++moved;
    });
  });
  EXPECT_EQ(inner, 40);
  EXPECT_EQ(threads_seen, 8);
  EXPECT_EQ(moved, 0);
  EXPECT_EQ(pool.threads(), 4);
}

TEST(ThreadPool, SecondCallerRunsInline) {
  ThreadPool pool(2);
  std::atomic<bool> started = false, release = false;
  std::thread holder([&] {
    parallel_for(pool, 2, [&](std::size_t) noexcept {
      started = true;
      while (!release) std::this_thread::yield();
    });
  });
  while (!started) std::this_thread::yield();
  int here = 0;  // not atomic: all tasks run on this thread
  parallel_for(pool, 50, [&](std::size_t) noexcept { ++here; });
  EXPECT_EQ(here, 50);
  release = true;
  holder.join();
  EXPECT_EQ(counts_of_region(pool, 9), std::vector<int>(9, 1));
}

TEST(ThreadPool, ConcurrentCallersAllFinish) {
  ThreadPool pool(3);
  std::atomic<long> total = 0;
  std::vector<std::thread> callers;
  for (int c = 0; c < 4; ++c) {
    callers.emplace_back([&] {
      for (int i = 0; i < 2000; ++i) {
        parallel_for(pool, 6, [&](std::size_t task) noexcept { total += long(task); });
      }
    });
  }
  for (auto& caller : callers) caller.join();
  EXPECT_EQ(total, 4L * 2000 * 15);
}

TEST(ThreadPool, LimitHoldsForTheCallingThread) {
  ThreadPool pool(2);
  {
    const ThreadLimit one(1);
    EXPECT_EQ(pool.threads(), 1);
    std::thread([&] { EXPECT_EQ(pool.threads(), 2); }).join();
    const ThreadLimit more(5);
    EXPECT_EQ(pool.threads(), 5);
    EXPECT_EQ(counts_of_region(pool, 17), std::vector<int>(17, 1));
  }
  EXPECT_EQ(pool.threads(), 2);
}

TEST(ThreadPool, WorkersFlushDenormalsWithTheCaller) {
  ThreadPool pool(4);
  const auto denormals_kept = [&] {
    std::atomic<int> kept = 0;
    parallel_for(pool, 4, [&](std::size_t) noexcept {
      volatile float tiny = 1e-30F;
      if (tiny * 1e-10F != 0) ++kept;
    });
    return kept.load();
  };
  EXPECT_EQ(denormals_kept(), 4);
  {
    const FlushDenormals flush;
    EXPECT_EQ(denormals_kept(), 0);
    const FlushDenormals keep(true);
    EXPECT_EQ(denormals_kept(), 0);  // leaves the state as it is
  }
  EXPECT_EQ(denormals_kept(), 4);
}

/// Forks and tells whether `check` held in the child.
template <class F>
bool holds_in_child(F check) {
  const pid_t child = fork();
  if (child == 0) {
    alarm(20);  // a region that waits for threads that do not exist would hang
    _exit(check() ? 0 : 1);
  }
  int status = -1;
  waitpid(child, &status, 0);
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

TEST(ThreadPool, ForkedChildHasAPoolOfItsOwn) {
  const ThreadLimit limit(3);
  ThreadPool& pool = ThreadPool::process();
  EXPECT_EQ(counts_of_region(pool, 12), std::vector<int>(12, 1));
  EXPECT_TRUE(holds_in_child([&] {
    for (int i = 0; i < 100; ++i) {
      if (counts_of_region(pool, 12) != std::vector<int>(12, 1)) return false;
    }
    return true;
  }));
  EXPECT_EQ(counts_of_region(pool, 12), std::vector<int>(12, 1));
}

TEST(ThreadPool, SizeFollowsAffinity) {
  EXPECT_TRUE(holds_in_child([] {
    cpu_set_t allowed, one;
    sched_getaffinity(0, sizeof allowed, &allowed);
    CPU_ZERO(&one);
    for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
      if (!CPU_ISSET(cpu, &allowed)) continue;
      CPU_SET(cpu, &one);
      break;
    }
    sched_setaffinity(0, sizeof one, &one);
    ThreadPool pool(available_cpus());
    if (available_cpus() != 1 || pool.threads() != 1) return false;
    // More threads than processors must still make progress.
    const ThreadLimit limit(3);
    for (int i = 0; i < 20; ++i) {
      if (counts_of_region(pool, 7) != std::vector<int>(7, 1)) return false;
    }
    return true;
  }));
}

class CgroupQuota : public testing::Test {
 protected:
  void SetUp() override {
    root_ = std::filesystem::path(testing::TempDir()) / ("rlx_cgroup_" + std::to_string(getpid()));
  }
  void TearDown() override { std::filesystem::remove_all(root_); }
  void write(const std::string& path, const std::string& text) {
    const auto file = root_ / path;
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file) << text;
  }
  int cpus(std::string_view proc_cgroup) { return cgroup_cpus(proc_cgroup, root_.string()); }

  std::filesystem::path root_;
};

TEST_F(CgroupQuota, VersionTwoTakesTheTightestAncestor) {
  EXPECT_EQ(cpus("0::/a/b\n"), 0);
  write("a/b/cpu.max", "max 100000\n");
  EXPECT_EQ(cpus("0::/a/b\n"), 0);
  write("a/cpu.max", "150000 100000\n");
  EXPECT_EQ(cpus("0::/a/b\n"), 2);  // rounded up
  write("a/b/cpu.max", "50000 100000\n");
  EXPECT_EQ(cpus("0::/a/b\n"), 1);
  EXPECT_EQ(cpus("0::/other\n"), 0);
}

TEST_F(CgroupQuota, VersionTwoContainerSeesItsGroupAsRoot) {
  write("cpu.max", "400000 100000\n");
  EXPECT_EQ(cpus("0::/\n"), 4);
}

TEST_F(CgroupQuota, VersionOne) {
  const char* lines = "12:cpuset:/x\n4:cpu,cpuacct:/job\n";
  write("cpu/job/cpu.cfs_quota_us", "-1\n");
  write("cpu/job/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(cpus(lines), 0);
  write("cpu/job/cpu.cfs_quota_us", "300000\n");
  EXPECT_EQ(cpus(lines), 3);
}

TEST_F(CgroupQuota, IgnoresWhatIsNoCgroupLine) {
  EXPECT_EQ(cpus(""), 0);
  EXPECT_EQ(cpus("::::\nnonsense\n0::\n:\n0::relative\n"), 0);
}

}  // namespace
}  // namespace rlx
