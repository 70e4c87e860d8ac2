// SPDX-License-Identifier: BSD-3-Clause
// The table of the schedules of the exchange between nodes. A schedule says which rank sends which
// values when, and to whom. A call uses the cheapest schedule for its size and number of nodes; the
// bytes of the result do not depend on that choice.
#pragma once
#include <map>
#include <memory>
#include <span>

#include "comm/communicator.h"
#include "inter/context.h"
#include "inter/segment_length.h"

namespace slimpi::inter {

// The scratch memory that a schedule needs: `bytes` of Context::messages (and as many of
// Context::staging if the device is staged, that is, a GPU), and `partial` floats of
// Context::partial, for sums of a group that has more members than one kernel adds.
struct Need {
  std::size_t bytes = 0;
  std::uint64_t partial = 0;
};

struct Schedule {
  const char* name;

  // Returns the estimated seconds for a sum, by cost_model.h.
  double (*cost)(const ExchangeSize& size);

  Need (*need)(const ExchangeSize& size);

  // Makes the layout, which is the part of run()'s work that depends on the size alone.
  std::unique_ptr<const ExchangeLayout> (*layout)(const ExchangeSize& size);

  // Sums `shard` of the call's vector over the inter-node group. Collective over the group.
  //   layout     from this schedule's layout(), for size_of(context, group, shard.count)
  //   in, out    point to the shard's first element; in == out is allowed
  //   residual   null, or as long as the shard: what compression lost in earlier calls. run() adds
  //              it and writes the new residual
  //   context    has at least the scratch memory that need() returns
  Status (*run)(const Context& context, const ExchangeLayout& layout,
                const comm::InterNodeGroup& group, comm::Range shard, const float* in, float* out,
                float* residual);
};

std::span<const Schedule> schedules();

// The functions in the table of schedules, defined in bruck.cpp and pairwise.cpp.
Need bruck_need(const ExchangeSize& size);
std::unique_ptr<const ExchangeLayout> bruck_layout(const ExchangeSize& size);
Status run_bruck(const Context& context, const ExchangeLayout& layout,
                 const comm::InterNodeGroup& group, comm::Range shard, const float* in, float* out,
                 float* residual);
std::unique_ptr<const ExchangeLayout> pairwise_layout(const ExchangeSize& size);
Status run_pairwise_schedule(const Context& context, const ExchangeLayout& layout,
                             const comm::InterNodeGroup& group, comm::Range shard, const float* in,
                             float* out, float* residual);

// Sums `shard` of the call's vector over the inter-node group by a pairwise reduce-scatter. Each
// member receives the sum of its own chunk, uncompressed, in the context's `totals`. `chunks` are
// those of the members, relative to the shard's first element. `in` points to the shard, and
// `totals` may point to this rank's chunk in it. The other arguments are those of Schedule::run.
Status run_pairwise_scatter(const Context& context, const comm::InterNodeGroup& group,
                            comm::Range shard, std::span<const comm::Range> chunks, const float* in,
                            float* residual);

// Sends the chunks of an all-gather to all members by the second phase of the pairwise schedule.
// `chunks` has, by member, a block of gather.blocks or an empty range. `in` points to the first
// element of this rank's chunk, and `out` to the result.
Status run_pairwise_gather(const Context& context, const comm::InterNodeGroup& group,
                           const comm::Gather& gather, std::span<const comm::Range> chunks,
                           const float* in, float* out);

// Returns the cheapest schedule whose memory stays below a bound; the same on all ranks.
const Schedule& schedule_for(const ExchangeSize& size);

// The schedule for one size, with the memory that it needs and its layout. All of them follow from
// the size alone, so they stay valid if options change.
struct PreparedExchange {
  explicit PreparedExchange(const ExchangeSize& size);

  const Schedule* schedule;
  Need need;
  std::unique_ptr<const ExchangeLayout> layout;
};

// The PreparedExchange for each size of the sums that a communicator has made.
class PreparedExchanges : public comm::Attachment {
 public:
  // Returns the exchange of a size, valid until the next call. Allocates only at the first call
  // with a size. Does not communicate.
  const PreparedExchange& find_or_prepare(const ExchangeSize& size);

  // Returns about how many bytes the exchanges take. Beyond kMostBytes all are dropped, and made
  // again when they are needed.
  std::size_t bytes() const { return bytes_; }
  static constexpr std::size_t kMostBytes = 4 << 20;

 private:
  using Entries = std::map<ExchangeSize, PreparedExchange>;
  Entries by_size_;
  const Entries::value_type* last_ = nullptr;  // the last result of find_or_prepare(), or null
  std::size_t bytes_ = 0;
};

// Returns the exchange of a shard of `count` floats, valid until the communicator's next call.
const PreparedExchange& prepared_exchange(comm::Communicator& communicator,
                                          const kernels::Format& format,
                                          const comm::InterNodeGroup& group, std::uint64_t count,
                                          bool staged);

// Returns the ExchangeSize for a shard of `count` floats.
ExchangeSize size_of(const Context& context, const comm::InterNodeGroup& group,
                     std::uint64_t count);

// Returns the scratch memory of run_scatter().
Need scatter_need(const comm::Call& call, const comm::InterNodeGroup& group);

// Runs run_pairwise_scatter() in a call with Call::scatter, for the shard that this rank owns. `in`
// points to the shard; `result` receives the sum of this rank's chunk.
Status run_scatter(comm::Call& call, const comm::InterNodeGroup& group, const float* in,
                   float* result, float* residual);

// Returns the scratch memory of run_gather().
Need gather_need(const comm::Call& call, const comm::InterNodeGroup& group);

// Runs run_pairwise_gather() in a call with Call::gather. The result goes to the call's `out`.
Status run_gather(comm::Call& call, const comm::InterNodeGroup& group,
                  std::span<const comm::Range> chunks, const float* in);

// Runs the cheapest schedule (schedule_for()) in a call. For the arguments see Schedule::run.
Status run_exchange(comm::Call& call, const comm::InterNodeGroup& group, comm::Range shard,
                    const float* in, float* out, float* residual);

}  // namespace slimpi::inter
