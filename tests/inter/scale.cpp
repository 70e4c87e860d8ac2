// SPDX-License-Identifier: BSD-3-Clause
// The schedules between nodes among 256 ranks and more in one process: the results are right, and
// the busiest rank has the messages, bytes, peers and scratch memory that the cost model,
// Schedule::need and the formulas here say. A bucket takes 16 bytes in every row, so each block is
// a message of 64. The second tier goes up to 4096 ranks. Each row is printed.
#include "inter/bruck.h"

#include <set>

#include "comm/waiter.h"
#include "inter/cost_model.h"
#include "tests/inter/run.h"

#include "tests/helper/base/unit_test.h"

namespace {

using namespace slimpi;
using test::Busiest;
using test::Case;
using Kind = test::Case::Kind;

constexpr std::size_t kMessage = 64;
constexpr const char* kNames[] = {"pairwise", "bruck", "neighbors", "scatter"};

struct Row {
  Kind kind;
  int ranks;
  std::uint64_t blocks;  // buckets in the vector; with fewer than ranks, some own none
  std::uint8_t bits = 8;
  std::uint64_t segments = 1;  // of a chunk
  Peers peers = Peers::ring;
};

Case case_of(const Row& row) {
  Case one;
  one.kind = row.kind;
  one.seed = std::uint64_t(row.ranks);
  one.ranks = row.ranks;
  one.format = {kernels::Codec::quantized, row.bits, false, 64u / row.bits};
  one.count = row.blocks * one.format.bucket;
  one.peers = row.peers;
  one.totals = one.even = row.kind == Kind::scatter;
  one.piece = row.segments == 1 ? 0 : one.format.bucket;
  return one;
}

inter::ExchangeSize size_of(const Row& row) {
  const Case one = case_of(row);
  return {one.format, one.count, one.ranks};
}

// A rank sends a message to each owner and its sum to all, and has a buffer for each, for what each
// sends, and for its sum.
Busiest of_pairwise(const Row& row) {
  const std::size_t others = std::size_t(row.ranks - 1);
  const std::size_t owners = std::min(row.blocks, std::uint64_t(row.ranks));
  const std::size_t messages = (owners - 1 + others) * row.segments;
  if (row.segments == 1) {
    const cost::Traffic traffic = cost::pairwise_traffic(size_of(row));
    assert_true(traffic.messages == double(messages));
    assert_true(traffic.bytes == double(messages * kMessage));
    assert_int_equal(inter::schedules()[0].need(size_of(row)).bytes, (3 * others + 1) * kMessage);
  }
  return {messages, messages * kMessage, others, (3 * others + 1) * row.segments * kMessage};
}

// Returns the same numbers for a reduce-scatter, which sends no finished sums.
Busiest of_scatter(const Row& row) {
  const std::size_t others = std::size_t(row.ranks - 1);
  assert_int_equal(inter::scatter_segments(size_of(row), case_of(row).chunk(0).count).total,
                   2 * others * kMessage);
  return {others, others * kMessage, others, 2 * others * kMessage};
}

// In step k of each phase a rank sends to the one 2^k further on, or back. Where all own a bucket,
// step k of the first phase forwards the blocks whose distance to their owner has bit k, and the
// second gathers one of each other rank; with a power of two of ranks the model counts its own sum
// with these. With others the model is a bound.
Busiest of_bruck(const Row& row) {
  const inter::BruckSteps bruck(row.ranks);
  const std::size_t ranks = std::size_t(row.ranks);
  std::set<int> peers;
  std::size_t longest = 0, blocks = ranks - 1;
  for (int step = 0; step < bruck.steps(); ++step) {
    peers.insert({bruck.further(0, 1 << step), bruck.back(0, 1 << step)});
    std::size_t forwarded = 0;
    for (std::size_t distance = 1; distance < ranks; ++distance) forwarded += distance >> step & 1;
    longest = std::max(longest, forwarded);
    blocks += forwarded;
  }
  const inter::ExchangeSize size = size_of(row);
  const cost::Traffic traffic = cost::bruck_traffic(size);
  const std::size_t most = inter::BruckLayout::kMostInMessage;
  assert_true(traffic.messages == 2.0 * bruck.steps());
  assert_int_equal(inter::bruck_need(size).bytes, (ranks + 1) * kMessage + 2 * most);
  cost::Cost cost;
  cost::add_bruck(cost, size, 1, {});
  assert_true(cost.peers >= double(peers.size()));  // half a ring further on is half a ring back
  const bool even = row.blocks == ranks;
  if (even && (ranks & (ranks - 1)) == 0)
    assert_true(traffic.bytes == double((blocks + 1) * kMessage));
  return {std::size_t(traffic.messages), even ? blocks * kMessage : std::size_t(traffic.bytes),
          peers.size(), (ranks + 1) * kMessage + most + longest * kMessage};
}

Busiest of_neighbors(const Row& row) {
  const std::size_t peers = row.peers == Peers::all         ? std::size_t(row.ranks - 1)
                            : row.peers == Peers::shift_one ? 1
                                                            : 2;
  const Case one = case_of(row);
  assert_int_equal(inter::neighbor_segments(one.format, one.count, int(peers), false).total,
                   (peers + 1) * kMessage);
  return {peers, peers * kMessage, peers, (peers + 1) * kMessage};
}

void run(const Row& row) {
  static constexpr Busiest (*kWanted[])(const Row&) = {of_pairwise, of_bruck, of_neighbors,
                                                       of_scatter};
  const Case one = case_of(row);
  const Busiest wanted = kWanted[int(row.kind)](row);
  Busiest got;
  const std::string failure = test::run_case(one, nullptr, &got);
  std::printf("%-9s %s: %zu messages, %zu bytes, %zu peers, %zu bytes of scratch memory\n",
              kNames[int(row.kind)], one.text().c_str(), got.messages, got.bytes, got.peers,
              got.scratch);
  if (!failure.empty()) fail_msg("%s", failure.c_str());
  const bool bound = row.kind == Kind::bruck && row.blocks != std::uint64_t(row.ranks);
  assert_int_equal(got.peers, wanted.peers);
  if (bound) {
    assert_in_range(got.messages, 1, wanted.messages);
    assert_in_range(got.bytes, 1, wanted.bytes);
    assert_in_range(got.scratch, 1, wanted.scratch);
    return;
  }
  assert_int_equal(got.messages, wanted.messages);
  assert_int_equal(got.bytes, wanted.bytes);
  assert_int_equal(got.scratch, wanted.scratch);
}

UNIT_TEST(hundreds_of_ranks) {
  for (const Row& row :
       {Row{Kind::pairwise, 256, 256}, Row{Kind::pairwise, 257, 100, 4},
        Row{Kind::pairwise, 64, 64 * 3, 2, 3}, Row{Kind::bruck, 256, 256, 4},
        Row{Kind::bruck, 257, 100, 2}, Row{Kind::bruck, 100, 100}, Row{Kind::scatter, 256, 256, 2},
        Row{Kind::neighbors, 256, 1}, Row{Kind::neighbors, 257, 1, 4, 1, Peers::all},
        Row{Kind::neighbors, 256, 1, 2, 1, Peers::shift_one}})
    run(row);
}

UNIT_TEST(thousands_of_ranks) {
  const char* const expensive = std::getenv("RUN_EXPENSIVE_TESTS");
  if (expensive == nullptr || std::string(expensive) != "yes") skip();
  for (const Row& row : {Row{Kind::pairwise, 1024, 1024, 4}, Row{Kind::scatter, 1024, 1024},
                         Row{Kind::bruck, 1024, 1024}, Row{Kind::neighbors, 4096, 1},
                         Row{Kind::neighbors, 4096, 1, 4, 1, Peers::shift_one}})
    run(row);
}

int prepare(void**) {
  comm::poll_without_rest();
  return 0;
}
GROUP_FIXTURES(prepare, nullptr);

}  // namespace
