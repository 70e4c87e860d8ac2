// SPDX-License-Identifier: BSD-3-Clause
// The C interface between topology.cpp and slimpi-hwloc.so, the plugin that is linked to hwloc and
// loaded on demand. Plain C types only: the two may have been built by different compilers.
#pragma once
#include <stddef.h>
#include <stdint.h>

extern "C" {

// Increased with every change below; the plugin refuses any other version.
enum { SLIMPI_HWLOC_VERSION = 1 };

struct slimpi_hwloc_numa {
  int32_t index;    // the operating system's number of the NUMA node
  int32_t cores;    // cores near it; 0 for memory without cores
  uint64_t memory;  // bytes
};

struct slimpi_hwloc_device {
  char bus_id[24];    // "0000:3b:00.0"; "" if it is not on PCI
  char name[80];      // the operating system's names, such as "ib0, mlx5_0"; may be ""
  char model[120];    // from the PCI database, or "10de:2335"; may be ""
  int32_t numa_node;  // -1: no single one is nearest
};

// The plugin owns everything until `release` is called with the pointer.
struct slimpi_hwloc {
  void (*release)(const struct slimpi_hwloc*);
  int32_t packages, cores, processing_units;
  int32_t bound_numa_node;  // the one that the calling thread is bound to; -1: not to a single one
  uint32_t numa_count, gpu_count, nic_count;
  const struct slimpi_hwloc_numa* numa;
  const struct slimpi_hwloc_device* gpus;
  const struct slimpi_hwloc_device* nics;
  const int32_t* distance;  // gpu_count rows of nic_count; values of slimpi::topology::Distance
};

// Sets *result and returns 0, or returns another number and a line of text in `error`.
typedef int slimpi_hwloc_load_function(uint32_t version, const struct slimpi_hwloc** result,
                                       char* error, size_t error_size);
__attribute__((visibility("default"))) slimpi_hwloc_load_function slimpi_hwloc_load;

}  // extern "C"
