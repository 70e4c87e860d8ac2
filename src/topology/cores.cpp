// SPDX-License-Identifier: BSD-3-Clause
#include "topology/cores.h"

#include <sched.h>

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <fstream>
#include <limits>
#include <string>

namespace slimpi::topology {

namespace {

constexpr double kNoLimit = std::numeric_limits<double>::infinity();

std::string first_line(const std::string& path) {
  std::string line;
  std::ifstream file(path);
  std::getline(file, line);
  return line;
}

// The limit of one group in version 1 of control groups: two files; -1 is no limit.
double quota_of_version_1(const std::string& directory) {
  const double quota = std::atof(first_line(directory + "/cpu.cfs_quota_us").c_str());
  const double period = std::atof(first_line(directory + "/cpu.cfs_period_us").c_str());
  return quota > 0 && period > 0 ? quota / period : kNoLimit;
}

// The smallest limit of a group and those above it. A container may see its own group as the root.
template <typename Quota>
double least_quota(const std::string& root, std::string group, Quota quota) {
  double least = quota(root);
  while (group.size() > 1) {
    least = std::min(least, quota(root + group));
    group.resize(group.rfind('/'));
  }
  return least;
}

}  // namespace

int Cores::count() const {
  int result = 0;
  for (const std::uint64_t word : words) result += std::popcount(word);
  return result;
}

bool Cores::within(const Cores& others) const {
  for (std::size_t i = 0; i < words.size(); ++i)
    if ((words[i] & ~others.words[i]) != 0) return false;
  return true;
}

Cores own_cores() {
  Cores result;
  static_assert(sizeof result.words == Cores::kMost / 8);
  auto* const set = reinterpret_cast<cpu_set_t*>(result.words.data());
  if (sched_getaffinity(0, sizeof result.words, set) != 0) result = {};
  return result;
}

double quota_of(std::string_view cpu_max) {
  const std::size_t space = cpu_max.find(' ');
  if (space == std::string_view::npos) return kNoLimit;
  const double quota = std::atof(std::string(cpu_max.substr(0, space)).c_str());
  const double period = std::atof(std::string(cpu_max.substr(space + 1)).c_str());
  return quota > 0 && period > 0 ? quota / period : kNoLimit;
}

// Each line is "hierarchy:controllers:group". Version 2 has one hierarchy, 0, without controllers.
double core_quota() {
  double least = kNoLimit;
  std::ifstream groups("/proc/self/cgroup");
  for (std::string line; std::getline(groups, line);) {
    const std::size_t first = line.find(':'), second = line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string controllers = "," + line.substr(first + 1, second - first - 1) + ",";
    const std::string group = line.substr(second + 1);
    if (controllers == ",,")
      least = std::min(least, least_quota("/sys/fs/cgroup", group, [](const std::string& at) {
                         return quota_of(first_line(at + "/cpu.max"));
                       }));
    else if (controllers.find(",cpu,") != std::string::npos)
      least = std::min(least, least_quota("/sys/fs/cgroup/cpu", group, quota_of_version_1));
  }
  return least;
}

// Hall's condition: no set of cores has more processes that can run nowhere else than it has cores.
// This test is exact for sets that contain each other or are disjoint, as bindings are.
bool enough_cores(std::span<const Cores> processes, int all, double quota) {
  if (processes.empty() || double(all) > quota) return false;
  Cores together;
  for (const Cores& one : processes)
    for (std::size_t i = 0; i < together.words.size(); ++i) together.words[i] |= one.words[i];
  bool alike = true;
  for (const Cores& one : processes) {
    alike = alike && together.within(one);
    const auto inside = std::count_if(processes.begin(), processes.end(),
                                      [&](const Cores& other) { return other.within(one); });
    if (inside > one.count()) return false;
  }
  const int sharing = alike ? std::max(all, int(processes.size())) : int(processes.size());
  return sharing <= together.count();
}

}  // namespace slimpi::topology
