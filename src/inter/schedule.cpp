// SPDX-License-Identifier: BSD-3-Clause
#include "inter/schedule.h"

#include <string>
#include <utility>

#include "comm/communicator.h"
#include "comm/scatter.h"
#include "inter/cost_model.h"
#include "observe/log.h"

namespace slimpi::inter {

namespace {

// The cost constants that choose a schedule. The choice depends mainly on what a message costs in
// relation to a byte. A faster network makes both cheaper, so the ratio stays similar and the
// constants of one network serve for all.
constexpr cost::Constants kNetwork;

double pairwise_cost(const ExchangeSize& size) {
  cost::Cost cost;
  cost::add_pairwise(cost, size, 1, 1, kNetwork);
  return cost.seconds;
}

Need pairwise_need(const ExchangeSize& size) {
  const Segments segments = segments_for(size);
  return {segments.total, segments.elements};
}

double bruck_cost(const ExchangeSize& size) {
  cost::Cost cost;
  cost::add_bruck(cost, size, 1, kNetwork);
  return cost.seconds;
}

constexpr Schedule kSchedules[] = {
    {"pairwise", pairwise_cost, pairwise_need, pairwise_layout, run_pairwise_schedule},
    {"bruck", bruck_cost, bruck_need, bruck_layout, run_bruck},
};

}  // namespace

std::span<const Schedule> schedules() {
  return kSchedules;
}

const Schedule& schedule_for(const ExchangeSize& size) {
  const std::size_t encoded = kernels::encoded_bytes(size.format, size.count);
  // All ranks must choose the same schedule, so the choice ignores `me` and `staged`. It assumes
  // buffers on a GPU, because some ranks may have them there.
  ExchangeSize common = size;
  common.staged = true;
  common.me = 0;
  const Schedule* best = nullptr;
  double least = 0;
  for (const Schedule& schedule : kSchedules) {
    double cost = schedule.cost(common);
    // Rejects a schedule that needs more than 1.5 times the encoded shard plus kMemoryFloor, by
    // adding its bytes to its seconds.
    const std::size_t bytes = schedule.need(common).bytes;
    if (bytes > encoded + encoded / 2 + kMemoryFloor) cost += double(bytes);
    if (best == nullptr || cost < least) {
      best = &schedule;
      least = cost;
    }
  }
  return *best;
}

PreparedExchange::PreparedExchange(const ExchangeSize& size)
    : schedule(&schedule_for(size)), need(schedule->need(size)), layout(schedule->layout(size)) {}

const PreparedExchange& PreparedExchanges::find_or_prepare(const ExchangeSize& size) {
  // Most programs repeat a size, so try the last result first. last_ stays valid, because the
  // entries of a map do not move.
  if (last_ != nullptr && last_->first == size) return last_->second;
  auto found = by_size_.find(size);
  if (found == by_size_.end()) {
    // Make the new exchange before dropping the old ones, so that the old ones stay if this throws.
    PreparedExchange made(size);
    // `more` estimates the bytes of the new entry: a layout has some words per member.
    const std::size_t more = 2 * sizeof(Entries::value_type) + 64 * std::size_t(size.group_size);
    if (bytes_ + more > kMostBytes) {
      // All exchanges are dropped, so that no order of use has to be recorded. A size that comes
      // again is prepared once more.
      last_ = nullptr;
      by_size_.clear();
      bytes_ = 0;
    }
    found = by_size_.emplace(size, std::move(made)).first;
    bytes_ += more;
  }
  last_ = &*found;
  return found->second;
}

const PreparedExchange& prepared_exchange(comm::Communicator& communicator,
                                          const kernels::Format& format,
                                          const comm::InterNodeGroup& group, std::uint64_t count,
                                          bool staged) {
  const int members = int(group.peers.size());
  const PreparedExchange& prepared = communicator.attachment<PreparedExchanges>().find_or_prepare(
      {comm::with_tiles(format, count, members), count, members, communicator.segment_class(),
       staged, group.index});
  if (communicator.rank() == 0 && log_enabled(LogLevel::debug))
    log_once(LogLevel::debug, std::string("schedule between nodes: ") + prepared.schedule->name);
  return prepared;
}

Status run_exchange(comm::Call& call, const comm::InterNodeGroup& group, comm::Range shard,
                    const float* in, float* out, float* residual) {
  const PreparedExchange& prepared = prepared_exchange(call.communicator, call.plan.format, group,
                                                       shard.count, call.device.staged);
  Context context = context_of(call);  // lives until run() returns, which keeps no pointer to it
  SLIMPI_TRY(find_streams(call, &context.streams));
  context.format = comm::with_tiles(context.format, shard.count, int(group.peers.size()));
  return prepared.schedule->run(context, *prepared.layout, group, shard, in, out, residual);
}

namespace {
// Returns the chunks of the members, relative to the shard's first element.
std::pmr::vector<comm::Range> chunks_of(const comm::Scatter& scatter, const comm::Range& shard,
                                        std::pmr::memory_resource* memory) {
  std::pmr::vector<comm::Range> chunks(scatter.chunks, memory);
  for (comm::Range& chunk : chunks) chunk.first -= shard.first;
  return chunks;
}
}  // namespace

Need scatter_need(const comm::Call& call, const comm::InterNodeGroup& group) {
  const comm::Scatter& scatter = *call.scatter;
  const std::uint64_t longest = comm::longest_of(scatter.chunks);
  const Segments segments = scatter_segments(
      {comm::with_tiles_for_longest(call.plan.format, longest),
       scatter.shards[std::size_t(group.shard_index)].count, int(group.peers.size()),
       call.communicator.segment_class(), call.device.staged, group.index},
      longest);
  return {segments.total, segments.elements};
}

Status run_scatter(comm::Call& call, const comm::InterNodeGroup& group, const float* in,
                   float* result, float* residual) {
  const comm::Range shard = call.scatter->shards[std::size_t(group.shard_index)];
  Context context = context_of(call);
  SLIMPI_TRY(find_streams(call, &context.streams));
  context.format =
      comm::with_tiles_for_longest(context.format, comm::longest_of(call.scatter->chunks));
  context.totals = result;
  return run_pairwise_scatter(context, group, shard,
                              chunks_of(*call.scatter, shard, context.memory), in, residual);
}

Need gather_need(const comm::Call& call, const comm::InterNodeGroup& group) {
  const std::uint64_t longest = comm::longest_of(call.gather->blocks);
  return {gather_segments({comm::with_tiles_for_longest(call.plan.format, longest), call.count,
                           int(group.peers.size()), call.communicator.segment_class(),
                           call.device.staged, group.index},
                          longest)
              .total};
}

Status run_gather(comm::Call& call, const comm::InterNodeGroup& group,
                  std::span<const comm::Range> chunks, const float* in) {
  Context context = context_of(call);
  SLIMPI_TRY(find_streams(call, &context.streams));
  context.format =
      comm::with_tiles_for_longest(context.format, comm::longest_of(call.gather->blocks));
  return run_pairwise_gather(context, group, *call.gather, chunks, in, call.out);
}

ExchangeSize size_of(const Context& context, const comm::InterNodeGroup& group,
                     std::uint64_t count) {
  return {context.format,        count,      int(group.peers.size()), context.segment_class,
          context.device.staged, group.index};
}

}  // namespace slimpi::inter
