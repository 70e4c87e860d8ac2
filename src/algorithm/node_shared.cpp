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
#include "algorithm/node_sum.h"
#include "algorithm/node_transports.h"

namespace slimpi::algorithm {

namespace {

constexpr std::uint64_t kBlock = 128 << 10;  // floats of a rank's box in one block
constexpr int kSlots = 3;

// Floats of one slice in a block of `block` floats.
std::uint64_t piece_of(const Rails& rails, std::uint64_t block = kBlock) {
  return std::max<std::uint64_t>(block / std::uint64_t(rails.rails) / 16 * 16, 16);
}

class SharedPass {
 public:
  SharedPass(Call& call, const Rails& rails)
      : call_(call),
        rails_(rails),
        shared_(*call.communicator.shared()),
        exchange_(call.communicator.exchange()),
        me_(call.communicator.layout().local_rank()),
        size_(int(call.communicator.layout().neighbours().size())),
        boxes_(call.communicator.direct()) {
    for (int rail = 0; rail < rails.rails; ++rail)
      slices_.push_back(slice_of(call.count, call.plan.format, rails, rail));
  }

  Status sum() { return exchange_.settle(run_sum(), {}); }
  Status share() { return exchange_.settle(run_share(), {}); }
  Status allreduce() { return exchange_.settle(run_allreduce(), {}); }

 private:
  Status run_sum();
  Status run_share();
  Status run_allreduce();
  void use(bool direct);
  Status begin();
  void end();
  Range part(int rail, std::uint64_t block) const {
    const Range& slice = slices_[std::size_t(rail)];
    if (block * piece_ >= slice.count) return {};
    return {slice.first + block * piece_, std::min(piece_, slice.count - block * piece_)};
  }
  float* place(int owner_of_box, int rail, std::uint64_t block) const {
    static_assert(kSlots == DirectBoxes::kSlots);
    const std::uint64_t slot = ((direct_ ? boxes_.blocks : shared_.blocks) + block) % kSlots;
    float* const box =
        direct_ ? boxes_.box(owner_of_box) : reinterpret_cast<float*>(shared_.box(owner_of_box));
    return box + slot * (direct_ ? DirectBoxes::kBlock : kBlock) + std::uint64_t(rail) * piece_;
  }
  float* partial() const {
    return direct_ ? boxes_.scratch() : reinterpret_cast<float*>(call_.communicator.partial.data());
  }
  bool owner() const { return rails_.rail >= 0; }
  Status copy(float* to, const float* from, std::uint64_t count) {
    return call_.device.copy(to, from, count * sizeof(float), call_.stream);
  }
  Status copied() { return wait_for_stream(call_.device, call_.stream); }
  Status copy_in(std::uint64_t block);
  Status add_up(std::uint64_t block, bool pairwise);
  Status publish(std::uint64_t block);
  Status collect(std::uint64_t block);
  Status gather_addends(std::uint64_t block, const Range& mine, std::vector<const float*>& addends);
  Status meet();
  void add_in_order(const std::vector<const float*>& addends, std::uint64_t count, float* out);
  Status add_in_pairs(std::vector<const float*> addends, std::uint64_t count, float* out);

