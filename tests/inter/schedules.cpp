// SPDX-License-Identifier: BSD-3-Clause
// Every schedule between nodes under random interleavings of 2 to 17 ranks, with synchronous sends,
// in one process: nobody deadlocks, every message is received and waited for, and result, residual
// and totals have the bytes of a direct computation. Some ranks have a device that does its work
// late; some calls have work inside the node to do meanwhile. A scatter is the reduce-scatter
// alone, a gather the all-gather alone, a hook a codec whose payloads have lengths of their own.
// The second tier runs thousands of seeds, the first fewer. TEST_SEEDS=FIRST:LAST runs other ones.

#include <cinttypes>

// Before CMocka, which has a macro of the name of a function in base/status.h.
#include "comm/waiter.h"
#include "tests/inter/run.h"

#include "tests/helper/base/unit_test.h"

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

UNIT_TEST(pairwise) {
  run_seeds(Case::Kind::pairwise, 1, last_seed());
}
UNIT_TEST(scatter) {
  run_seeds(Case::Kind::scatter, 1, last_seed());
}
UNIT_TEST(gather) {
  run_seeds(Case::Kind::gather, 1, last_seed());
}
UNIT_TEST(hook) {
  run_seeds(Case::Kind::hook, 1, last_seed());
}
UNIT_TEST(bruck) {
  run_seeds(Case::Kind::bruck, 1, last_seed());
}
UNIT_TEST(neighbor_exchange) {
  run_seeds(Case::Kind::neighbors, 1, last_seed());
}
// No buffer may be received into before the kernels that read it are complete.
UNIT_TEST(staged_rings) {
  run_seeds(Case::Kind::pairwise, 1, 12, test::draw_staged_ring);
  run_seeds(Case::Kind::scatter, 1, 12, test::draw_staged_ring);
  run_seeds(Case::Kind::gather, 1, 12, test::draw_staged_ring);
  run_seeds(Case::Kind::neighbors, 1, 12, test::draw_staged_ring);
}

int prepare(void**) {
  comm::poll_without_rest();
  return 0;
}
GROUP_FIXTURES(prepare, nullptr);

}  // namespace
