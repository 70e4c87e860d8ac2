// SPDX-License-Identifier: BSD-3-Clause
// slimpi-hwloc.so: reads the machine's topology with hwloc and returns it as plain data.
#include <hwloc.h>

#include <algorithm>
#include <cstdio>
#include <memory>
#include <new>
#include <string>
#include <vector>

#include "topology/plugin.h"
#include "topology/topology.h"

namespace {

using slimpi::topology::Distance;

struct Destroy {
  void operator()(hwloc_topology_t topology) const { hwloc_topology_destroy(topology); }
};
using Handle = std::unique_ptr<hwloc_topology, Destroy>;

struct FreeBitmap {
  void operator()(hwloc_bitmap_t bitmap) const { hwloc_bitmap_free(bitmap); }
};
using Bitmap = std::unique_ptr<hwloc_bitmap_s, FreeBitmap>;

// The result and the memory that it points into.
struct Answer : slimpi_hwloc {
  std::vector<slimpi_hwloc_numa> numa_nodes;
  std::vector<slimpi_hwloc_device> gpu_list, nic_list;
  std::vector<hwloc_obj_t> gpu_objects, nic_objects;
  std::vector<std::int32_t> distances;
};

template <std::size_t N>
void copy_text(char (&to)[N], const std::string& from) {
  std::snprintf(to, N, "%s", from.c_str());
}

// The NUMA node of `nodes` if there is only one, or if all of them belong to the same cores (such
// as fast and ordinary memory); else -1.
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

// The PCI card of a network device; the device itself if it is not on PCI; null if it is behind
// something that is no NIC, such as a USB port (which hwloc itself leaves out).
hwloc_obj_t card_of(hwloc_obj_t os_device) {
  hwloc_obj_t above = os_device->parent;
  while (above != nullptr && above->type == HWLOC_OBJ_OS_DEVICE) above = above->parent;
  if (above == nullptr || hwloc_obj_type_is_normal(above->type)) return os_device;
  constexpr unsigned kNetwork = 0x02, kInfiniband = 0x0c06;
  if (!is_pci(above)) return nullptr;
  const unsigned type = above->attr->pcidev.class_id;
  return type >> 8 == kNetwork || type == kInfiniband ? above : nullptr;
}

slimpi_hwloc_device describe(hwloc_topology_t topology, hwloc_obj_t object) {
  slimpi_hwloc_device device{};
  if (is_pci(object)) {
    const auto& pci = object->attr->pcidev;
    std::snprintf(device.bus_id, sizeof device.bus_id, "%04x:%02x:%02x.%x", unsigned(pci.domain),
                  unsigned(pci.bus), unsigned(pci.dev), unsigned(pci.func));
    const char* model = hwloc_obj_get_info_by_name(object, "PCIDevice");
    char numbers[16];
    std::snprintf(numbers, sizeof numbers, "%04x:%04x", unsigned(pci.vendor_id),
                  unsigned(pci.device_id));
    copy_text(device.model, model != nullptr && *model != '\0' ? model : numbers);
  }
  device.numa_node = numa_node_of(topology, object);
  return device;
}

void add_name(slimpi_hwloc_device& device, const char* name) {
  const std::string before = device.name;
  copy_text(device.name, before.empty() ? name : before + ", " + name);
}

void find_gpus(hwloc_topology_t topology, Answer& answer) {
  for (hwloc_obj_t pci = nullptr; (pci = hwloc_get_next_pcidev(topology, pci)) != nullptr;)
    if (is_gpu(pci)) answer.gpu_objects.push_back(pci);
  const auto address = [](hwloc_obj_t pci) {
    const auto& at = pci->attr->pcidev;
    return (std::uint64_t(at.domain) << 24) | (at.bus << 16) | (at.dev << 8) | at.func;
  };
  std::sort(answer.gpu_objects.begin(), answer.gpu_objects.end(),
            [&](hwloc_obj_t a, hwloc_obj_t b) { return address(a) < address(b); });
  for (hwloc_obj_t pci : answer.gpu_objects) answer.gpu_list.push_back(describe(topology, pci));
}

// One entry per card, with the names of all its devices: Ethernet and InfiniBand have both.
void find_nics(hwloc_topology_t topology, Answer& answer) {
  for (hwloc_obj_t os = nullptr; (os = hwloc_get_next_osdev(topology, os)) != nullptr;) {
    const auto type = os->attr->osdev.type;
    if (type != HWLOC_OBJ_OSDEV_NETWORK && type != HWLOC_OBJ_OSDEV_OPENFABRICS) continue;
    hwloc_obj_t card = card_of(os);
    if (card == nullptr) continue;
    const auto known = std::find(answer.nic_objects.begin(), answer.nic_objects.end(), card);
    const std::size_t index = std::size_t(known - answer.nic_objects.begin());
    if (known == answer.nic_objects.end()) {
      answer.nic_objects.push_back(card);
      answer.nic_list.push_back(describe(topology, card));
    }
    add_name(answer.nic_list[index], os->name == nullptr ? "" : os->name);
  }
}

// hwloc's own search for a common ancestor works for objects with cores only; these have none.
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

void find_numa_nodes(hwloc_topology_t topology, Answer& answer) {
  hwloc_obj_t node = nullptr;
  while ((node = hwloc_get_next_obj_by_type(topology, HWLOC_OBJ_NUMANODE, node)) != nullptr)
    answer.numa_nodes.push_back(
        {std::int32_t(node->os_index),
         hwloc_get_nbobjs_inside_cpuset_by_type(topology, node->cpuset, HWLOC_OBJ_CORE),
         node->attr->numanode.local_memory});
}

void fill(hwloc_topology_t topology, Answer& answer) {
  find_numa_nodes(topology, answer);
  find_gpus(topology, answer);
  find_nics(topology, answer);
  for (hwloc_obj_t gpu : answer.gpu_objects)
    for (hwloc_obj_t nic : answer.nic_objects)
      answer.distances.push_back(std::int32_t(distance(topology, gpu, nic)));

  answer.packages = hwloc_get_nbobjs_by_type(topology, HWLOC_OBJ_PACKAGE);
  answer.cores = hwloc_get_nbobjs_by_type(topology, HWLOC_OBJ_CORE);
  answer.processing_units = hwloc_get_nbobjs_by_type(topology, HWLOC_OBJ_PU);
  answer.bound_numa_node = bound_numa_node(topology);
  answer.numa_count = std::uint32_t(answer.numa_nodes.size());
  answer.gpu_count = std::uint32_t(answer.gpu_list.size());
  answer.nic_count = std::uint32_t(answer.nic_list.size());
  answer.numa = answer.numa_nodes.data();
  answer.gpus = answer.gpu_list.data();
  answer.nics = answer.nic_list.data();
  answer.distance = answer.distances.data();
  answer.release = [](const slimpi_hwloc* given) { delete static_cast<const Answer*>(given); };
}

int refuse(char* error, std::size_t size, const char* text) {
  std::snprintf(error, size, "%s", text);
  return 1;
}

}  // namespace

