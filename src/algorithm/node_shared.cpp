// SPDX-License-Identifier: BSD-3-Clause
// The work inside a node through boxes that its ranks share: in host memory, or, where the buffers
// of all of them are on devices that can, in device memory, with the same sums in the same order.
// The vector passes in blocks. For each, every rank copies what its neighbours own into its box,
// the neighbours meet, every owner adds its slice from all boxes, and, where the result is wanted
// at once, puts it into its own box for the others to fetch. Three blocks are under way, so that
// the ranks meet once a block.
#include <algorithm>
#include <cstring>
#include <vector>

#include "algorithm/communicator.h"
#include "algorithm/node_addends.h"
#include "algorithm/node_copies.h"
#include "algorithm/node_sum.h"
#include "algorithm/node_transports.h"
#include "algorithm/published.h"
#include "base/float_environment.h"

namespace slimpi::algorithm {

namespace {

// A result of so many bytes pushes out what the caches hold, and is not there any more when the
// program comes to read it. (docs/DESIGN.md)
constexpr std::uint64_t kLargeBytes = 16 << 20;

// Floats of one slice in a block of `block` floats.
std::uint64_t piece_of(const Rails& rails, std::uint64_t block) {
  return std::max<std::uint64_t>(block / std::uint64_t(rails.rails) / 16 * 16, 16);
}

class SharedPass {
 public:
  using Way = Direct::Way;

  SharedPass(Call& call, const Rails& rails, const SegmentLease& lease)
      : call_(call),
        rails_(rails),
        lease_(lease),
        shared_(*call.communicator.shared()),
        segment_(shared_.segment()),
        exchange_(call.communicator.exchange()),
        me_(call.communicator.layout().local_rank()),
        size_(int(call.communicator.layout().neighbours().size())),
        direct_(*segment_.direct),
        boxes_(direct_.boxes) {
    for (int rail = 0; rail < rails.rails; ++rail)
      slices_.push_back(slice_of(call.count, call.plan.format, rails, rail));
  }

  // Only set *way where the call is to go over links or by messages.
  Status sum(Way* way) { return exchange_.settle(run_sum(way), {}); }
  Status allreduce(std::uint64_t word, Way* way, NodeResult* result) {
    word_ = word;
    result_ = result;
    holds_back_ = call_.in == call_.out && call_.device.kernels()->add != nullptr;
    return exchange_.settle(run_allreduce(way), {});
  }
  Status share(Way* way) { return exchange_.settle(run_share(way), {}); }

 private:
  Status run_sum(Way* way);
  Status run_share(Way* way);
  Status run_allreduce(Way* way);
  void use(bool in_device);
  Status begin(Way* way);
  Status begin_share(Way* way);
  void end();
  Range part(int rail, std::uint64_t block) const {
    const Range& slice = slices_[std::size_t(rail)];
    if (block * piece_ >= slice.count) return {};
    return {slice.first + block * piece_, std::min(piece_, slice.count - block * piece_)};
  }
  float* place(int owner_of_box, int rail, std::uint64_t block) const {
    constexpr int kSlots = NodeSegment::kSlots;
    static_assert(kSlots == DirectBoxes::kSlots);
    const std::uint64_t slot = ((in_device_ ? boxes_.blocks : segment_.blocks) + block) % kSlots;
    float* const box =
        in_device_ ? boxes_.box(shared_.process_of(owner_of_box)) : shared_.box(owner_of_box);
    return box + slot * (in_device_ ? DirectBoxes::kBlock : segment_.block()) +
           std::uint64_t(rail) * piece_;
  }
  float* partial() const {
    return in_device_ ? boxes_.scratch()
                      : reinterpret_cast<float*>(call_.communicator.scratch().partial.data());
  }
  bool owner() const { return rails_.rail >= 0; }
  using Where = NodeCopies::Where;
  Status copy(float* to, const float* from, std::uint64_t count, Where where = Where::caches) {
    return copies_.copy(to, from, count * sizeof(float), where);
  }
  Where in_boxes() const { return shared_.far() ? Where::memory : Where::caches; }
  Status copied() {
    SLIMPI_TRY(wait_for_stream(call_.device, call_.stream));
    copies_.done();
    return Status::ok;
  }
  Status copy_in(std::uint64_t block);
  float* place_of_sum(std::uint64_t block);
  void leave_to_mpi(std::uint64_t block);
  Status add_up(std::uint64_t block, bool pairwise);
  Status publish(std::uint64_t block);
  Status collect(std::uint64_t block);
  Status gather_addends(std::uint64_t block, const Range& mine, std::vector<const float*>& addends);
  Status meet();

