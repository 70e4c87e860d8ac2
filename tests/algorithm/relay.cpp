// SPDX-License-Identifier: BSD-3-Clause
#include "algorithm/relay.h"

#include <set>
#include <utility>
#include <vector>

#include "tests/helper/cmocka_cxx.h"

namespace {

using slimpi::algorithm::Relay;

constexpr int kMostMembers = 70;

struct Block {
  int from, to;
};

// All members at once, with blocks that know where they come from and where they are to go.
void every_block_arrives_where_it_belongs(void**) {
  for (int members = 1; members <= kMostMembers; ++members) {
    const Relay relay(members);
    std::vector<std::vector<Block>> held(static_cast<std::size_t>(members));
    for (int member = 0; member < members; ++member)
      for (int place = 0; place < members; ++place)
        held[std::size_t(member)].push_back({member, relay.further(member, place)});
    for (int step = 0; step < relay.steps(); ++step) {
      const auto before = held;
      for (int member = 0; member < members; ++member)
        for (const int place : relay.travelling(step)) {
          const Block& block = before[std::size_t(member)][std::size_t(place)];
          assert_int_equal(relay.destination(member, place, step), block.to);
          held[std::size_t(relay.further(member, 1 << step))][std::size_t(place)] = block;
        }
    }
    for (int member = 0; member < members; ++member)
      for (int place = 0; place < members; ++place) {
        const Block& block = held[std::size_t(member)][std::size_t(place)];
        assert_int_equal(block.to, member);
        assert_int_equal(block.from, relay.back(member, place));
      }
  }
}

void everybody_gathers_everything(void**) {
  for (int members = 1; members <= kMostMembers; ++members) {
    const Relay relay(members);
    int held = 1;
    for (int step = 0; step < relay.steps(); ++step) {
      assert_int_equal(relay.gathered(step), held);
      assert_in_range(relay.to_gather(step), 1, held);
      held += relay.to_gather(step);
    }
    assert_int_equal(held, members);
  }
}

void steps_are_the_logarithm(void**) {
  const std::pair<int, int> known[] = {{1, 0}, {2, 1},     {3, 2},       {4, 2},
                                       {5, 3}, {1000, 10}, {100'000, 17}};
  for (const auto& [members, steps] : known) assert_int_equal(Relay(members).steps(), steps);
}

}  // namespace

int main() {
  const CMUnitTest tests[] = {
      cmocka_unit_test(every_block_arrives_where_it_belongs),
      cmocka_unit_test(everybody_gathers_everything),
      cmocka_unit_test(steps_are_the_logarithm),
  };
  return cmocka_run_group_tests(tests, nullptr, nullptr) != 0;
}
