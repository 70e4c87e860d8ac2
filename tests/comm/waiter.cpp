// SPDX-License-Identifier: BSD-3-Clause
// The thread that enters fibers knows when one of them begins to wait for another message.
#include "comm/waiter.h"

#include "base/fiber.h"
#include "tests/helper/base/unit_test.h"

using namespace slimpi;
using comm::Waiter;

namespace {

int g_arrived = 0;  // messages

void receive_three(void*) {
  for (int messages = 1; messages <= 3; ++messages)
    for (Waiter waiter(Waiter::Poll::mpi); g_arrived < messages;) waiter.rest();
}

UNIT_TEST(a_fiber_moves_when_it_waits_for_another_message) {
  Fiber fiber;
  std::uint64_t seen = 0;
  (void)comm::fibers_moved(&seen);
  count_fibers(1, [] {});
  fiber.prepare(&receive_three, nullptr, Fiber::Stack::small);
  assert_true(fiber.enter());
  assert_true(comm::fibers_moved(&seen));
  assert_false(comm::fibers_moved(&seen));
  assert_true(fiber.enter());
  assert_false(comm::fibers_moved(&seen));  // nothing has arrived
  g_arrived = 1;
  assert_true(fiber.enter());
  assert_true(comm::fibers_moved(&seen));
  g_arrived = 3;
  assert_false(fiber.enter());
  assert_false(comm::fibers_moved(&seen));  // no wait for the third message
  count_fibers(-1, [] {});
}

}  // namespace
