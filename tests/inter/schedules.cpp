// SPDX-License-Identifier: BSD-3-Clause
// Every schedule between nodes under random interleavings of 2 to 17 ranks, with synchronous sends,
// in one process: nobody deadlocks, every message is received and waited for, and result, residual
// and totals have the bytes of a direct computation. Some ranks have a device that does its work
// late; some calls have work inside the node to do meanwhile. A scatter is the reduce-scatter
// alone, a hook a codec whose payloads have lengths of their own. The second tier runs thousands of
// seeds, the first fewer. TEST_SEEDS=FIRST:LAST runs other ones.

#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <string>

// Before CMocka, which has a macro of the name of a function in base/status.h.
#include "comm/waiter.h"
#include "tests/inter/run.h"

#include "tests/helper/cmocka_cxx.h"

namespace {

using namespace slimpi;
using test::Case;

// The last seed of each schedule.
std::uint64_t last_seed() {
  const char* const expensive = std::getenv("RUN_EXPENSIVE_TESTS");
  return expensive != nullptr && std::string(expensive) == "yes" ? 1000 : 400;
}

// Runs cases of `kind` with the seeds of one block.
void run_seeds(Case::Kind kind, std::uint64_t first, std::uint64_t last,
               Case (*draw)(Case::Kind, std::uint64_t) = test::draw_case) {
  std::uint64_t from = first, to = last;
  if (const char* const wanted = std::getenv("TEST_SEEDS"); wanted != nullptr)
    if (std::sscanf(wanted, "%" SCNu64 ":%" SCNu64, &from, &to) != 2)
      fail_msg("TEST_SEEDS=%s", wanted);
  for (std::uint64_t seed = from; seed <= to; ++seed) {
    const Case one = draw(kind, seed);
    const std::string failure = test::run_case(one);
    if (!failure.empty())
      fail_msg("seed %llu (%s): %s", static_cast<unsigned long long>(seed), one.text().c_str(),
               failure.c_str());
  }
}

void pairwise(void**) {
  run_seeds(Case::Kind::pairwise, 1, last_seed());
}
void scatter(void**) {
  run_seeds(Case::Kind::scatter, 1, last_seed());
}
void hook(void**) {
  run_seeds(Case::Kind::hook, 1, last_seed());
}
void bruck(void**) {
  run_seeds(Case::Kind::bruck, 1, last_seed());
}
void neighbor_exchange(void**) {
  run_seeds(Case::Kind::neighbors, 1, last_seed());
}
// Where no buffer may be received into before the kernels that read it are complete.
void staged_rings(void**) {
  run_seeds(Case::Kind::pairwise, 1, 12, test::draw_staged_ring);
  run_seeds(Case::Kind::scatter, 1, 12, test::draw_staged_ring);
  run_seeds(Case::Kind::neighbors, 1, 12, test::draw_staged_ring);
}

}  // namespace

int main() {
  comm::poll_without_rest();
  const CMUnitTest tests[] = {
      cmocka_unit_test(pairwise),
      cmocka_unit_test(scatter),
      cmocka_unit_test(hook),
      cmocka_unit_test(bruck),
      cmocka_unit_test(neighbor_exchange),
      cmocka_unit_test(staged_rings),
  };
  return cmocka_run_group_tests(tests, nullptr, nullptr) != 0;
}
