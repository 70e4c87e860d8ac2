// SPDX-License-Identifier: BSD-3-Clause
// Reads invented machines from XML and from a synthetic description, and this one.
#include "topology/topology.h"

#include <dlfcn.h>
#include <sched.h>
#include <unistd.h>

#include "base/plugin.h"
#include "tests/helper/base/unit_test.h"

using namespace slimpi;
using namespace slimpi::topology;

namespace {

Topology g_topology;

int forget(void**) {
  for (const char* name : {"HWLOC_XMLFILE", "HWLOC_SYNTHETIC", "HWLOC_THISSYSTEM"}) unsetenv(name);
  g_topology = {};
  return 0;
}

void load_xml(const char* file) {
  const char* source = getenv("top_srcdir");
  const std::string path =
      std::string(source == nullptr ? "." : source) + "/tests/topology/" + file;
  assert_int_equal(access(path.c_str(), R_OK), 0);
  setenv("HWLOC_XMLFILE", path.c_str(), 1);
  assert_true(load(g_topology) == Status::ok);
}

const Device& gpu(std::size_t index) {
  assert_true(index < g_topology.gpus.size());
  return g_topology.gpus[index];
}

void expect_device(const Device& device, const char* bus_id, const char* name, const char* model,
                   int numa_node) {
  assert_string_equal(device.bus_id.c_str(), bus_id);
  assert_string_equal(device.name.c_str(), name);
  assert_string_equal(device.model.c_str(), model);
  assert_int_equal(device.numa_node, numa_node);
}

UNIT_TEST(four_gpus, nullptr, forget) {
  load_xml("four_gpus.xml");
  assert_int_equal(g_topology.packages, 2);
  assert_int_equal(g_topology.cores, 4);
  assert_int_equal(g_topology.processing_units, 8);
  assert_int_equal(g_topology.numa_nodes.size(), 3);
  assert_int_equal(g_topology.numa_nodes[0].cores, 2);
  assert_int_equal(g_topology.numa_nodes[2].index, 2);
  assert_int_equal(g_topology.numa_nodes[2].cores, 1);
  assert_int_equal(g_topology.numa_nodes[2].memory >> 30, 64);
  assert_int_equal(g_topology.bound_numa_node, -1);  // another machine than this one

  // The console's VGA chip and the USB network device are not for us.
  assert_int_equal(g_topology.gpus.size(), 4);
  assert_int_equal(g_topology.nics.size(), 2);
  expect_device(gpu(0), "0000:03:00.0", "", "GH100 [H200 SXM 141GB]", 0);
  expect_device(gpu(1), "0000:08:00.0", "", "GH100 [H200 SXM 141GB]", 0);
  expect_device(gpu(2), "0000:21:00.0", "", "10de:2204", 0);
  expect_device(gpu(3), "0000:81:00.0", "", "1002:74a1", 1);
  expect_device(g_topology.nics[0], "0000:04:00.0", "ib0, mlx5_0", "MT2910 Family [ConnectX-7]", 0);
  expect_device(g_topology.nics[1], "0000:c1:00.0", "eth0", "8086:1592", 2);
}

UNIT_TEST(distances, nullptr, forget) {
  load_xml("four_gpus.xml");
  const Distance expected[4][2] = {{Distance::pci_switch, Distance::machine},
                                   {Distance::pci_root, Distance::machine},
                                   {Distance::numa_node, Distance::machine},
                                   {Distance::machine, Distance::package}};
  assert_int_equal(g_topology.distances.size(), 8);
  for (std::size_t i = 0; i < 8; ++i)
    assert_int_equal(g_topology.distances[i], expected[i / 2][i % 2]);
  assert_int_equal(nearest_nic(g_topology, 0), 0);
  assert_int_equal(nearest_nic(g_topology, 3), 1);
  assert_int_equal(leading_gpu(g_topology), 0);
  assert_true(distance_to_nic(g_topology, "0000:21:00.0") == Distance::numa_node);
  assert_true(distance_to_nic(g_topology, "0000:81:00.0") == Distance::package);
}

UNIT_TEST(bus_ids_in_any_spelling, nullptr, forget) {
  load_xml("four_gpus.xml");
  for (const char* id : {"0000:03:00.0", "00000000:03:00.0", "03:00.0", "0:3:0.0"})
    assert_true(distance_to_nic(g_topology, id) == Distance::pci_switch);
  g_topology.gpus[0].bus_id = "0000:3b:00.0";
  assert_true(distance_to_nic(g_topology, "0000:3B:00.0") == Distance::pci_switch);
  for (const char* id : {"", "0000:99:00.0", "0001:08:00.0", "08:00.0x", "GPU-08:00.0", "8"})
    assert_true(distance_to_nic(g_topology, id) == Distance::unknown);
}

UNIT_TEST(leader_is_the_nearest, nullptr, forget) {
  load_xml("four_gpus.xml");
  g_topology.distances = {Distance::machine,  Distance::machine,   Distance::package,
                          Distance::pci_root, Distance::numa_node, Distance::machine,
                          Distance::pci_root, Distance::machine};
  assert_int_equal(leading_gpu(g_topology), 1);  // the first of equals
  g_topology.nics.clear();
  g_topology.distances.clear();
  assert_int_equal(leading_gpu(g_topology), 0);
  assert_int_equal(nearest_nic(g_topology, 0), -1);
  assert_true(distance_to_nic(g_topology, "0000:03:00.0") == Distance::unknown);
  g_topology.gpus.clear();
  assert_int_equal(leading_gpu(g_topology), -1);
}

UNIT_TEST(far_card_and_binding, nullptr, forget) {
  cpu_set_t before;
  sched_getaffinity(0, sizeof before, &before);
  setenv("HWLOC_THISSYSTEM", "1", 1);
  int bound[2] = {-1, -1};
  for (int core = 0; core < 2; ++core) {
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(core, &one);
    bound[core] = sched_setaffinity(0, sizeof one, &one);  // fails where there is no such core
    load_xml("far_card.xml");
    if (bound[core] == 0) bound[core] = g_topology.bound_numa_node == core ? 0 : 1;
  }
  sched_setaffinity(0, sizeof before, &before);
  assert_int_not_equal(bound[0], 1);
  assert_int_not_equal(bound[1], 1);
  assert_true(distance_to_nic(g_topology, "0000:01:00.0") == Distance::machine);
}

UNIT_TEST(synthetic, nullptr, forget) {
  setenv("HWLOC_SYNTHETIC", "pack:2 [numa(memory=1GB)] core:4 pu:2", 1);
  assert_true(load(g_topology) == Status::ok);
  assert_int_equal(g_topology.packages, 2);
  assert_int_equal(g_topology.cores, 8);
  assert_int_equal(g_topology.processing_units, 16);
  assert_int_equal(g_topology.numa_nodes.size(), 2);
  assert_int_equal(g_topology.gpus.size() + g_topology.nics.size(), 0);
}

UNIT_TEST(this_machine, nullptr, forget) {
  assert_true(load(g_topology) == Status::ok);
  char name[256] = "";
  gethostname(name, sizeof name - 1);
  assert_string_equal(g_topology.hostname.c_str(), name);
  assert_true(g_topology.processing_units >= 1);
  assert_true(g_topology.numa_nodes.size() >= 1);
  assert_int_equal(g_topology.distances.size(), g_topology.gpus.size() * g_topology.nics.size());
}

// Another version of the part is refused with a reason, not used.
UNIT_TEST(other_versions_are_refused) {
  void* part = dlopen(find_plugin("slimpi-hwloc.so").c_str(), RTLD_NOW | RTLD_LOCAL);
  assert_non_null(part);
  const auto function = reinterpret_cast<LoadFunction*>(dlsym(part, "slimpi_hwloc_load"));
  Topology result;
  char error[64] = "";
  assert_int_not_equal(function(kPluginVersion + 1, &result, error, sizeof error), 0);
  assert_string_equal(error, "made for another version of slimpi");
  assert_int_equal(result.cores, 0);
  dlclose(part);
}

UNIT_TEST(parts_that_are_not_there) {
  assert_string_equal(find_plugin("slimpi-nonsense.so").c_str(), "");
}

GROUP_FIXTURES(forget, nullptr);

}  // namespace
