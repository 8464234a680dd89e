#pragma once

#include <string_view>

namespace rlx {

/// CPUs this process may really use: the affinity mask of the calling thread, cut to the CPU quota
/// of its cgroup (versions 1 and 2), rounded up. At least 1.
int available_cpus();

/// CPUs in the calling thread's affinity mask, at least 1.
int affinity_cpus();

/// CPUs that the cgroup quota of this process allows, rounded up; 0 where there is no quota.
/// `proc_cgroup` is the text of /proc/self/cgroup, `root` the folder where cgroups are mounted.
/// Both are parameters so that tests can use folders of their own.
int cgroup_cpus(std::string_view proc_cgroup, std::string_view root);

/// Runs `in_child` in every child that this process forks, before fork returns there.
void on_fork(void (*in_child)());

}  // namespace rlx
