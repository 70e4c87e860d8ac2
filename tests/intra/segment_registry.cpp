// SPDX-License-Identifier: BSD-3-Clause
#include "intra/segment_registry.h"

#include "intra/device_path.h"
#include "tests/helper/cmocka_cxx.h"

using slimpi::Intra;
using slimpi::Statistics;
using slimpi::Status;
using slimpi::intra::NodeSegment;
using slimpi::intra::SegmentRegistry;

namespace {

constexpr std::uint64_t kBlock = 1024;
const std::vector<std::uint64_t> kAlone = {5};

std::shared_ptr<NodeSegment> make(std::uint64_t id, Statistics& statistics) {
  slimpi::SharedFile file;
  auto made = std::make_shared<NodeSegment>(id, kAlone, 0, kBlock, statistics);
  assert_true(file.create(made->bytes()) == Status::ok);
  assert_true(made->map(file, true) == Status::ok);
  return made;
}

void communicators_share_a_segment(void**) {
  SegmentRegistry registry;
  Statistics statistics;
  int channel = -1;
  assert_null(registry.find(kAlone, Intra::automatic, &channel).get());
  auto first = make(1, statistics);
  const int own = first->take_channel();
  registry.add(first, Intra::automatic);
  auto second = registry.find(kAlone, Intra::automatic, &channel);
  assert_ptr_equal(second.get(), first.get());
  assert_int_not_equal(channel, own);
  assert_null(registry.find({5, 6}, Intra::automatic, &channel).get());
  assert_null(registry.find(kAlone, Intra::shm, &channel).get());
  assert_int_equal(int(statistics.most_segments()), 1);
  registry.release(std::move(first));
  assert_int_equal(int(registry.size()), 1);
  registry.release(std::move(second));
  assert_int_equal(int(registry.size()), 0);
  assert_null(registry.find(1).get());
}

void channels_come_back_empty(void**) {
  Statistics statistics;
  const auto segment = make(2, statistics);
  const int channel = segment->take_channel();
  *segment->line(0, channel) = std::byte(1);
  segment->leave_channel(channel);
  assert_int_equal(segment->take_channel(), channel);
  assert_int_equal(int(*segment->line(0, channel)), 0);
  for (int i = 1; i < NodeSegment::kChannels; ++i) assert_true(segment->take_channel() >= 0);
  assert_int_equal(segment->take_channel(), -1);
}

void one_call_at_a_time_has_the_lease(void**) {
  Statistics statistics;
  const auto segment = make(3, statistics);
  assert_true(segment->try_lease());
  assert_false(segment->try_lease());
  segment->end_lease(false);
  assert_true(segment->try_lease());
  segment->end_lease(true);
  assert_false(segment->try_lease());  // the processes may be at different blocks
}

}  // namespace

int main() {
  const CMUnitTest tests[] = {
      cmocka_unit_test(communicators_share_a_segment),
      cmocka_unit_test(channels_come_back_empty),
      cmocka_unit_test(one_call_at_a_time_has_the_lease),
  };
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}
