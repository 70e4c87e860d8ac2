// SPDX-License-Identifier: BSD-3-Clause
// No message buffer is written while a slow reader may still read it, whatever the lengths of the
// calls; and a place of a short call is used again late.
#include "intra/shared_memory.h"

#include <deque>
#include <random>

#include "tests/helper/base/unit_test.h"

using slimpi::intra::BufferRing;

namespace {

constexpr std::uint64_t kLongest = 128 << 10;

struct Written {
  std::uint64_t first, last;  // floats, the last included
};

// While a rank writes a block, other ranks may still read the two blocks of the call before this
// block. While it writes the first block, they may still read the last block of the previous call.
UNIT_TEST(what_others_may_still_read_is_not_written) {
  std::mt19937_64 random(20261123);
  for (const std::uint64_t longest : {kLongest, std::uint64_t(8) << 10}) {
    BufferRing ring(longest);
    std::deque<Written> seen;
    for (int call = 0; call < 100000; ++call) {
      const std::uint64_t blocks = random() % 3 == 0 ? 1 + random() % 5 : 1;
      const std::uint64_t floats =
          blocks > 1 ? longest : 1 + random() % (longest >> random() % 12 >> 1);
      const BufferRing::Buffers buffers = ring.next(floats);
      for (std::uint64_t block = 0; block < blocks; ++block) {
        while (seen.size() > std::max<std::uint64_t>(block, 1)) seen.pop_front();
        const std::uint64_t place = buffers.place(block);
        const Written now{place, place + floats - 1};
        assert_true(now.last < ring.floats());
        assert_int_equal(place % 16, 0);
        for (const Written& earlier : seen)
          assert_true(now.last < earlier.first || earlier.last < now.first);
        seen.push_back(now);
        if (seen.size() > 2) seen.pop_front();
      }
      ring.pass(buffers, blocks);
    }
  }
}

// A call that is done elsewhere passes nothing, and the next one begins at the same place.
UNIT_TEST(a_call_that_passes_nothing_changes_nothing) {
  BufferRing ring(kLongest);
  ring.pass(ring.next(5000), 1);
  const std::uint64_t place = ring.next(kLongest).place(0);
  assert_int_equal(ring.next(kLongest).place(0), place);
}

UNIT_TEST(a_short_call_passes_the_whole_ring) {
  BufferRing ring(kLongest);
  const std::uint64_t floats = 16 << 10;
  int calls = 0;
  do {
    ring.pass(ring.next(floats), 1);
    ++calls;
  } while (ring.next(floats).place(0) != 0);
  assert_int_equal(calls, int(ring.floats() / floats));
}

UNIT_TEST(calls_of_two_blocks_use_the_same_two_buffers) {
  BufferRing ring(kLongest);
  for (int call = 0; call < 10; ++call) {
    const BufferRing::Buffers buffers = ring.next(kLongest);
    assert_int_equal(buffers.place(0), 0);
    assert_int_equal(buffers.place(1), kLongest);
    ring.pass(buffers, 2);
  }
}

}  // namespace
