// SPDX-License-Identifier: BSD-3-Clause
#include "inter/schedule.h"

#include "inter/neighbor_exchange.h"
#include "tests/helper/base/unit_test.h"
#include "tests/kernels/data.h"

namespace {

using namespace slimpi;
using comm::SegmentClass;
using inter::schedule_for;

std::string chosen(std::uint64_t count, int group_size) {
  return schedule_for({test::quantized(8, 2048), count, group_size}).name;
}

UNIT_TEST(few_nodes_and_large_buffers_go_by_pairwise_exchange) {
  for (const int group_size : {2, 3, 4, 8, 16})
    for (const std::uint64_t count : {0, 1, 16'384, 16 << 20})
      assert_string_equal(chosen(count, group_size).c_str(), "pairwise");
  assert_string_equal(chosen(256 << 20, 1000).c_str(), "pairwise");
  // Blocks that are forwarded are copied many times.
  for (const int group_size : {200, 256})
    assert_string_equal(chosen(16 << 20, group_size).c_str(), "pairwise");
}

UNIT_TEST(many_nodes_and_small_buffers_save_messages) {
  for (const int group_size : {500, 1000, 100'000})
    assert_string_equal(chosen(1024, group_size).c_str(), "bruck");
  for (const std::uint64_t count : {16'384, 65'536})
    assert_string_equal(chosen(count, 100'000).c_str(), "bruck");
}

// With a place for every peer, 100,000 nodes would take 600 MB for 64 MiB of floats.
UNIT_TEST(memory_counts) {
  const kernels::Format format = test::quantized(8, 2048);
  assert_string_equal(chosen(16 << 20, 100'000).c_str(), "bruck");
  const inter::ExchangeSize many{format, 16 << 20, 100'000};
  const inter::Need need = inter::PreparedExchange(many).need;
  const auto device_path = inter::schedules()[0].need(many);
  assert_true(need.bytes < device_path.bytes / 2);
  for (const int group_size : {2, 16, 1000}) {
    const std::size_t encoded = kernels::encoded_bytes(format, 16 << 20);
    const inter::ExchangeSize size{format, 16 << 20, group_size, SegmentClass::large, true};
    assert_true(inter::PreparedExchange(size).need.bytes < encoded + encoded / 2 + (16 << 20));
  }
}

inter::ExchangeSize sixteen_ki() {
  return {test::quantized(8, 2048), 16 << 10, 4, SegmentClass::small, false, 1};
}

// Exchanges of one size share a layout. An exchange that differs in anything has a layout of its
// own.
UNIT_TEST(a_size_is_prepared_once) {
  inter::PreparedExchanges all;
  const inter::ExchangeSize first = sixteen_ki();
  const inter::ExchangeLayout* const layout = all.find_or_prepare(first).layout.get();
  inter::ExchangeSize others[9];
  for (inter::ExchangeSize& other : others) other = first;
  others[0].count += 1;
  others[1].format.bits = 4;
  others[2].format.bucket = 512;
  others[3].format.stochastic = true;
  others[4].format.codec = kernels::Codec::fp16;
  others[5].group_size = 5;
  others[6].me = 2;
  others[7].segment_class = SegmentClass::large;
  others[8].staged = true;
  for (const inter::ExchangeSize& other : others) {
    assert_ptr_not_equal(all.find_or_prepare(other).layout.get(), layout);
    assert_ptr_equal(all.find_or_prepare(first).layout.get(), layout);
  }
}

UNIT_TEST(what_is_kept_is_bounded) {
  inter::PreparedExchanges all;
  inter::ExchangeSize size = sixteen_ki();
  size.group_size = 1000;
  for (size.count = 1; size.count <= 1000; ++size.count) {
    const inter::PreparedExchange& now = all.find_or_prepare(size);
    assert_int_equal(now.need.bytes, inter::PreparedExchange(size).need.bytes);
    assert_true(all.bytes() <= inter::PreparedExchanges::kMostBytes);
  }
}

// mpi/decentralized has the first rounds.
UNIT_TEST(peers_of_late_rounds) {
  for (const int group_size : {7, 8}) {
    const auto peer = [&](std::uint64_t round) {
      return inter::mixing(Peers::shift_one, group_size, 3, round).peers.at(0).member;
    };
    assert_int_equal(peer(UINT64_MAX / 7 * 7), peer(0));  // both have 7 rounds in a turn
  }
}

}  // namespace
