// SPDX-License-Identifier: BSD-3-Clause
#include "device/cuda/numa.h"

#include <linux/mempolicy.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cctype>
#include <fstream>

namespace slimpi::device::cuda {

int numa_node_of(const std::string& bus_id, const std::string& root) {
  std::string name;
  for (const char letter : bus_id) name += char(std::tolower((unsigned char)letter));
  std::ifstream file(root + "/" + name + "/numa_node");
  int node = -1;
  return file >> node ? node : -1;
}

// The system calls are used directly, so libnuma is not needed. The kernel uses one bit less of the
// mask than the given length.
Preferred::Preferred(int node) {
  if (node < 0 || unsigned(node) >= kNodes) return;
  if (syscall(SYS_get_mempolicy, &policy_, nodes_, kNodes, nullptr, 0) != 0) return;
  unsigned long wanted[kWords] = {};
  constexpr unsigned kBits = 8 * sizeof(unsigned long);
  wanted[unsigned(node) / kBits] = 1ul << unsigned(node) % kBits;
  changed_ = syscall(SYS_set_mempolicy, MPOL_PREFERRED, wanted, kNodes + 1) == 0;
}

Preferred::~Preferred() {
  if (changed_) (void)syscall(SYS_set_mempolicy, policy_, nodes_, kNodes + 1);
}

}  // namespace slimpi::device::cuda