extern "C" int slimpi_hwloc_load(uint32_t version, const slimpi_hwloc** result, char* error,
                                 size_t error_size) {
  if (version != SLIMPI_HWLOC_VERSION)
    return refuse(error, error_size, "made for another version of slimpi");
  if (hwloc_get_api_version() >> 16 != HWLOC_API_VERSION >> 16)
    return refuse(error, error_size, "the process has loaded another major version of hwloc");
  hwloc_topology_t raw = nullptr;
  if (hwloc_topology_init(&raw) != 0) return refuse(error, error_size, "hwloc does not start");
  const Handle topology(raw);
  // These would start GPU drivers. Only the program may do that.
  for (const char* component : {"cuda", "gl", "levelzero", "nvml", "opencl", "rsmi"})
    hwloc_topology_set_components(raw, HWLOC_TOPOLOGY_COMPONENTS_FLAG_BLACKLIST, component);
  hwloc_topology_set_io_types_filter(raw, HWLOC_TYPE_FILTER_KEEP_IMPORTANT);
  hwloc_topology_set_cache_types_filter(raw, HWLOC_TYPE_FILTER_KEEP_NONE);
  if (hwloc_topology_load(raw) != 0)
    return refuse(error, error_size, "hwloc cannot read the topology");
  try {
    auto answer = std::make_unique<Answer>();
    fill(raw, *answer);
    *result = answer.get();
    static_cast<void>(answer.release());
    return 0;
  } catch (const std::bad_alloc&) {
    return refuse(error, error_size, "no memory");
  }
}
