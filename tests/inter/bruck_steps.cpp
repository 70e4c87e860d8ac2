// SPDX-License-Identifier: BSD-3-Clause
#include "inter/bruck.h"

#include <set>
#include <utility>
#include <vector>

#include "tests/helper/cmocka_cxx.h"

namespace {

using slimpi::inter::BruckSteps;

constexpr int kMostMembers = 70;

struct Block {
  int from, to;
};

// All members at once, with blocks that know where they come from and where they are to go.
void every_block_arrives_where_it_belongs(void**) {
  for (int group_size = 1; group_size <= kMostMembers; ++group_size) {
    const BruckSteps bruck(group_size);
    std::vector<std::vector<Block>> held(static_cast<std::size_t>(group_size));
    for (int member = 0; member < group_size; ++member)
      for (int place = 0; place < group_size; ++place)
        held[std::size_t(member)].push_back({member, bruck.further(member, place)});
    for (int step = 0; step < bruck.steps(); ++step) {
      const auto before = held;
      for (int member = 0; member < group_size; ++member)
        for (int i = 0; i < bruck.travelling(step); ++i) {
          const int place = bruck.place(step, i);
          const Block& block = before[std::size_t(member)][std::size_t(place)];
          assert_int_equal(bruck.destination(member, place, step), block.to);
          held[std::size_t(bruck.further(member, 1 << step))][std::size_t(place)] = block;
        }
    }
    for (int member = 0; member < group_size; ++member)
      for (int place = 0; place < group_size; ++place) {
        const Block& block = held[std::size_t(member)][std::size_t(place)];
        assert_int_equal(block.to, member);
        assert_int_equal(block.from, bruck.back(member, place));
      }
  }
}

void everybody_gathers_everything(void**) {
  for (int group_size = 1; group_size <= kMostMembers; ++group_size) {
    const BruckSteps bruck(group_size);
    int held = 1;
    for (int step = 0; step < bruck.steps(); ++step) {
      assert_int_equal(bruck.gathered(step), held);
      assert_in_range(bruck.to_gather(step), 1, held);
      held += bruck.to_gather(step);
    }
    assert_int_equal(held, group_size);
  }
}

void steps_are_the_logarithm(void**) {
  const std::pair<int, int> known[] = {{1, 0}, {2, 1},     {3, 2},       {4, 2},
                                       {5, 3}, {1000, 10}, {100'000, 17}};
  for (const auto& [group_size, steps] : known)
    assert_int_equal(BruckSteps(group_size).steps(), steps);
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
