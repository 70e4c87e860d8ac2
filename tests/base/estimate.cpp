// SPDX-License-Identifier: BSD-3-Clause
// When the nodes of an estimate share one machine.
#include "base/estimate.h"

#include "tests/helper/cmocka_cxx.h"

using slimpi::on_one_machine;
using slimpi::Report;

namespace {

// Four nodes of two ranks, which named `hosts`, and of which `counted` were asked.
Report job(std::vector<std::string> hosts, int counted = 8) {
  Report report;
  report.ranks = 8;
  report.nodes = 4;
  report.ranks_counted = counted;
  report.hosts = std::move(hosts);
  return report;
}

void by_the_hosts(void**) {
  for (const bool nodes_by_mpi : {false, true}) {
    assert_true(on_one_machine(job({"a"}), nodes_by_mpi, false));
    assert_false(on_one_machine(job({"a", "b"}), nodes_by_mpi, false));
    assert_true(on_one_machine(job({"a", "b"}), nodes_by_mpi, true));
  }
}

// MPI_Pcontrol(2) asks no other rank, and a program with sessions may have no communicator of all
// ranks. Nodes that MPI found are machines.
void by_the_nodes_where_hosts_are_not_known(void**) {
  assert_false(on_one_machine(job({}, 1), true, false));
  assert_false(on_one_machine(job({"a"}, 1), true, false));
  assert_false(on_one_machine(job({}), true, false));  // no memory for the names
  assert_true(on_one_machine(job({}, 1), true, true));
  // Ranks that only count as nodes.
  assert_true(on_one_machine(job({}, 1), false, false));
  assert_true(on_one_machine(job({"a"}, 1), false, false));
  Report alone = job({"a"}, 1);
  alone.nodes = 1;
  assert_true(on_one_machine(alone, true, false));
}

}  // namespace

int main() {
  const CMUnitTest tests[] = {
      cmocka_unit_test(by_the_hosts),
      cmocka_unit_test(by_the_nodes_where_hosts_are_not_known),
  };
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}
