// SPDX-License-Identifier: BSD-3-Clause
// The shm and ipc transports: what passes through which buffer, in which order. shm_pass.h
// says how they work.
#include <cstring>

#include "base/float_environment.h"
#include "intra/ordered_sum.h"
#include "intra/published_word.h"
#include "intra/shm_pass.h"

namespace slimpi::intra {

// Copies this rank's values of the others' shards into its message buffer of the block.
Status ShmPass::copy_to_segment(std::uint64_t block) {
  for (int shard_index = 0; shard_index < group_.shards; ++shard_index)
    if (const comm::Range theirs = blocks_.part(shard_index, block);
        shard_index != group_.shard_index && theirs.count != 0)
      SLIMPI_TRY(
          copy(place(me_, shard_index, block), call_.in + theirs.first, theirs.count, in_segment_));
  return Status::ok;
}

// Makes this rank's sum of a block visible to the others after the next barrier.
Status ShmPass::publish(std::uint64_t block) {
  const comm::Range mine = blocks_.own(block);
  if (mine.count == 0) return Status::ok;
  float* const buffer = place(me_, group_.shard_index, block);
  const float* const from = summed_ != nullptr ? summed_ : call_.out + mine.first;
  if (from == buffer) return Status::ok;
  return copy(buffer, from, mine.count, in_segment_);
}

// Copies the finished shards of a block into `out`, this rank's held-back sum included.
Status ShmPass::fetch(std::uint64_t block) {
  for (int shard_index = 0; shard_index < group_.shards; ++shard_index)
    if (const comm::Range theirs = blocks_.part(shard_index, block);
        shard_index != group_.shard_index && theirs.count != 0)
      SLIMPI_TRY(copy(call_.out + theirs.first,
                      place(group_.owner(shard_index), shard_index, block), theirs.count, in_out_));
  const comm::Range mine = blocks_.own(block);
  if (summed_ == nullptr || mine.count == 0 || summed_ == call_.out + mine.first) return Status::ok;
  return copy(call_.out + mine.first, summed_, mine.count, in_out_);
}

// A sum that is held back is put into the message buffer. If that is written by non-temporal
// stores, it is put into scratch behind what the additions use.
float* ShmPass::place_of_sum(std::uint64_t block) {
  if (!holds_back_) return call_.out + blocks_.own(block).first;
  if (in_segment_ == Where::memory) return partial() + std::uint64_t(size_ - 1) * blocks_.piece();
  return place(me_, group_.shard_index, block);
}

// All ranks stop before this block is written to `out`. No rank reads the message buffers any more.
void ShmPass::leave_to_mpi(std::uint64_t block) {
  result_->left_to_mpi = true;
  // Blocks before this one are finished in `out` on all ranks, since all have passed the same
  // barriers.
  for (const comm::Range& shard : blocks_.shards())
    result_->finished.push_back({shard.first, std::min(shard.count, block * blocks_.piece())});
}

// The node-local ranks' values of this rank's shard in a block, in rank order, in memory that the
// kernels can read.
Status ShmPass::find_addends(std::uint64_t block, const comm::Range& mine,
                             std::pmr::vector<const float*>& addends) {
  float* scratch = call_.scratch.node_addends().data();
  for (int other = 0; other < size_; ++other, scratch += blocks_.piece()) {
    if (other == me_) {
      addends.push_back(call_.in + mine.first);
    } else if (in_device_ || !call_.device.staged) {
      addends.push_back(place(other, group_.shard_index, block));
    } else {
      SLIMPI_TRY(copy(scratch, place(other, group_.shard_index, block), mine.count));
      addends.push_back(scratch);
    }
  }
  return Status::ok;
}

Status ShmPass::reduce(std::uint64_t block, bool pairwise) {
  // A rank without a shard passes the same barriers.
  const comm::Range mine = blocks_.own(block);
  if (mine.count == 0) return Status::ok;
  std::pmr::memory_resource* const memory = &call_.scratch.objects;
  std::pmr::vector<const float*> addends(memory);
  SLIMPI_TRY(find_addends(block, mine, addends));
  const NodeSlice slice(call_, "node add", mine.count * sizeof(float));
  if (!pairwise) {
    add_in_order(call_.device_stream(), addends, mine.count, partial(), call_.out + mine.first);
    return Status::ok;
  }
  summed_ = place_of_sum(block);
  // In the caller's floating-point environment, in which MPI would have added.
  const CallersFloats environment;
  if (add_in_pairs(call_.device_stream(), addends, mine.count, partial(), blocks_.piece(), summed_,
                   memory))
    word_ |= published::kSeveralNans;
  return Status::ok;
}

Status ShmPass::run_sum(Path* path, bool* in_pieces) {
  SLIMPI_TRY(begin(path, in_pieces));
  if (*path == Path::nccl || *in_pieces) return Status::ok;
  for (std::uint64_t block = 0; block < blocks_.blocks(); ++block) {
    SLIMPI_TRY(reduce(block, false));
    // While the owners add a block, the next one is copied: one barrier serves both.
    SLIMPI_TRY(copy_to_segment(block + 1));
    SLIMPI_TRY(barrier());
  }
  end();
  return Status::ok;
}

Status ShmPass::run_share(Path path) {
  use(path == Path::ipc);
  for (std::uint64_t block = 0; block < blocks_.blocks(); ++block) {
    SLIMPI_TRY(publish(block));
    SLIMPI_TRY(barrier());
    SLIMPI_TRY(fetch(block));
  }
  end();
  return copied();
}

Status ShmPass::run_allreduce(Path* path) {
  bool in_pieces = false;
  SLIMPI_TRY(begin(path, &in_pieces));
  if (*path == Path::nccl || result_->unverified || result_->unchecked || result_->left_to_mpi)
    return Status::ok;
  for (std::uint64_t block = 0; block < blocks_.blocks() && !result_->left_to_mpi; ++block) {
    SLIMPI_TRY(reduce(block, true));
    SLIMPI_TRY(publish(block));
    SLIMPI_TRY(copy_to_segment(block + 1));
    // Also tells whether two NaNs were added in the block.
    shared_.publish(word_);
    SLIMPI_TRY(barrier());
    // Read by all ranks after the same barrier, so all stop at the same block.
    if ((shared_.published().any & published::kSeveralNans) != 0)
      leave_to_mpi(block);
    else
      SLIMPI_TRY(fetch(block));
  }
  end();
  return copied();
}

std::uint64_t shared_scratch_floats(std::size_t size, const comm::InterNodeGroup& group) {
  return size * piece_of(group, NodeSegment::kBlock);
}

Status reduce_scatter_by_shm(comm::Call& call, const comm::InterNodeGroup& group,
                             DevicePath::Path* path, bool* in_pieces) {
  return ShmPass(call, group).sum(path, in_pieces);
}

Status all_gather_by_shm(comm::Call& call, const comm::InterNodeGroup& group,
                         DevicePath::Path path) {
  return ShmPass(call, group).share(path);
}

Status allreduce_by_shm(comm::Call& call, const comm::InterNodeGroup& group, std::uint64_t word,
                        DevicePath::Path* path, NodeResult* result) {
  return ShmPass(call, group).allreduce(word, path, result);
}

}  // namespace slimpi::intra
