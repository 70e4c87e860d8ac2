// SPDX-License-Identifier: BSD-3-Clause
// The NUMA node of a PCI device, and memory allocation there.
#pragma once
#include <string>

namespace slimpi::device::cuda {

// The NUMA node of the device with this bus id ("0000:3B:00.0"); -1 if the system does not say.
// `root` is the directory of the system's PCI devices.
int numa_node_of(const std::string& bus_id, const std::string& root = "/sys/bus/pci/devices");

// For its lifetime this thread prefers memory of `node`; then its former preference is restored.
// Does nothing for node -1, or where the system does not allow it: it is only a preference.
class Preferred {
 public:
  explicit Preferred(int node);
  ~Preferred();
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
