// SPDX-License-Identifier: BSD-3-Clause
// The work inside a node over links between its GPUs. The neighbours send each owner their shares
// of its slice, straight from where they lie, a block at a time; the owner adds a block in rank
// order while the next one arrives. The finished slices go to all of them at once. Everything is
// queued on two streams, that of the links and that of the call, which wait for each other by
// marks.
#include <algorithm>
#include <vector>

#include "algorithm/communicator.h"
#include "algorithm/node_addends.h"
#include "algorithm/node_sum.h"
#include "algorithm/node_transports.h"

namespace slimpi::algorithm {

namespace {

using device::Links;

class LinkedPass {
 public:
  LinkedPass(Call& call, const Rails& rails)
      : call_(call),
        rails_(rails),
        exchange_(call.communicator.exchange()),
        shared_(*call.communicator.shared()),
        links_(shared_.segment().direct->links),
        me_(call.communicator.layout().local_rank()),
        size_(int(call.communicator.layout().neighbours().size())),
        // Pieces begin where a vector of floats may.
        piece_(DirectLinks::kBlock / std::uint64_t(size_) / 64 * 64) {
    for (int rail = 0; rail < rails.rails; ++rail)
      slices_.push_back(slice_of(call.count, call.plan.format, rails, rail));
    for (const Range& slice : slices_)
      blocks_ = std::max(blocks_, (slice.count + piece_ - 1) / piece_);
  }

  Status sum() { return settle(run_sum(false)); }
  Status share() { return settle(run_share()); }
  Status allreduce() {
    const Status summed = run_sum(true);
    return settle(summed == Status::ok ? run_share() : summed);
  }

 private:
  Status settle(Status status);
  Status run_sum(bool pairwise);
  Status run_share();
  Status follow(device::Stream* later, device::Stream* earlier);
  Status find_stream();
  Status finish();
  Status bring(std::uint64_t block);
  Status add_up(std::uint64_t block, bool pairwise);
  Range part(int rail, std::uint64_t block) const {
    const Range& slice = slices_[std::size_t(rail)];
    if (block * piece_ >= slice.count) return {};
    return {slice.first + block * piece_, std::min(piece_, slice.count - block * piece_)};
  }
  Range mine(std::uint64_t block) const { return part(rails_.rail, block); }
  bool owner() const { return rails_.rail >= 0; }
  float* arrived(int other, std::uint64_t block) const {
    return links_.arrived(int(block % DirectLinks::kSlots)) + std::uint64_t(other) * piece_;
  }
  // Links name ranks by their number on the segment.
  void add_out(int local, const float* from, std::uint64_t count) {
    if (count != 0)
      pieces_.push_back({shared_.process_of(local), from, nullptr, count * sizeof(float)});
  }
  void add_in(int local, float* to, std::uint64_t count) {
    if (count != 0)
      pieces_.push_back({shared_.process_of(local), nullptr, to, count * sizeof(float)});
  }
  Status send() {
    const Status sent = links_.send(exchange_, pieces_, on_links_);
    pieces_.clear();
    return sent;
  }

  Call& call_;
  const Rails& rails_;
  Exchange& exchange_;
  SharedMemory& shared_;
  DirectLinks& links_;
  const int me_, size_;
  const std::uint64_t piece_;
  std::uint64_t blocks_ = 0;
  std::vector<Range> slices_;
  std::vector<Links::Piece> pieces_;
  device::Stream* on_links_ = nullptr;
  std::uint64_t added_[DirectLinks::kSlots] = {};  // marks of the call's stream
};

// What neighbours of a rank that failed wait for on their GPUs never comes. They have been told by
// now, so that all of them end it.
Status LinkedPass::settle(Status status) {
  status = exchange_.settle(status, {});
  if (status != Status::ok) links_.close(false);
  return status;
}

Status LinkedPass::follow(device::Stream* later, device::Stream* earlier) {
  std::uint64_t mark = 0;
  SLIMPI_TRY(call_.device.mark(earlier, &mark));
  return call_.device.wait_for(later, earlier, mark);
}

// The links have the lane of what comes in. It is seen to have nothing left to do, so that it
// starts behind what the program has queued.
Status LinkedPass::find_stream() {
  SLIMPI_TRY(call_.communicator.stream_for(call_.device, call_.out, &on_links_, Lane::in));
  SLIMPI_TRY(links_.wait(exchange_, on_links_));
  return follow(on_links_, call_.stream);
}

// Both streams are seen to have nothing left to do, so that what comes next starts behind what the
// program queues until then.
Status LinkedPass::finish() {
  SLIMPI_TRY(links_.wait(exchange_, on_links_));
  return links_.wait(exchange_, call_.stream);
}

Status LinkedPass::bring(std::uint64_t block) {
  const int slot = int(block % DirectLinks::kSlots);
  if (owner() && block >= DirectLinks::kSlots)
    SLIMPI_TRY(call_.device.wait_for(on_links_, call_.stream, added_[slot]));
  for (int rail = 0; rail < rails_.rails; ++rail)
    if (rail != rails_.rail)
      add_out(rails_.owner(rail), call_.in + part(rail, block).first, part(rail, block).count);
  for (int other = 0; owner() && other < size_; ++other)
    if (other != me_) add_in(other, arrived(other, block), mine(block).count);
  return send();
}

Status LinkedPass::add_up(std::uint64_t block, bool pairwise) {
  const Range mine = owner() ? this->mine(block) : Range{};
  if (mine.count == 0) return Status::ok;
  SLIMPI_TRY(follow(call_.stream, on_links_));
  std::vector<const float*> addends;
  for (int other = 0; other < size_; ++other)
    addends.push_back(other == me_ ? call_.in + mine.first : arrived(other, block));
  float* const out = call_.out + mine.first;
  if (pairwise)
    add_in_pairs(call_.device, call_.stream, addends, mine.count, links_.partial(), piece_, out);
  else
    add_in_order(call_.device, call_.stream, addends, mine.count, links_.partial(), out);
  return call_.device.mark(call_.stream, &added_[block % DirectLinks::kSlots]);
}

Status LinkedPass::run_sum(bool pairwise) {
  SLIMPI_TRY(find_stream());
  for (std::uint64_t block = 0; block < blocks_; ++block) {
    SLIMPI_TRY(bring(block));
    SLIMPI_TRY(add_up(block, pairwise));
  }
  return finish();
}

Status LinkedPass::run_share() {
  SLIMPI_TRY(find_stream());
  const Range mine = owner() ? slices_[std::size_t(rails_.rail)] : Range{};
  for (int other = 0; other < size_; ++other)
    if (other != me_) add_out(other, call_.out + mine.first, mine.count);
  for (int rail = 0; rail < rails_.rails; ++rail)
    if (const Range& theirs = slices_[std::size_t(rail)]; rail != rails_.rail)
      add_in(rails_.owner(rail), call_.out + theirs.first, theirs.count);
  SLIMPI_TRY(send());
  return finish();
}

}  // namespace

Status sum_over_links(Call& call, const Rails& rails) {
  return LinkedPass(call, rails).sum();
}

Status share_over_links(Call& call, const Rails& rails) {
  return LinkedPass(call, rails).share();
}

Status allreduce_over_links(Call& call, const Rails& rails) {
  return LinkedPass(call, rails).allreduce();
}

}  // namespace slimpi::algorithm
