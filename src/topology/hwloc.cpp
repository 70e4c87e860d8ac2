// SPDX-License-Identifier: BSD-3-Clause
// slimpi-hwloc.so, a plugin that reads the machine's topology with hwloc and returns it as plain
// data.
#include <hwloc.h>

#include <algorithm>
#include <cstdio>
#include <memory>
#include <new>
#include <string>
#include <utility>
#include <vector>

#include "topology/topology.h"

namespace {

using slimpi::topology::Device;
using slimpi::topology::Distance;
using slimpi::topology::Topology;

struct Destroy {
  void operator()(hwloc_topology_t topology) const { hwloc_topology_destroy(topology); }
};
using Handle = std::unique_ptr<hwloc_topology, Destroy>;

struct FreeBitmap {
  void operator()(hwloc_bitmap_t bitmap) const { hwloc_bitmap_free(bitmap); }
};
using Bitmap = std::unique_ptr<hwloc_bitmap_s, FreeBitmap>;

// Returns the first NUMA node of `nodes` if it is the only one, or if all belong to the same cores
// (such as fast and ordinary memory); otherwise -1.
int single_numa_node(hwloc_topology_t topology, hwloc_const_nodeset_t nodes) {
  hwloc_obj_t first = nullptr;
  hwloc_obj_t node = nullptr;
  while ((node = hwloc_get_next_obj_by_type(topology, HWLOC_OBJ_NUMANODE, node)) != nullptr) {
    if (!hwloc_bitmap_isset(nodes, node->os_index)) continue;
    if (first == nullptr)
      first = node;
    else if (!hwloc_bitmap_isequal(first->cpuset, node->cpuset))
      return -1;
  }
  return first == nullptr ? -1 : int(first->os_index);
}

int numa_node_of(hwloc_topology_t topology, hwloc_obj_t device) {
  return single_numa_node(topology, hwloc_get_non_io_ancestor_obj(topology, device)->nodeset);
}

int bound_numa_node(hwloc_topology_t topology) {
  const Bitmap cores(hwloc_bitmap_alloc()), nodes(hwloc_bitmap_alloc());
  if (!cores || !nodes) return -1;
  if (hwloc_get_cpubind(topology, cores.get(), HWLOC_CPUBIND_THREAD) != 0) return -1;
  hwloc_cpuset_to_nodeset(topology, cores.get(), nodes.get());
  return single_numa_node(topology, nodes.get());
}

bool is_pci(hwloc_obj_t object) {
  return object->type == HWLOC_OBJ_PCI_DEVICE;
}

bool is_gpu(hwloc_obj_t pci) {
  constexpr unsigned kVga = 0x0300, k3d = 0x0302, kDisplay = 0x0380, kAccelerator = 0x1200;
  constexpr unsigned kNvidia = 0x10de, kAmd = 0x1002, kIntel = 0x8086;
  const unsigned type = pci->attr->pcidev.class_id, maker = pci->attr->pcidev.vendor_id;
  if (type == k3d || type == kAccelerator) return true;
  // Server boards have a small VGA chip of another vendor for their console.
  return (type == kVga || type == kDisplay) &&
         (maker == kNvidia || maker == kAmd || maker == kIntel);
}

// Returns the PCI card of a network device, or the device itself if it is not on PCI. Null if the
// PCI device above it is no NIC, such as a USB controller (hwloc has no objects for USB devices).
hwloc_obj_t card_of(hwloc_obj_t os_device) {
  hwloc_obj_t above = os_device->parent;
  while (above != nullptr && above->type == HWLOC_OBJ_OS_DEVICE) above = above->parent;
  if (above == nullptr || hwloc_obj_type_is_normal(above->type)) return os_device;
  constexpr unsigned kNetwork = 0x02, kInfiniband = 0x0c06;
  if (!is_pci(above)) return nullptr;
  const unsigned type = above->attr->pcidev.class_id;
  return type >> 8 == kNetwork || type == kInfiniband ? above : nullptr;
}

Device describe(hwloc_topology_t topology, hwloc_obj_t object) {
  Device device;
  if (is_pci(object)) {
    const auto& pci = object->attr->pcidev;
    char bus_id[24], numbers[16];
    std::snprintf(bus_id, sizeof bus_id, "%04x:%02x:%02x.%x", unsigned(pci.domain),
                  unsigned(pci.bus), unsigned(pci.dev), unsigned(pci.func));
    std::snprintf(numbers, sizeof numbers, "%04x:%04x", unsigned(pci.vendor_id),
                  unsigned(pci.device_id));
    const char* model = hwloc_obj_get_info_by_name(object, "PCIDevice");
    device.bus_id = bus_id;
    device.model = model != nullptr && *model != '\0' ? model : numbers;
  }
  device.numa_node = numa_node_of(topology, object);
  return device;
}

std::vector<hwloc_obj_t> find_gpus(hwloc_topology_t topology, Topology& result) {
  std::vector<hwloc_obj_t> gpus;
  for (hwloc_obj_t pci = nullptr; (pci = hwloc_get_next_pcidev(topology, pci)) != nullptr;)
    if (is_gpu(pci)) gpus.push_back(pci);
  const auto address = [](hwloc_obj_t pci) {
    const auto& at = pci->attr->pcidev;
    return (std::uint64_t(at.domain) << 24) | (at.bus << 16) | (at.dev << 8) | at.func;
  };
  std::sort(gpus.begin(), gpus.end(),
            [&](hwloc_obj_t a, hwloc_obj_t b) { return address(a) < address(b); });
  for (hwloc_obj_t pci : gpus) result.gpus.push_back(describe(topology, pci));
  return gpus;
}

// Finds the NICs: one entry per card, with the names of all its devices, such as "ib0, mlx5_0".
std::vector<hwloc_obj_t> find_nics(hwloc_topology_t topology, Topology& result) {
  std::vector<hwloc_obj_t> nics;
  for (hwloc_obj_t os = nullptr; (os = hwloc_get_next_osdev(topology, os)) != nullptr;) {
    const auto type = os->attr->osdev.type;
    if (type != HWLOC_OBJ_OSDEV_NETWORK && type != HWLOC_OBJ_OSDEV_OPENFABRICS) continue;
    hwloc_obj_t card = card_of(os);
    if (card == nullptr) continue;
    const auto known = std::find(nics.begin(), nics.end(), card);
    const std::size_t index = std::size_t(known - nics.begin());
    if (known == nics.end()) {
      nics.push_back(card);
      result.nics.push_back(describe(topology, card));
    }
    std::string& name = result.nics[index].name;
    name += (name.empty() ? "" : ", ") + std::string(os->name == nullptr ? "" : os->name);
  }
  return nics;
}

// Returns the lowest object that contains both `a` and `b`. hwloc's own search works only for
// objects that have cores, which GPUs and NICs lack.
hwloc_obj_t common_ancestor(hwloc_obj_t a, hwloc_obj_t b) {
  for (; a != nullptr; a = a->parent)
    for (hwloc_obj_t other = b; other != nullptr; other = other->parent)
      if (other == a) return a;
  return nullptr;
}

Distance distance(hwloc_topology_t topology, hwloc_obj_t gpu, hwloc_obj_t nic) {
  hwloc_obj_t shared = common_ancestor(gpu, nic);
  if (shared->type == HWLOC_OBJ_BRIDGE)
    return shared->attr->bridge.upstream_type == HWLOC_OBJ_BRIDGE_PCI ? Distance::pci_switch
                                                                      : Distance::pci_root;
  const int node = numa_node_of(topology, gpu);
  if (node >= 0 && node == numa_node_of(topology, nic)) return Distance::numa_node;
  if (hwloc_get_nbobjs_by_type(topology, HWLOC_OBJ_PACKAGE) == 1) return Distance::package;
  for (; shared != nullptr; shared = shared->parent)
    if (shared->type == HWLOC_OBJ_PACKAGE) return Distance::package;
  return Distance::machine;
}

void find_numa_nodes(hwloc_topology_t topology, Topology& result) {
  hwloc_obj_t node = nullptr;
  while ((node = hwloc_get_next_obj_by_type(topology, HWLOC_OBJ_NUMANODE, node)) != nullptr)
    result.numa_nodes.push_back(
        {int(node->os_index),
         hwloc_get_nbobjs_inside_cpuset_by_type(topology, node->cpuset, HWLOC_OBJ_CORE),
         node->attr->numanode.local_memory});
}

void fill(hwloc_topology_t topology, Topology& result) {
  find_numa_nodes(topology, result);
  const std::vector<hwloc_obj_t> gpus = find_gpus(topology, result);
  const std::vector<hwloc_obj_t> nics = find_nics(topology, result);
  for (hwloc_obj_t gpu : gpus)
    for (hwloc_obj_t nic : nics) result.distances.push_back(distance(topology, gpu, nic));
  result.packages = hwloc_get_nbobjs_by_type(topology, HWLOC_OBJ_PACKAGE);
  result.cores = hwloc_get_nbobjs_by_type(topology, HWLOC_OBJ_CORE);
  result.processing_units = hwloc_get_nbobjs_by_type(topology, HWLOC_OBJ_PU);
  result.bound_numa_node = bound_numa_node(topology);
}

int refuse(char* error, std::size_t size, const char* text) {
  std::snprintf(error, size, "%s", text);
  return 1;
}

}  // namespace

