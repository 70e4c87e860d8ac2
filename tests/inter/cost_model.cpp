// SPDX-License-Identifier: BSD-3-Clause
#include "tools/bench/cost.h"

#include "inter/schedule.h"
#include "tests/helper/base/unit_test.h"

using namespace slimpi::cost;

namespace {

constexpr double kBytes = 64 << 20;

// Returns the constants of a network that costs nothing but its bandwidth.
Constants only_link() {
  Constants c;
  c.latency = c.overhead = c.copy = c.add = c.node_copy = 0;
  c.link = 8e-9;
  c.encode = c.decode = 0;
  return c;
}

double seconds(Schedule schedule, double bytes, const Layout& layout, const Constants& c) {
  return predict(schedule, bytes, 8, layout, c).seconds;
}

void near(double value, double wanted, double tolerance) {
  if (!(std::abs(value - wanted) <= tolerance * wanted))
    fail_msg("%g is not near %g", value, wanted);
}

UNIT_TEST(links_set_the_limit) {
  const Constants c = only_link();
  for (const double nodes : {2.0, 4.0, 16.0}) {
    const double plain = 2 * (nodes - 1) / nodes * kBytes * c.link;
    near(seconds(Schedule::ring, kBytes, {nodes, 1}, c), plain, 1e-9);
    near(seconds(Schedule::halving, kBytes, {nodes, 1}, c), plain, 1e-9);
    // The time of the headers of buckets is added: 2 values of 512.
    near(seconds(Schedule::flat, kBytes, {nodes, 1}, c), plain * (8 / 32.0 + 2 / 512.0), 5e-3);
    near(predict(Schedule::flat, kBytes, 4, {nodes, 1}, c).seconds, plain * (4 / 32.0 + 2 / 512.0),
         5e-3);
  }
}

UNIT_TEST(ranks_beyond_a_power_of_two_cost_plain_halving) {
  const Constants c = only_link();
  assert_true(seconds(Schedule::halving, kBytes, {5, 1}, c) >
              1.9 * seconds(Schedule::halving, kBytes, {4, 1}, c));
  assert_true(seconds(Schedule::flat, kBytes, {5, 1}, c) <
              1.1 * seconds(Schedule::flat, kBytes, {4, 1}, c));
}

UNIT_TEST(small_buffers_are_held_by_latency) {
  const Constants c;
  const Cost halving = predict(Schedule::halving, 1024, 8, {64, 1}, c);
  assert_string_equal(held_by(halving), "latency");
  assert_true(halving.seconds < seconds(Schedule::ring, 1024, {64, 1}, c));
  assert_true(cheapest(true, 1024, 8, {64, 1}, c) == Schedule::halving);
}

UNIT_TEST(hierarchies_spare_the_link_and_the_peers) {
  const Constants c = only_link();
  const Layout layout{16, 8};
  const Cost flat = predict(Schedule::flat, kBytes, 8, layout, c);
  const Cost leader = predict(Schedule::leader, kBytes, 8, layout, c);
  const Cost sharded = predict(Schedule::sharded, kBytes, 8, layout, c);
  assert_true(flat.link > 4 * leader.link);
  near(sharded.link, leader.link, 1e-2);
  near(flat.peers, 120, 1e-9);
  near(sharded.peers, 15, 1e-9);
  // All ranks of a node encode their shards at once; a leader encodes the whole vector.
  Constants slow;
  slow.link = 0;
  assert_true(seconds(Schedule::sharded, kBytes, layout, slow) <
              seconds(Schedule::leader, kBytes, layout, slow));
}

UNIT_TEST(ranks_that_share_cores_wait_for_them) {
  Constants c;
  c.link = 0;
  const double alone = seconds(Schedule::flat, kBytes, {4, 1, 1}, c);
  near(seconds(Schedule::flat, kBytes, {2, 2, 1}, c), 2 * alone, 0.02);
  near(seconds(Schedule::flat, kBytes, {2, 2, 2}, c), alone, 1e-9);
}

UNIT_TEST(messages_and_peers_break_first_at_scale) {
  Constants c;
  c.link = 8e-9;
  const Cost flat = predict(Schedule::flat, kBytes, 8, {100'000, 1}, c);
  // 64 MiB are 32768 buckets, so at most 32768 nodes own a bucket, and each owner sends to all
  // nodes.
  near(flat.messages, 32768 + 99'999, 1e-3);
  assert_true(flat.link > 1.9 * predict(Schedule::flat, kBytes, 8, {32768, 1}, c).link);
  near(flat.peers, 99'999, 1e-9);
  assert_true(flat.memory > 99'999.0 * 3 * 512);
  assert_string_equal(held_by(flat), "link");
  // 1,000 nodes of 100 ranks: a leader, or a rank of the sharded hierarchy, meets 999 others.
  near(predict(Schedule::sharded, kBytes, 8, {1000, 100}, c).peers, 999, 1e-9);
  const Cost leader = predict(Schedule::leader, kBytes, 8, {1000, 100}, c);
  near(leader.peers, 999, 1e-9);
  assert_true(leader.seconds < flat.seconds / 1.7);
}

UNIT_TEST(relaying_saves_messages_and_peers) {
  const Constants c;
  const Cost bruck = predict(Schedule::bruck, 65536 * 4, 8, {1000, 1}, c);
  const Cost flat = predict(Schedule::flat, 65536 * 4, 8, {1000, 1}, c);
  near(bruck.messages, 20, 1e-9);
  near(bruck.peers, 20, 1e-9);
  near(flat.peers, 999, 1e-9);
  assert_true(flat.messages > 1000);
  // With Bruck, large buffers would travel many times.
  assert_true(seconds(Schedule::bruck, kBytes, {64, 1}, c) >
              1.5 * seconds(Schedule::flat, kBytes, {64, 1}, c));
}

// The library chooses a schedule by the times that slimpi-bench --predict prints.
UNIT_TEST(schedules_are_chosen_by_it) {
  using Size = slimpi::inter::ExchangeSize;
  for (const int bits : {8, 4, 2})
    for (const double nodes : {2, 16, 64, 200, 256, 1024, 4096})
      for (const std::uint64_t count :
           {100, 16'384, 20'000, 262'144, 1'000'000, 4 << 20, 64 << 20}) {
        const slimpi::kernels::Format format{slimpi::kernels::Codec::quantized, std::uint8_t(bits)};
        const Cost pairwise = predict(Schedule::sharded, 4.0 * count, bits, {nodes, 1}, {});
        const Cost bruck = predict(Schedule::bruck, 4.0 * count, bits, {nodes, 1}, {});
        const char* const chosen =
            slimpi::inter::schedule_for(Size{format, count, int(nodes)}).name;
        assert_string_equal(chosen, pairwise.seconds <= bruck.seconds ? "pairwise" : "bruck");
      }
  // The model includes the copies of blocks that are forwarded, which overlap with nothing.
  assert_true(used(kBytes, 8, {256, 1}) == Schedule::sharded);
  assert_true(used(4096, 8, {1000, 1}) == Schedule::bruck);
}

UNIT_TEST(the_busiest_rank_sends_its_share) {
  const slimpi::kernels::Format format{slimpi::kernels::Codec::quantized};
  // 64 buckets on 8 nodes: chunks of 8 buckets in one message each, all of one length.
  const Traffic traffic = pairwise_traffic({format, 64 * 512, 8});
  const double message = 48 + 8 * (8 + 512);
  near(traffic.messages, 14, 1e-12);
  near(traffic.bytes, 14 * message, 1e-12);
  // Three buckets on 8 nodes: three owners, each of which sends to two others and to all.
  near(pairwise_traffic({format, 3 * 512, 8}).messages, 9, 1e-12);
}

UNIT_TEST(one_node_and_one_rank_send_nothing) {
  const Constants c;
  for (const Schedule schedule : kSchedules) {
    const Cost one = predict(schedule, kBytes, 8, {1, 1}, c);
    near(one.seconds + 1, 1, 1e-12);
    const Cost node = predict(schedule, kBytes, 8, {1, 4}, c);
    near(node.link + node.peers + 1, 1, 1e-12);
  }
}

}  // namespace
