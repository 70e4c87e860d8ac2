// SPDX-License-Identifier: BSD-3-Clause
#include "algorithm/node_transports.h"

#include <algorithm>
#include <vector>

#include "algorithm/communicator.h"
#include "algorithm/node_addends.h"
#include "algorithm/node_copies.h"
#include "algorithm/node_sum.h"
#include "algorithm/waiter.h"

namespace slimpi::algorithm {

namespace {

constexpr std::uint64_t kSegment = 64 << 10;  // elements
constexpr std::size_t kSegmentBytes = kSegment * sizeof(float);
constexpr int kSlots = 2;  // segments under way at once

Range segment(const Range& slice, std::uint64_t number) {
  if (number * kSegment >= slice.count) return {};
  return {slice.first + number * kSegment, std::min(kSegment, slice.count - number * kSegment)};
}

// A communicator that has shared memory uses messages only in a call that finds it taken. The
// schedule's own scratch may be in use then.
Memory& memory_of(const Call& call) {
  CallScratch& scratch = call.communicator.scratch();
  return call.communicator.shared() == nullptr ? scratch.messages : scratch.node_messages;
}
Memory& staging_of(const Call& call) {
  CallScratch& scratch = call.communicator.scratch();
  return call.communicator.shared() == nullptr ? scratch.staging : scratch.node_staging;
}

// Such a call reserves it when it comes to that, for there are few. Other ranks hear of a failure.
Status reserve_in_call(const Call& call, const Rails& rails) {
  if (call.communicator.shared() == nullptr) return Status::ok;
  Communicator& communicator = call.communicator;
  const std::size_t bytes = node_message_bytes(communicator.layout(), rails);
  SLIMPI_TRY(memory_of(call).reserve(call.device, call.out, device::Place::device, bytes,
                                     communicator.statistics()));
  if (!call.device.staged) return Status::ok;
  return staging_of(call).reserve(call.device, call.out, device::Place::staging, bytes,
                                  communicator.statistics());
}

// One pass of segments inside a node, in either direction.
class NodePass {
 public:
  NodePass(Call& call, const Rails& rails)
      : call_(call),
        rails_(rails),
        exchange_(call.communicator.exchange()),
        neighbours_(call.communicator.layout().neighbours()),
        me_(call.communicator.layout().local_rank()),
        size_(int(neighbours_.size())),
        staged_(call.device.staged),
        memory_(memory_of(call).data()),
        staging_(staged_ ? staging_of(call).data() : memory_),
        requests_(std::size_t(2 * kSlots * size_), MPI_REQUEST_NULL),
        sends_(requests_.data()),
        receives_(sends_ + kSlots * size_) {
    for (int rail = 0; rail < rails.rails; ++rail)
      segments_ = std::max(
          segments_,
          (slice_of(call.count, call.plan.format, rails, rail).count + kSegment - 1) / kSegment);
  }

  Status sum() { return exchange_.settle(run_sum(), requests_); }
  Status share() { return exchange_.settle(run_share(), requests_); }

 private:
  Status run_sum();
  Status run_share();

  // Boxes for what comes from and what goes to each neighbour, by slot.
  std::size_t box(bool outgoing, std::uint64_t number, int other) const {
    return ((number % kSlots * 2 + (outgoing ? 1 : 0)) * std::uint64_t(size_) +
            std::uint64_t(other)) *
           kSegmentBytes;
  }
  MPI_Request& of(MPI_Request* requests, std::uint64_t number, int other) const {
    return requests[number % kSlots * std::uint64_t(size_) + std::uint64_t(other)];
  }
  Range part(int rail, std::uint64_t number) const {
    return segment(slice_of(call_.count, call_.plan.format, rails_, rail), number);
  }
  Status send(Tag tag, std::uint64_t number, int other, const float* from, const Range& part);
  Status post_for_sum(std::uint64_t number);
  Status post_for_share(std::uint64_t number);
  Status add_up(std::uint64_t number);
  Status finish_copies();

