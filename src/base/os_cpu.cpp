#include "base/os_cpu.h"

#include <pthread.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <memory>
#include <sstream>
#include <string>
#include <thread>

namespace rlx {
namespace {

std::string file_text(const std::string& path) {
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

/// Whole CPUs of a quota and period in the same unit; 0 if there is none.
int whole_cpus(double quota, double period) {
  if (quota <= 0 || period <= 0) return 0;
  return std::max(1, static_cast<int>(std::min(1e6, (quota + period - 1) / period)));
}

/// The tighter of two limits, where 0 is none.
int tighter(int a, int b) {
  if (a == 0) return b;
  if (b == 0) return a;
  return std::min(a, b);
}

/// Version 2: "max 100000" or "150000 100000".
int v2_limit(const std::string& folder) {
  std::istringstream text(file_text(folder + "/cpu.max"));
  double quota = 0, period = 0;
  return text >> quota >> period ? whole_cpus(quota, period) : 0;
}

/// Version 1: a quota of -1 is none.
int v1_limit(const std::string& folder) {
  std::istringstream quota_text(file_text(folder + "/cpu.cfs_quota_us"));
  std::istringstream period_text(file_text(folder + "/cpu.cfs_period_us"));
  double quota = 0, period = 0;
  return quota_text >> quota && period_text >> period ? whole_cpus(quota, period) : 0;
}

/// The tightest limit from `path` up to the mount: each ancestor's quota binds too. A container
/// often sees its own group as the mount's root, so the mount itself is asked last.
int tightest(const std::string& mount, std::string path, int (*limit)(const std::string&)) {
  int cpus = 0;
  while (!path.empty() && path != "/") {
    cpus = tighter(cpus, limit(mount + path));
    path.erase(path.find_last_of('/'));
  }
  return tighter(cpus, limit(mount));
}

bool lists_cpu(const std::string& controllers) {
  std::istringstream list(controllers);
  for (std::string name; std::getline(list, name, ',');) {
    if (name == "cpu") return true;
  }
  return false;
}

}  // namespace

int affinity_cpus() {
  // Machines may have more CPUs than a cpu_set_t holds; then the kernel asks for a larger one.
  for (int capacity = CPU_SETSIZE; capacity <= (1 << 20); capacity *= 2) {
    const std::unique_ptr<cpu_set_t, void (*)(cpu_set_t*)> set(CPU_ALLOC(capacity),
                                                               [](cpu_set_t* s) { CPU_FREE(s); });
    if (!set) break;
    const std::size_t bytes = CPU_ALLOC_SIZE(capacity);
    if (sched_getaffinity(0, bytes, set.get()) == 0)
      return std::max(1, CPU_COUNT_S(bytes, set.get()));
  }
  return std::max(1U, std::thread::hardware_concurrency());
}

int cgroup_cpus(std::string_view proc_cgroup, std::string_view root) {
  // Lines are "id:controllers:path"; version 2 is the line "0::path".
  const std::string mount(root);
  int cpus = 0;
  std::istringstream lines{std::string(proc_cgroup)};
  for (std::string line; std::getline(lines, line);) {
    const std::size_t first = line.find(':');
    const std::size_t second = first == std::string::npos ? first : line.find(':', first + 1);
    if (second == std::string::npos || line.compare(second + 1, 1, "/") != 0) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    const std::string path = line.substr(second + 1);
    if (controllers.empty()) {
      cpus = tighter(cpus, tightest(mount, path, v2_limit));
      cpus = tighter(cpus, tightest(mount + "/unified", path, v2_limit));
    }
    if (lists_cpu(controllers)) cpus = tighter(cpus, tightest(mount + "/cpu", path, v1_limit));
  }
  return cpus;
}

int available_cpus() {
  const int quota = cgroup_cpus(file_text("/proc/self/cgroup"), "/sys/fs/cgroup");
  return std::max(1, tighter(affinity_cpus(), quota));
}

void on_fork(void (*in_child)()) { pthread_atfork(nullptr, nullptr, in_child); }

}  // namespace rlx
