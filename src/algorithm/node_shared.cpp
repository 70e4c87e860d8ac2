// SPDX-License-Identifier: BSD-3-Clause
// The work inside a node through shared memory. The vector passes in blocks. For each, every rank
// copies what its neighbours own into its box, the neighbours meet, every owner adds its slice from
// all boxes, and, where the result is wanted at once, puts it into its own box for the others to
// fetch. Three blocks are under way, so that the ranks meet once a block.
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

// Floats of one slice in a block.
std::uint64_t piece_of(const Rails& rails) {
  return std::max<std::uint64_t>(kBlock / std::uint64_t(rails.rails) / 16 * 16, 16);
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
        piece_(piece_of(rails)) {
    for (int rail = 0; rail < rails.rails; ++rail) {
      slices_.push_back(slice_of(call.count, call.plan.format, rails, rail));
      blocks_ = std::max(blocks_, (slices_.back().count + piece_ - 1) / piece_);
    }
  }

  Status sum() { return exchange_.settle(run_sum(), {}); }
  Status share() { return exchange_.settle(run_share(), {}); }
  Status allreduce() { return exchange_.settle(run_allreduce(), {}); }

 private:
  Status run_sum();
  Status run_share();
  Status run_allreduce();
  Range part(int rail, std::uint64_t block) const {
    const Range& slice = slices_[std::size_t(rail)];
    if (block * piece_ >= slice.count) return {};
    return {slice.first + block * piece_, std::min(piece_, slice.count - block * piece_)};
  }
  float* place(int owner_of_box, int rail, std::uint64_t block) const {
    const std::uint64_t slot = (shared_.blocks + block) % kSlots;
    return reinterpret_cast<float*>(shared_.box(owner_of_box)) + slot * kBlock +
           std::uint64_t(rail) * piece_;
  }
  bool owner() const { return me_ < rails_.rails; }
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
  const std::uint64_t piece_;
  std::vector<Range> slices_;
  std::uint64_t blocks_ = 0;
};

Status SharedPass::meet() {
  SLIMPI_TRY(copied());
  return shared_.meet(exchange_);
}

Status SharedPass::copy_in(std::uint64_t block) {
  for (int rail = 0; rail < rails_.rails; ++rail)
    if (const Range theirs = part(rail, block); rail != me_ && theirs.count != 0)
      SLIMPI_TRY(copy(place(me_, rail, block), call_.in + theirs.first, theirs.count));
  return Status::ok;
}

Status SharedPass::publish(std::uint64_t block) {
  if (!owner()) return Status::ok;
  const Range mine = part(me_, block);
  if (mine.count == 0) return Status::ok;
  return copy(place(me_, me_, block), call_.out + mine.first, mine.count);
}

Status SharedPass::collect(std::uint64_t block) {
  for (int rail = 0; rail < rails_.rails; ++rail)
    if (const Range theirs = part(rail, block); rail != me_ && theirs.count != 0)
      SLIMPI_TRY(copy(call_.out + theirs.first, place(rail, rail, block), theirs.count));
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
    } else if (!call_.device.staged) {
      addends.push_back(place(other, me_, block));
    } else {
      SLIMPI_TRY(copy(scratch, place(other, me_, block), mine.count));
      addends.push_back(scratch);
    }
  }
  return Status::ok;
}

Status SharedPass::add_up(std::uint64_t block, bool pairwise) {
  if (!owner()) return Status::ok;
  const Range mine = part(me_, block);
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
  auto* const partial = reinterpret_cast<float*>(call_.communicator.partial.data());
  std::vector<const float*> group;
  for (std::size_t next = 0; next < addends.size();) {
    while (int(group.size()) < kernels::kMaxAddends && next < addends.size())
      group.push_back(addends[next++]);
    call_.device.kernels()->sum(group.data(), int(group.size()), count,
                                next == addends.size() ? out : partial, call_.stream);
    group = {partial};
  }
}

// MPICH's order: with r ranks more than a power of two, the first 2r ranks add in pairs; then
// neighbours add, then pairs of neighbours, and so on.
Status SharedPass::add_in_pairs(std::vector<const float*> addends, std::uint64_t count,
                                float* out) {
  auto* const scratch = reinterpret_cast<float*>(call_.communicator.partial.data());
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
  SLIMPI_TRY(copy_in(0));
  SLIMPI_TRY(meet());
  for (std::uint64_t block = 0; block < blocks_; ++block) {
    SLIMPI_TRY(add_up(block, false));
    SLIMPI_TRY(copy_in(block + 1));
    SLIMPI_TRY(meet());
  }
  shared_.blocks += blocks_ + 1;
  return Status::ok;
}

Status SharedPass::run_share() {
  for (std::uint64_t block = 0; block < blocks_; ++block) {
    SLIMPI_TRY(publish(block));
    SLIMPI_TRY(meet());
    SLIMPI_TRY(collect(block));
  }
  shared_.blocks += blocks_ + 1;
  return copied();
}

Status SharedPass::run_allreduce() {
  SLIMPI_TRY(copy_in(0));
  SLIMPI_TRY(meet());
  for (std::uint64_t block = 0; block < blocks_; ++block) {
    SLIMPI_TRY(add_up(block, true));
    SLIMPI_TRY(publish(block));
    SLIMPI_TRY(copy_in(block + 1));
    SLIMPI_TRY(meet());
    SLIMPI_TRY(collect(block));
  }
  shared_.blocks += blocks_ + 1;
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