  Call& call_;
  const Rails& rails_;
  const SegmentLease& lease_;
  SharedMemory& shared_;
  NodeSegment& segment_;
  Exchange& exchange_;
  const int me_, size_;
  Direct& direct_;
  DirectBoxes& boxes_;
  bool in_device_ = false;  // the boxes in device memory
  std::uint64_t piece_ = 0;
  std::vector<Range> slices_;
  std::uint64_t blocks_ = 0;
  std::uint64_t word_ = 0;  // what this rank publishes besides its readiness
  NodeResult* result_ = nullptr;
  // In place a block's input is lost once its sum is in `out`. The sum is held back until all ranks
  // know that none of them leaves the block to MPI.
  bool holds_back_ = false;
  float* summed_ = nullptr;  // this rank's part of the block that was added last
  NodeCopies copies_{call_};
  const Where in_out_ = call_.count * sizeof(float) >= kLargeBytes ? Where::memory : Where::caches;
};

void SharedPass::use(bool in_device) {
  in_device_ = in_device;
  piece_ = piece_of(rails_, in_device ? DirectBoxes::kBlock : segment_.block());
  blocks_ = 0;
  for (const Range& slice : slices_)
    blocks_ = std::max(blocks_, (slice.count + piece_ - 1) / piece_);
}

// Before links or messages: this rank has published what it holds, and wrote into no data area that
// others read.
constexpr bool elsewhere(Direct::Way way) {
  return way == Direct::Way::links || way == Direct::Way::messages;
}

// The first block is in the boxes when this returns. Which boxes they are depends on where the
// neighbours' buffers lie in this very call, so each rank starts with what suits its own and
// publishes that; only where they differ does the block go a second time. Where another call has
// the lease on some process, which it publishes in the same word, all ranks send messages. What
// was copied by then lies in a slot that no call reads before it is written again.
Status SharedPass::begin(Way* way) {
  const Direct::Readiness mine =
      lease_.held() ? direct_.readiness(call_.device, call_.out) : Direct::can_not;
  *way = mine == Direct::ready ? direct_.way() : Way::host;
  use(*way == Way::boxes);
  shared_.say(std::uint64_t(mine) | word_ | (lease_.held() ? 0 : published::kTaken));
  if (lease_.held() && *way != Way::links) SLIMPI_TRY(copy_in(0));
  SLIMPI_TRY(meet());
  const SharedMemory::Said said = shared_.said();
  if (result_ != nullptr) {
    result_->unverified = (said.any & published::kUnverified) != 0;
    result_->left_to_mpi = (said.any & (published::kUnfit | published::kTaken)) != 0 ||
                           !said.alike(published::kEnvironment);
    if (result_->left_to_mpi || result_->unverified) return Status::ok;
  }
  const bool alike = said.alike(published::kReadiness);
  const bool all_closed = alike && (said.all & published::kReadiness) == Direct::closed;
  const bool again = !alike || all_closed;
  if ((said.any & published::kTaken) != 0) {
    *way = Way::messages;
  } else if (!alike) {
    *way = Way::host;
  } else if (all_closed) {
    SLIMPI_TRY(
        direct_.open(shared_, exchange_, call_.device, call_.out, call_.communicator.statistics()));
    *way = direct_.way();
  }
  if (elsewhere(*way) || !again) return Status::ok;
  use(*way == Way::boxes);
  SLIMPI_TRY(copy_in(0));
  return meet();
}

// The same for the second half of a call whose first half went this way.
Status SharedPass::begin_share(Way* way) {
  use(*way == Way::boxes);
  shared_.say(lease_.held() ? 0 : published::kTaken);
  if (lease_.held() && *way != Way::links) SLIMPI_TRY(publish(0));
  SLIMPI_TRY(meet());
  if ((shared_.said().any & published::kTaken) != 0) *way = Way::messages;
  return Status::ok;
}

void SharedPass::end() {
  (in_device_ ? boxes_.blocks : segment_.blocks) += blocks_ + 1;
}

Status SharedPass::meet() {
  SLIMPI_TRY(copied());
  return shared_.meet(exchange_, std::min(call_.count, NodeSegment::kBlock) * sizeof(float));
}

Status SharedPass::copy_in(std::uint64_t block) {
  for (int rail = 0; rail < rails_.rails; ++rail)
    if (const Range theirs = part(rail, block); rail != rails_.rail && theirs.count != 0)
      SLIMPI_TRY(copy(place(me_, rail, block), call_.in + theirs.first, theirs.count, in_boxes()));
  return Status::ok;
}

Status SharedPass::publish(std::uint64_t block) {
  if (!owner()) return Status::ok;
  const Range mine = part(rails_.rail, block);
  float* const box = place(me_, rails_.rail, block);
  const float* const from = summed_ != nullptr ? summed_ : call_.out + mine.first;
  if (mine.count == 0 || from == box) return Status::ok;
  return copy(box, from, mine.count, in_boxes());
}

Status SharedPass::collect(std::uint64_t block) {
  for (int rail = 0; rail < rails_.rails; ++rail)
    if (const Range theirs = part(rail, block); rail != rails_.rail && theirs.count != 0)
      SLIMPI_TRY(copy(call_.out + theirs.first, place(rails_.owner(rail), rail, block),
                      theirs.count, in_out_));
  const Range mine = owner() ? part(rails_.rail, block) : Range{};
  if (summed_ == nullptr || mine.count == 0 || summed_ == call_.out + mine.first) return Status::ok;
  return copy(call_.out + mine.first, summed_, mine.count, in_out_);
}

// A sum that is held back is read from the box, or, where the box is written past the caches, from
// scratch behind what the additions use.
float* SharedPass::place_of_sum(std::uint64_t block) {
  if (!holds_back_) return call_.out + part(rails_.rail, block).first;
  if (shared_.far()) return partial() + std::uint64_t(size_ - 1) * piece_;
  return place(me_, rails_.rail, block);
}

// All ranks stop before this block goes to `out`; nobody reads the boxes any more.
void SharedPass::leave_to_mpi(std::uint64_t block) {
  result_->left_to_mpi = true;
  for (const Range& slice : slices_)
    result_->finished.push_back({slice.first, std::min(slice.count, block * piece_)});
}

// The neighbours' shares of a part of this rank's slice, in rank order, where the kernels can read
// them.
Status SharedPass::gather_addends(std::uint64_t block, const Range& mine,
                                  std::vector<const float*>& addends) {
  auto* scratch = reinterpret_cast<float*>(call_.communicator.scratch().messages.data());
  for (int other = 0; other < size_; ++other, scratch += piece_) {
    if (other == me_) {
      addends.push_back(call_.in + mine.first);
    } else if (in_device_ || !call_.device.staged) {
      addends.push_back(place(other, rails_.rail, block));
    } else {
      SLIMPI_TRY(copy(scratch, place(other, rails_.rail, block), mine.count));
      addends.push_back(scratch);
    }
  }
  return Status::ok;
}

Status SharedPass::add_up(std::uint64_t block, bool pairwise) {
  if (!owner()) return Status::ok;
  const Range mine = part(rails_.rail, block);
  if (mine.count == 0) return Status::ok;
  std::vector<const float*> addends;
  SLIMPI_TRY(gather_addends(block, mine, addends));
  if (!pairwise) {
    add_in_order(call_.device, call_.stream, addends, mine.count, partial(),
                 call_.out + mine.first);
    return Status::ok;
  }
  summed_ = place_of_sum(block);
  const CallersFloats environment;
  if (add_in_pairs(call_.device, call_.stream, addends, mine.count, partial(), piece_, summed_))
    word_ |= published::kSeveralNans;
  return Status::ok;
}

Status SharedPass::run_sum(Way* way) {
  SLIMPI_TRY(begin(way));
  if (elsewhere(*way)) return Status::ok;
  for (std::uint64_t block = 0; block < blocks_; ++block) {
    SLIMPI_TRY(add_up(block, false));
    SLIMPI_TRY(copy_in(block + 1));
    SLIMPI_TRY(meet());
  }
  end();
  return Status::ok;
}

Status SharedPass::run_share(Way* way) {
  SLIMPI_TRY(begin_share(way));
  if (elsewhere(*way)) return Status::ok;
  for (std::uint64_t block = 0; block < blocks_; ++block) {
    if (block != 0) {
      SLIMPI_TRY(publish(block));
      SLIMPI_TRY(meet());
    }
    SLIMPI_TRY(collect(block));
  }
  end();
  return copied();
}

Status SharedPass::run_allreduce(Way* way) {
  SLIMPI_TRY(begin(way));
  if (elsewhere(*way) || result_->unverified || result_->left_to_mpi) return Status::ok;
  for (std::uint64_t block = 0; block < blocks_ && !result_->left_to_mpi; ++block) {
    SLIMPI_TRY(add_up(block, true));
    SLIMPI_TRY(publish(block));
    SLIMPI_TRY(copy_in(block + 1));
    shared_.say(word_);
    SLIMPI_TRY(meet());
    if ((shared_.said().any & published::kSeveralNans) != 0)
      leave_to_mpi(block);
    else
      SLIMPI_TRY(collect(block));
  }
  end();
  return copied();
}

}  // namespace

std::size_t shared_scratch_bytes(std::size_t size, const Rails& rails) {
  return size * piece_of(rails, NodeSegment::kBlock) * sizeof(float);
}

Status sum_in_shared_memory(Call& call, const Rails& rails, const SegmentLease& lease,
                            Direct::Way* way) {
  return SharedPass(call, rails, lease).sum(way);
}

Status share_in_shared_memory(Call& call, const Rails& rails, const SegmentLease& lease,
                              Direct::Way* way) {
  return SharedPass(call, rails, lease).share(way);
}

Status allreduce_in_shared_memory(Call& call, const Rails& rails, const SegmentLease& lease,
                                  std::uint64_t word, Direct::Way* way, NodeResult* result) {
  return SharedPass(call, rails, lease).allreduce(word, way, result);
}

}  // namespace slimpi::algorithm
