// SPDX-License-Identifier: BSD-3-Clause
// Finds the NUMA node of a PCI device, and makes a thread prefer memory of this node, so that
// staging buffers are near the GPU.
#pragma once
#include <linux/mempolicy.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cctype>
#include <fstream>
#include <string>

namespace slimpi::device::cuda {

// Returns the NUMA node of the device with this bus id ("0000:3B:00.0"), or -1 if it is unknown.
// `root` is the directory of the system's PCI devices.
inline int numa_node_of(const std::string& bus_id,
                        const std::string& root = "/sys/bus/pci/devices") {
  std::string name;
  for (const char letter : bus_id) name += char(std::tolower((unsigned char)letter));
  std::ifstream file(root + "/" + name + "/numa_node");
  int node = -1;
  return file >> node ? node : -1;
}

// While a Preferred exists, its thread prefers memory of `node`; afterwards the old preference is
// restored. Does nothing for node -1, or if the system does not allow it.
class Preferred {
 public:
  // Makes the system calls directly, so that libnuma is not needed. Linux uses one bit less of the
  // mask than set_mempolicy() is told, so the length passed here is kNodes + 1.
  explicit Preferred(int node) {
    if (node < 0 || unsigned(node) >= kNodes) return;
    if (syscall(SYS_get_mempolicy, &policy_, nodes_, kNodes, nullptr, 0) != 0) return;
    unsigned long wanted[kWords] = {};
    constexpr unsigned kBits = 8 * sizeof(unsigned long);
    wanted[unsigned(node) / kBits] = 1ul << unsigned(node) % kBits;
    changed_ = syscall(SYS_set_mempolicy, MPOL_PREFERRED, wanted, kNodes + 1) == 0;
  }
  ~Preferred() {
    if (changed_) (void)syscall(SYS_set_mempolicy, policy_, nodes_, kNodes + 1);
  }
  Preferred(const Preferred&) = delete;
  Preferred& operator=(const Preferred&) = delete;

 private:
  static constexpr unsigned kNodes = 1024;
  static constexpr unsigned kWords = kNodes / (8 * sizeof(unsigned long));
  bool changed_ = false;
  int policy_ = 0;
  unsigned long nodes_[kWords] = {};
};

}  // namespace slimpi::device::cuda