  Call& call_;
  const Rails& rails_;
  Exchange& exchange_;
  const std::vector<int>& neighbours_;
  const int me_, size_;
  const bool staged_;
  std::byte *memory_, *staging_;
  std::vector<MPI_Request> requests_;
  MPI_Request *const sends_, *const receives_;
  std::uint64_t segments_ = 0;
  NodeCopies copies_{call_};
};

Status NodePass::finish_copies() {
  std::uint64_t mark = 0;
  SLIMPI_TRY(call_.device.mark(call_.stream, &mark));
  Waiter waiter(Waiter::Poll::device, &exchange_);
  for (bool done = false;;) {
    SLIMPI_TRY(call_.device.poll(call_.stream, mark, &done));
    if (done) break;
    SLIMPI_TRY(waiter.pause());
  }
  copies_.done();
  return Status::ok;
}

Status NodePass::send(Tag tag, std::uint64_t number, int other, const float* from,
                      const Range& part) {
  MPI_Request& request = of(sends_, number, other);
  SLIMPI_TRY(exchange_.wait(request));
  const void* data = from + part.first;
  if (staged_) {
    std::byte* const staging = staging_ + box(true, number, other);
    SLIMPI_TRY(copies_.copy(staging, data, part.count * sizeof(float)));
    SLIMPI_TRY(finish_copies());
    data = staging;
  }
  return exchange_.send(neighbours_[std::size_t(other)], tag, data, part.count * sizeof(float),
                        request);
}

Status NodePass::post_for_sum(std::uint64_t number) {
  if (rails_.rail < 0) return Status::ok;
  const Range mine = part(rails_.rail, number);
  for (int other = 0; other < size_; ++other)
    if (other != me_ && mine.count != 0)
      SLIMPI_TRY(exchange_.receive(neighbours_[std::size_t(other)], Tag::node_sum,
                                   staging_ + box(false, number, other), mine.count * sizeof(float),
                                   of(receives_, number, other)));
  return Status::ok;
}

Status NodePass::add_up(std::uint64_t number) {
  if (rails_.rail < 0) return Status::ok;
  const Range mine = part(rails_.rail, number);
  if (mine.count == 0) return Status::ok;
  const std::size_t bytes = mine.count * sizeof(float);
  std::vector<const float*> addends(static_cast<std::size_t>(size_));
  for (int other = 0; other < size_; ++other) {
    if (other == me_) {
      addends[std::size_t(other)] = call_.in + mine.first;
      continue;
    }
    SLIMPI_TRY(exchange_.wait(of(receives_, number, other)));
    std::byte* const here = memory_ + box(false, number, other);
    if (staged_) SLIMPI_TRY(copies_.copy(here, staging_ + box(false, number, other), bytes));
    addends[std::size_t(other)] = reinterpret_cast<const float*>(here);
  }
  add_in_order(call_.device, call_.stream, addends, mine.count,
               reinterpret_cast<float*>(call_.communicator.scratch().partial.data()),
               call_.out + mine.first);
  return staged_ ? finish_copies() : Status::ok;
}

Status NodePass::run_sum() {
  for (std::uint64_t number = 0; number < kSlots; ++number) SLIMPI_TRY(post_for_sum(number));
  for (std::uint64_t number = 0; number < segments_; ++number) {
    for (int distance = 1; distance < size_; ++distance) {
      const int owner = (me_ + distance) % size_, slice = rails_.slice_of(owner);
      if (slice < 0) continue;
      if (const Range theirs = part(slice, number); theirs.count != 0)
        SLIMPI_TRY(send(Tag::node_sum, number, owner, call_.in, theirs));
    }
    SLIMPI_TRY(add_up(number));
    SLIMPI_TRY(post_for_sum(number + kSlots));
  }
  return exchange_.wait_all(requests_);
}

Status NodePass::post_for_share(std::uint64_t number) {
  for (int slice = 0; slice < rails_.rails; ++slice) {
    const int owner = rails_.owner(slice);
    const Range theirs = part(slice, number);
    if (owner == me_ || theirs.count == 0) continue;
    void* const to = staged_ ? static_cast<void*>(staging_ + box(false, number, owner))
                             : static_cast<void*>(call_.out + theirs.first);
    SLIMPI_TRY(exchange_.receive(neighbours_[std::size_t(owner)], Tag::node_share, to,
                                 theirs.count * sizeof(float), of(receives_, number, owner)));
  }
  return Status::ok;
}

Status NodePass::run_share() {
  for (std::uint64_t number = 0; number < kSlots; ++number) SLIMPI_TRY(post_for_share(number));
  for (std::uint64_t number = 0; number < segments_; ++number) {
    if (rails_.rail >= 0)
      if (const Range mine = part(rails_.rail, number); mine.count != 0)
        for (int distance = 1; distance < size_; ++distance)
          SLIMPI_TRY(send(Tag::node_share, number, (me_ + distance) % size_, call_.out, mine));
    for (int slice = 0; slice < rails_.rails; ++slice) {
      const int owner = rails_.owner(slice);
      const Range theirs = part(slice, number);
      if (owner == me_ || theirs.count == 0) continue;
      SLIMPI_TRY(exchange_.wait(of(receives_, number, owner)));
      if (staged_)
        SLIMPI_TRY(copies_.copy(call_.out + theirs.first, staging_ + box(false, number, owner),
                                theirs.count * sizeof(float)));
    }
    if (staged_) SLIMPI_TRY(finish_copies());
    SLIMPI_TRY(post_for_share(number + kSlots));
  }
  return exchange_.wait_all(requests_);
}

}  // namespace

Status sum_by_messages(Call& call, const Rails& rails) {
  SLIMPI_TRY(reserve_in_call(call, rails));
  return NodePass(call, rails).sum();
}

Status share_by_messages(Call& call, const Rails& rails) {
  SLIMPI_TRY(reserve_in_call(call, rails));
  return NodePass(call, rails).share();
}

std::size_t node_message_bytes(const Layout& layout, const Rails& rails) {
  const std::size_t size = layout.neighbours().size();
  return rails.flat || size == 1 ? 0 : kSlots * 2 * size * kSegmentBytes;
}

}  // namespace slimpi::algorithm
