// SPDX-License-Identifier: BSD-3-Clause
// SLIMPI_SELFTEST: sums integers that every rank can compute by itself, with the messages and the
// shared memory that the communicator's own sums use. If the program's call is a reduce-scatter,
// the test is one, too. Either all ranks of the call run the test, or none does.
#include <fmt/core.h>

#include <algorithm>
#include <bit>
#include <optional>
#include <vector>

#include "algorithm/algorithm.h"
#include "algorithm/node_frame.h"
#include "call/sum.h"
#include "comm/scatter.h"
#include "comm/stream_wait.h"
#include "inter/schedule.h"
#include "intra/intra_node.h"
#include "observe/log.h"

namespace slimpi::call {

namespace {

struct Tested : comm::Attachment {
  std::uint64_t sums = 0;  // without those whose test failed; the same on all ranks
};

// The vector of a test. For up to 500,000 ranks every partial sum is an integer below 2^24, which a
// float holds exactly, so the order of additions does not matter.
class Numbers {
 public:
  Numbers(int ranks, std::uint64_t test) : ranks_(ranks), test_(test) {}
  float of(int rank, std::uint64_t element) const {
    return float(common(element) + std::uint32_t(rank) % kOwn);
  }
  float sum(std::uint64_t element) const {
    const std::uint32_t rest = ranks_ % kOwn;
    return float(ranks_ * common(element) + ranks_ / kOwn * (kOwn * (kOwn - 1) / 2) +
                 rest * (rest - 1) / 2);
  }