  Call& call_;
  const Rails& rails_;
  SharedMemory& shared_;
  Exchange& exchange_;
  const int me_, size_;
  DirectBoxes& boxes_;
  bool direct_ = false;  // the boxes in device memory
  std::uint64_t piece_ = 0;
  std::vector<Range> slices_;
  std::uint64_t blocks_ = 0;
};

void SharedPass::use(bool direct) {
  direct_ = direct;
  piece_ = piece_of(rails_, direct ? DirectBoxes::kBlock : kBlock);
  blocks_ = 0;
  for (const Range& slice : slices_)
    blocks_ = std::max(blocks_, (slice.count + piece_ - 1) / piece_);
}

// The first block is in the boxes when this returns. Which boxes they are depends on where the
// neighbours' buffers lie in this very call, so each rank starts with what suits its own and says
// so; only where they differ does the block go a second time.
Status SharedPass::begin() {
  const DirectBoxes::Readiness mine = boxes_.readiness(call_.device, call_.out);
  use(mine == DirectBoxes::ready);
  shared_.say(mine);
  SLIMPI_TRY(copy_in(0));
  SLIMPI_TRY(meet());
  const auto [least, most] = shared_.said();
  boxes_.in_this_call = least == DirectBoxes::ready;
  if (least == most && least != DirectBoxes::closed) return Status::ok;
  if (least == most)
    SLIMPI_TRY(boxes_.open(shared_, exchange_, call_.communicator.layout(), call_.device, call_.out,
                           call_.communicator.statistics(), &boxes_.in_this_call));
  use(boxes_.in_this_call);
  SLIMPI_TRY(copy_in(0));
  return meet();
}

void SharedPass::end() {
  (direct_ ? boxes_.blocks : shared_.blocks) += blocks_ + 1;
}

Status SharedPass::meet() {
  SLIMPI_TRY(copied());
  return shared_.meet(exchange_);
}

Status SharedPass::copy_in(std::uint64_t block) {
  for (int rail = 0; rail < rails_.rails; ++rail)
    if (const Range theirs = part(rail, block); rail != rails_.rail && theirs.count != 0)
      SLIMPI_TRY(copy(place(me_, rail, block), call_.in + theirs.first, theirs.count));
  return Status::ok;
}

Status SharedPass::publish(std::uint64_t block) {
  if (!owner()) return Status::ok;
  const Range mine = part(rails_.rail, block);
  if (mine.count == 0) return Status::ok;
  return copy(place(me_, rails_.rail, block), call_.out + mine.first, mine.count);
}

Status SharedPass::collect(std::uint64_t block) {
  for (int rail = 0; rail < rails_.rails; ++rail)
    if (const Range theirs = part(rail, block); rail != rails_.rail && theirs.count != 0)
      SLIMPI_TRY(
          copy(call_.out + theirs.first, place(rails_.owner(rail), rail, block), theirs.count));
  return Status::ok;
}

// The neighbours' shares of a part of this rank's slice, in rank order, where the kernels can read
// them.
Status SharedPass::gather_addends(std::uint64_t block, const Range& mine,
                                  std::vector<const float*>& addends) {
  auto* scratch = reinterpret_cast<float*>(call_.communicator.messages.data());
  for (int other = 0; other < size_; ++other, scratch += piece_) {
    if (other == me_) {
      addends.push_back(call_.in + mine.first);
    } else if (direct_ || !call_.device.staged) {
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
  if (pairwise) return add_in_pairs(std::move(addends), mine.count, call_.out + mine.first);
  add_in_order(addends, mine.count, call_.out + mine.first);
  return Status::ok;
}

// Longer sums go through scratch, because out may be this rank's own addend.
void SharedPass::add_in_order(const std::vector<const float*>& addends, std::uint64_t count,
                              float* out) {
  std::vector<const float*> group;
  for (std::size_t next = 0; next < addends.size();) {
    while (int(group.size()) < kernels::kMaxAddends && next < addends.size())
      group.push_back(addends[next++]);
    call_.device.kernels()->sum(group.data(), int(group.size()), count,
                                next == addends.size() ? out : partial(), call_.stream);
    group = {partial()};
  }
}

// MPICH's order: with r ranks more than a power of two, the first 2r ranks add in pairs; then
// neighbours add, then pairs of neighbours, and so on.
Status SharedPass::add_in_pairs(std::vector<const float*> addends, std::uint64_t count,
                                float* out) {
  float* const scratch = partial();
  const auto add = [&](const float* a, const float* b, float* to) {
    const float* const both[] = {a, b};
    call_.device.kernels()->sum(both, 2, count, to, call_.stream);
    return to;
  };
  std::size_t power = 1;
  while (2 * power <= addends.size()) power *= 2;
  std::size_t surplus = addends.size() - power, used = 0;
  std::vector<const float*> level;
  for (std::size_t i = 0; i < addends.size(); ++i) {
    if (surplus != 0) {
      level.push_back(add(addends[i], addends[i + 1], scratch + used++ * piece_));
      --surplus;
      ++i;
    } else {
      level.push_back(addends[i]);
    }
  }
  // A sum takes the place of its left addend if that is scratch already.
  while (level.size() > 1) {
    std::vector<const float*> next;
    for (std::size_t i = 0; i < level.size(); i += 2) {
      const bool last = level.size() == 2;
      const bool in_scratch = level[i] >= scratch && level[i] < scratch + used * piece_;
      float* const to = last         ? out
                        : in_scratch ? const_cast<float*>(level[i])
                                     : scratch + used++ * piece_;
      next.push_back(add(level[i], level[i + 1], to));
    }
    level = std::move(next);
  }
  return Status::ok;
}

Status SharedPass::run_sum() {
  SLIMPI_TRY(begin());
  for (std::uint64_t block = 0; block < blocks_; ++block) {
    SLIMPI_TRY(add_up(block, false));
    SLIMPI_TRY(copy_in(block + 1));
    SLIMPI_TRY(meet());
  }
  end();
  return Status::ok;
}

Status SharedPass::run_share() {
  use(boxes_.in_this_call);
  for (std::uint64_t block = 0; block < blocks_; ++block) {
    SLIMPI_TRY(publish(block));
    SLIMPI_TRY(meet());
    SLIMPI_TRY(collect(block));
  }
  end();
  return copied();
}

Status SharedPass::run_allreduce() {
  SLIMPI_TRY(begin());
  for (std::uint64_t block = 0; block < blocks_; ++block) {
    SLIMPI_TRY(add_up(block, true));
    SLIMPI_TRY(publish(block));
    SLIMPI_TRY(copy_in(block + 1));
    SLIMPI_TRY(meet());
    SLIMPI_TRY(collect(block));
  }
  end();
  return copied();
}

}  // namespace

std::size_t shared_scratch_bytes(std::size_t size, const Rails& rails) {
  return size * piece_of(rails) * sizeof(float);
}

std::size_t shared_box_bytes() {
  return kSlots * kBlock * sizeof(float);
}

Status sum_in_shared_memory(Call& call, const Rails& rails) {
  return SharedPass(call, rails).sum();
}

Status share_in_shared_memory(Call& call, const Rails& rails) {
  return SharedPass(call, rails).share();
}

Status allreduce_in_shared_memory(Call& call, const Rails& rails) {
  return SharedPass(call, rails).allreduce();
}

}  // namespace slimpi::algorithm