extern "C" int slimpi_hwloc_load(std::uint32_t version, Topology* result, char* error,
                                 std::size_t error_size) {
  if (version != slimpi::topology::kPluginVersion)
    return refuse(error, error_size, "made for another version of slimpi");
  if (hwloc_get_api_version() >> 16 != HWLOC_API_VERSION >> 16)
    return refuse(error, error_size, "the process has loaded another major version of hwloc");
  hwloc_topology_t raw = nullptr;
  if (hwloc_topology_init(&raw) != 0) return refuse(error, error_size, "hwloc does not start");
  const Handle topology(raw);
  // The components below would start GPU drivers, which only the program may do.
  for (const char* component : {"cuda", "gl", "levelzero", "nvml", "opencl", "rsmi"})
    hwloc_topology_set_components(raw, HWLOC_TOPOLOGY_COMPONENTS_FLAG_BLACKLIST, component);
  hwloc_topology_set_io_types_filter(raw, HWLOC_TYPE_FILTER_KEEP_IMPORTANT);
  hwloc_topology_set_cache_types_filter(raw, HWLOC_TYPE_FILTER_KEEP_NONE);
  if (hwloc_topology_load(raw) != 0)
    return refuse(error, error_size, "hwloc cannot read the topology");
  try {
    Topology found;
    found.hostname = result->hostname;
    fill(raw, found);
    *result = std::move(found);
    return 0;
  } catch (const std::bad_alloc&) {
    return refuse(error, error_size, "no memory");
  }
}