 private:
  static constexpr std::uint32_t kOwn = 64;  // how many different values the ranks add
  std::uint32_t common(std::uint64_t element) const {
    const std::uint32_t most = (1u << 24) / ranks_;
    return (std::uint32_t(element + test_) * 2654435761u >> 24) %
           (most > 2 * kOwn ? std::min(most - kOwn, 256u) : 1);
  }
  const std::uint32_t ranks_;
  const std::uint64_t test_;  // gives each test other values
};

// Returns how many floats to sum. An allreduce starts with 4096 and doubles until the test has the
// same schedule (messages between nodes) as the call, or as many floats. A reduce-scatter has only
// one schedule, and takes enough floats to use its buffers more than once.
std::uint64_t floats_for(const comm::Call& call, const kernels::Format& format) {
  constexpr std::uint64_t kBlock = 64 << 10;
  if (call.scatter != nullptr)
    return std::min(call.count, kBlock * std::uint64_t(call.communicator.size()));
  const comm::InterNodeGroup& group = call.communicator.inter_node_group(call.plan.hierarchy);
  const int members = group.flat ? call.communicator.size() : call.communicator.layout().nodes();
  const auto schedule = [&](const kernels::Format& of, std::uint64_t count) {
    const std::uint64_t shard = intra::shard_range(count, of, group, 0).count;
    return &inter::schedule_for({comm::with_tiles(of, shard, members), shard, members,
                                 call.communicator.segment_class(), false, 0});
  };
  std::uint64_t count = 4096;
  const inter::Schedule* const wanted = schedule(call.plan.format, call.count);
  while (count < call.count && schedule(format, count) != wanted) count *= 2;
  return count;
}

// Returns the blocks of a reduce-scatter of `count` floats, all of about the same length.
std::pmr::vector<comm::Range> equal_blocks(const comm::Call& call, std::uint64_t count) {
  const int size = call.communicator.size();
  std::pmr::vector<comm::Range> blocks(&call.scratch.objects);
  for (int rank = 0; rank < size; ++rank) blocks.push_back(comm::chunk_of(count, size, rank, 1));
  return blocks;
}

// Returns which elements of the sum this rank receives.
comm::Range result_of(const comm::Call& call) {
  if (call.scatter == nullptr) return {0, call.count};
  return call.scatter->blocks[std::size_t(call.communicator.rank())];
}

bool holds(const comm::Range& range, std::uint64_t element) {
  return element - range.first < range.count;
}

// Returns whether this rank adds the element between nodes.
bool adds(const comm::Call& call, std::uint64_t element) {
  const comm::InterNodeGroup& group = call.communicator.inter_node_group(call.plan.hierarchy);
  if (call.scatter != nullptr) {
    const comm::Scatter& scatter = *call.scatter;
    std::size_t rank = 0;
    while (!holds(scatter.blocks[rank], element)) ++rank;
    const std::uint64_t place = scatter.places[rank] + element - scatter.blocks[rank].first;
    return group.shard_index >= 0 && holds(scatter.chunks[std::size_t(group.index)], place);
  }
  const comm::Range shard = algorithm::own_shard(call);
  const comm::Range chunk = comm::chunk_of(shard.count, std::max(int(group.peers.size()), 1),
                                           group.index, comm::chunk_alignment(call.plan.format));
  return group.shard_index >= 0 && holds(chunk, element - shard.first);
}

// Fails with a text about a wrong element. `word` says which element is wrong, and which rank is
// the first that found it so; run_selftest() composes this word. Collective.
Status fail_for_wrong_element(const comm::Call& call, const Numbers& numbers, std::uint64_t word) {
  comm::Communicator& communicator = call.communicator;
  const std::uint64_t element = word & UINT32_MAX;
  const int size = communicator.size(), first = size - int(word >> 32);
  const comm::Range result = result_of(call);
  const float right = numbers.sum(element);
  const float own = holds(result, element) ? call.out[element - result.first] : right;
  std::vector<std::uint64_t> words(std::size_t(size) + 2);
  if (own != right) words[std::size_t(communicator.rank())] = 1;
  if (adds(call, element)) words[std::size_t(size)] = std::uint64_t(communicator.rank());
  if (communicator.rank() == first) words.back() = std::bit_cast<std::uint32_t>(own);
  SLIMPI_TRY(communicator.exchange().all_max(words));
  std::string ranks;
  for (int rank = 0; rank < size; ++rank)
    if (words[std::size_t(rank)] != 0) ranks += (ranks.empty() ? "" : " ") + std::to_string(rank);
  const std::uint64_t owner = words[std::size_t(size)];
  const auto value = std::uint32_t(words.back());
  return communicator.exchange().fail_on_all_ranks(
      fail(Status::disagreement,
           fmt::format(
               "SLIMPI_SELFTEST: element {} (from byte {}) of {} known floats is {:.9g} ({:#010x}) "
               "on rank {}, and {:.9g} ({:#010x}) is right; wrong on rank {:.200}; rank {} adds "
               "it, {}; test the MPI, the network and the memory of these ranks",
               element, 4 * element, call.count, std::bit_cast<float>(value), value, first, right,
               std::bit_cast<std::uint32_t>(right), ranks, owner,
               words[owner] != 0 ? "and what came to it is wrong"
                                 : "and has it right: what it sent arrives wrong")));
}

}  // namespace

// Called before the call is prepared, because preparing the test may lengthen the segments
// (SegmentClass::large), and then calls of every size must be prepared again.
Status Sum::run_selftest() {
  Tested& tested = communicator_.attachment<Tested>();
  if (tested.sums % communicator_.config().selftest != 0) {
    ++tested.sums;
    return Status::ok;
  }
  comm::Plan plan;
  plan.algorithm = algorithm::find("allreduce");
  plan.hierarchy = plan_.hierarchy;
  const std::uint64_t count = floats_for(call_, plan.format);
  const std::size_t bytes = count * sizeof(float);
  const device::Location host;
  comm::Memory& memory = call_.scratch.exact;
  comm::Memory& near = call_.location == host ? memory : call_.scratch.colocated;
  Status status = memory.reserve(host, device::Place::device, bytes, runtime_.statistics);
  if (status == Status::ok)
    status = near.reserve(call_.location, device::Place::device, bytes, runtime_.statistics);
  bool ready = status == Status::ok;
  comm::Exchange& exchange = communicator_.exchange();
  SLIMPI_TRY(exchange.all_true(&ready));
  float* const values = memory.floats();
  float* const data = near.floats();
  comm::Call test{.communicator = communicator_,
                  .scratch = call_.scratch,
                  .plan = plan,
                  .in = data,
                  .out = data,
                  .count = count,
                  .location = call_.location,
                  .number = communicator_.compressed_calls};
  std::optional<comm::Scatter> scatter;
  if (call_.scatter != nullptr) {
    scatter.emplace(communicator_.layout(), communicator_.inter_node_group(plan.hierarchy),
                    equal_blocks(call_, count), &call_.scratch.objects);
    test.scatter = &*scatter;
  }
  if (ready) SLIMPI_TRY(algorithm::prepare(test, &ready));
  if (!ready) {
    log_once(LogLevel::warn, "no memory for SLIMPI_SELFTEST on some rank");
    return Status::ok;
  }
  SLIMPI_TRY(communicator_.stream_for(call_.location, &test.stream));
  const Numbers numbers(communicator_.size(), tested.sums);
  for (std::uint64_t i = 0; i < count; ++i) values[i] = numbers.of(communicator_.rank(), i);
  if (data != values) SLIMPI_TRY(test.device.copy(data, values, bytes, test.stream));
  {
    const comm::Exchange::Uncounted uncounted(exchange);
    SLIMPI_TRY(plan.algorithm->run(test).status());
  }
  if (data != values) SLIMPI_TRY(test.device.copy(values, data, bytes, test.stream));
  SLIMPI_TRY(comm::synchronize(test.device_stream()));
  test.out = values;
  const comm::Range result = result_of(test);
  std::uint64_t wrong = 0;
  while (wrong < result.count && values[wrong] == numbers.sum(result.first + wrong)) ++wrong;
  std::uint64_t word = wrong == result.count
                           ? 0
                           : std::uint64_t(communicator_.size() - communicator_.rank()) << 32 |
                                 (result.first + wrong);
  SLIMPI_TRY(exchange.all_max({&word, 1}));
  if (word != 0) return fail_for_wrong_element(test, numbers, word);
  ++tested.sums;
  return Status::ok;
}

}  // namespace slimpi::call
