// SPDX-License-Identifier: BSD-3-Clause
// The whole allreduce of one node in one pass of transport_shm.h, with the bytes that MPI
// itself would give: pairwise additions, and back to MPI where only MPI can give them.
#include "base/float_environment.h"
#include "intra/ordered_sum.h"
#include "intra/transport_shm.h"
#include "intra/transports.h"

namespace slimpi::intra {

namespace {

class OneNodePass : public BlockPass {
 public:
  OneNodePass(comm::Call& call, const comm::InterNodeGroup& group, std::uint64_t word,
              NodeResult* result)
      : BlockPass(call, group), word_(word), result_(*result) {}

  Status allreduce() {
    return settle(caught([&] { return run(); }));
  }

 private:
  Status run();
  bool leaves_all() const;
  float* place_of_sum(std::uint64_t block);
  Status add(std::uint64_t block);
  void leave_to_mpi(std::uint64_t block);

  std::uint64_t word_;  // what this rank publishes
  NodeResult& result_;
  // In a call in place, a block's input is lost once its sum is in `out`. So the sum is held back
  // until all ranks know that no rank leaves the block to MPI.
  const bool holds_back_ = call_.in == call_.out && call_.device.kernels()->add != nullptr;
  float* sum_ = nullptr;  // this rank's in the present block
};

// Whether the ranks add nothing, by their words before the first addition.
bool OneNodePass::leaves_all() const {
  const NodeBarrier::Published words = shared_.published();
  result_.unverified = (words.any & published::kUnverified) != 0;
  result_.left_to_mpi =
      (words.any & published::kUnfit) != 0 || !words.alike(published::kEnvironment);
  if (result_.left_to_mpi || result_.unverified) return true;
  // Only some ranks add on a device, and others have not checked what these would add.
  result_.unchecked =
      (words.any & published::kOnDevice) != 0 && (words.all & published::kChecked) == 0;
  return result_.unchecked;
}

// A sum that is held back is put into the message buffer. If that is written by non-temporal
// stores, it is put into scratch behind what the additions use.
float* OneNodePass::place_of_sum(std::uint64_t block) {
  if (!holds_back_) return call_.out + own(block).first;
  if (stores() == Where::memory) return scratch() + std::uint64_t(size_ - 1) * blocks_.piece();
  return place(me_, group_.shard_index, block);
}

Status OneNodePass::add(std::uint64_t block) {
  const comm::Range mine = own(block);
  if (mine.count == 0) return Status::ok;
  std::pmr::memory_resource* const memory = &call_.scratch.objects;
  std::pmr::vector<const float*> addends(memory);
  SLIMPI_TRY(find_addends(block, addends));
  sum_ = place_of_sum(block);
  {
    const Slice slice = node_slice(call_, "node add", mine.count * sizeof(float));
    // In the caller's floating-point environment, in which MPI would have added.
    const CallersFloats environment;
    if (add_in_pairs(call_.device_stream(), addends, mine.count, scratch(), blocks_.piece(), sum_,
                     memory))
      word_ |= published::kSeveralNans;
  }
  return copy_sum(block, sum_);
}

// All ranks stop before this block is written to `out`. No rank reads the message buffers any more.
void OneNodePass::leave_to_mpi(std::uint64_t block) {
  result_.left_to_mpi = true;
  // Blocks before this one are finished in `out` on all ranks, since all have passed the same
  // barriers.
  for (const comm::Range& shard : blocks_.shards())
    result_.finished.push_back({shard.first, std::min(shard.count, block * blocks_.piece())});
}

Status OneNodePass::run() {
  SLIMPI_TRY(offer(word_));
  if (leaves_all()) return Status::ok;
  SLIMPI_TRY(agree());
  if (call_.node_path == comm::NodePath::nccl) return Status::ok;
  for (std::uint64_t block = 0; block < blocks_.blocks(); ++block) {
    SLIMPI_TRY(add(block));
    SLIMPI_TRY(copy_to_others(block + 1));
    // Also tells whether two NaNs were added in the block.
    shared_.publish(word_);
    SLIMPI_TRY(barrier());
    // Read by all ranks after the same barrier, so all stop at the same block.
    if ((shared_.published().any & published::kSeveralNans) != 0) {
      leave_to_mpi(block);
      break;
    }
    SLIMPI_TRY(fetch(block));
    const comm::Range mine = own(block);
    float* const out = call_.out + mine.first;
    if (mine.count != 0 && sum_ != out) SLIMPI_TRY(copy(out, sum_, mine.count, in_out_));
  }
  end();
  return copied();
}

}  // namespace

Status allreduce_by_shm(comm::Call& call, const comm::InterNodeGroup& group, std::uint64_t word,
                        NodeResult* result) {
  return OneNodePass(call, group, word, result).allreduce();
}

}  // namespace slimpi::intra
