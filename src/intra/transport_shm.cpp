// SPDX-License-Identifier: BSD-3-Clause
// The shm and ipc transports: exchange inside a node through message buffers that its ranks share.
// They lie in host memory, or, where all ranks' buffers are on devices with IPC, in device memory;
// the sums and their order are the same.
//
// The vector passes in blocks. For each block: every rank copies into its message buffer what its
// node-local ranks own, and passes a barrier. Then every owner adds its shard from all message
// buffers. If the result is needed at once, the owner copies it into its own message buffer, from
// which the others copy it. Three blocks are in flight, so one barrier per block is enough: a
// message buffer is written again only after a barrier that every rank reached after reading it.
#include <algorithm>
#include <cstring>
#include <vector>

#include "base/float_environment.h"
#include "comm/communicator.h"
#include "comm/stream_wait.h"
#include "intra/copies.h"
#include "intra/intra_node.h"
#include "intra/node_state.h"
#include "intra/ordered_sum.h"
#include "intra/published_word.h"
#include "intra/transports.h"

namespace slimpi::intra {

namespace {

// From this size on, a result evicts everything else from the caches, and has left them itself when
// the program reads it. It is written by non-temporal stores (docs/DESIGN.md).
constexpr std::uint64_t kLargeBytes = 16 << 20;

// Floats of one shard in a block of `block` floats.
std::uint64_t piece_of(const comm::InterNodeGroup& group, std::uint64_t block) {
  return std::max<std::uint64_t>(block / std::uint64_t(group.shards) / 16 * 16, 16);
}

class ShmPass {
 public:
  using Path = DevicePath::Path;

  ShmPass(comm::Call& call, const comm::InterNodeGroup& group, const SegmentLease& lease)
      : call_(call),
        group_(group),
        lease_(lease),
        shared_(*shared_of(call.communicator)),
        segment_(shared_.segment()),
        exchange_(call.communicator.exchange()),
        me_(call.communicator.layout().local_rank()),
        size_(int(call.communicator.layout().node_ranks().size())),
        device_path_(*segment_.device_path),
        buffers_(device_path_.buffers) {
    for (int shard_index = 0; shard_index < group.shards; ++shard_index)
      shards_.push_back(shard_range(call.count, call.plan.format, group, shard_index));
  }

  // They only set *way where the call must use nccl or mpi.
  Status sum(Path* way) { return exchange_.settle(run_sum(way), {}); }
  Status allreduce(std::uint64_t word, Path* way, NodeResult* result) {
    word_ = word;
    result_ = result;
    holds_back_ = call_.in == call_.out && call_.device.kernels()->add != nullptr;
    return exchange_.settle(run_allreduce(way), {});
  }
  Status share(Path* way) { return exchange_.settle(run_share(way), {}); }

 private:
  Status run_sum(Path* way);
  Status run_share(Path* way);
  Status run_allreduce(Path* way);
  void use(bool in_device);
  Status begin(Path* way);
  Status begin_share(Path* way);
  void end();
  comm::Range part(int shard_index, std::uint64_t block) const {
    const comm::Range& shard = shards_[std::size_t(shard_index)];
    if (block * piece_ >= shard.count) return {};
    return {shard.first + block * piece_, std::min(piece_, shard.count - block * piece_)};
  }
  // Where a shard of a block lies in a rank's message buffer. Only that rank writes there.
  float* place(int owner_of_message_buffer, int shard_index, std::uint64_t block) const {
    constexpr int kDepth = NodeSegment::kDepth;
    static_assert(kDepth == IpcBuffers::kDepth);
    const std::uint64_t slot = ((in_device_ ? buffers_.blocks : segment_.blocks) + block) % kDepth;
    float* const buffer = in_device_ ? buffers_.buffer(shared_.process_of(owner_of_message_buffer))
                                     : shared_.buffer(owner_of_message_buffer);
    return buffer + slot * (in_device_ ? IpcBuffers::kBlock : segment_.block()) +
           std::uint64_t(shard_index) * piece_;
  }
  // Scratch of the additions; private to this rank.
  float* partial() const {
    return in_device_ ? buffers_.scratch()
                      : reinterpret_cast<float*>(call_.communicator.scratch().partial.data());
  }
  bool owner() const { return group_.shard_index >= 0; }
  using Where = NodeCopies::Where;
  Status copy(float* to, const float* from, std::uint64_t count, Where where = Where::caches) {
    return copies_.copy(to, from, count * sizeof(float), where);
  }
  Where where_in_segment() const { return shared_.cross_cache() ? Where::memory : Where::caches; }
  // Waits for the copies and additions on the stream; then other ranks may see the message buffer.
  Status copied() {
    SLIMPI_TRY(comm::synchronize(call_.device, call_.stream));
    copies_.done();
    return Status::ok;
  }
  Status copy_to_segment(std::uint64_t block);
  float* place_of_sum(std::uint64_t block);
  void leave_to_mpi(std::uint64_t block);
  Status reduce(std::uint64_t block, bool pairwise);
  Status publish(std::uint64_t block);
  Status fetch(std::uint64_t block);
  Status find_addends(std::uint64_t block, const comm::Range& mine,
                      std::vector<const float*>& addends);
  Status barrier();

  comm::Call& call_;
  const comm::InterNodeGroup& group_;
  const SegmentLease& lease_;
  SharedSegment& shared_;
  NodeSegment& segment_;
  comm::Exchange& exchange_;
  const int me_, size_;
  DevicePath& device_path_;
  IpcBuffers& buffers_;
  bool in_device_ = false;  // true: the message buffers are in device memory
  std::uint64_t piece_ = 0;
  std::vector<comm::Range> shards_;
  std::uint64_t blocks_ = 0;
  std::uint64_t word_ = 0;  // what this rank publishes in addition to its readiness
  NodeResult* result_ = nullptr;
  // In a call in place, a block's input is lost once its sum is in `out`. So the sum is held back
  // until all ranks know that no rank leaves the block to MPI.
  bool holds_back_ = false;
  float* summed_ = nullptr;  // this rank's sum in the block that was added last
  NodeCopies copies_{call_};
  const Where in_out_ = call_.count * sizeof(float) >= kLargeBytes ? Where::memory : Where::caches;
};

// Chooses the message buffers. The length of a block, and so the number of blocks, depends on it.
void ShmPass::use(bool in_device) {
  in_device_ = in_device;
  piece_ = piece_of(group_, in_device ? IpcBuffers::kBlock : segment_.block());
  blocks_ = 0;
  for (const comm::Range& shard : shards_)
    blocks_ = std::max(blocks_, (shard.count + piece_ - 1) / piece_);
}

// Whether nccl or mpi does the call. This rank has published what it holds, and has changed no data
// area that others read.
constexpr bool elsewhere(DevicePath::Path way) {
  return way == DevicePath::Path::nccl || way == DevicePath::Path::mpi;
}

// When this returns, the first block is in the message buffers. Host or device message buffers:
// that depends on where all node-local ranks' buffers lie in this very call. Each rank starts with
// what its own buffers allow, and publishes that. Only if ranks differ, or if they had to open a
// device path first, is the first block copied a second time. Where another call holds the lease on
// some process, which is published in the same word, all ranks use mpi. What was copied until then
// is in a message buffer that every call writes before it reads it.
Status ShmPass::begin(Path* way) {
  const DevicePath::Readiness mine =
      lease_.held() ? device_path_.readiness(call_.location) : DevicePath::unavailable;
  *way = mine == DevicePath::ready ? device_path_.way() : Path::host;
  use(*way == Path::ipc);
  shared_.publish(std::uint64_t(mine) | word_ | (lease_.held() ? 0 : published::kTaken));
  if (lease_.held() && *way != Path::nccl) SLIMPI_TRY(copy_to_segment(0));
  SLIMPI_TRY(barrier());
  const SharedSegment::Published published = shared_.published();
  if (result_ != nullptr) {
    result_->unverified = (published.any & published::kUnverified) != 0;
    result_->left_to_mpi = (published.any & (published::kUnfit | published::kTaken)) != 0 ||
                           !published.alike(published::kEnvironment);
    if (result_->left_to_mpi || result_->unverified) return Status::ok;
  }
  const bool alike = published.alike(published::kReadiness);
  const bool all_closed = alike && (published.all & published::kReadiness) == DevicePath::not_open;
  const bool again = !alike || all_closed;
  if ((published.any & published::kTaken) != 0) {
    *way = Path::mpi;
  } else if (!alike) {
    *way = Path::host;
  } else if (all_closed) {
    SLIMPI_TRY(
        device_path_.open(shared_, exchange_, call_.location, call_.communicator.statistics()));
    *way = device_path_.way();
  }
  if (elsewhere(*way) || !again) return Status::ok;
  use(*way == Path::ipc);
  SLIMPI_TRY(copy_to_segment(0));
  return barrier();
}

// The same for the all-gather of a call whose reduce-scatter used *way.
Status ShmPass::begin_share(Path* way) {
  use(*way == Path::ipc);
  shared_.publish(lease_.held() ? 0 : published::kTaken);
  if (lease_.held() && *way != Path::nccl) SLIMPI_TRY(publish(0));
  SLIMPI_TRY(barrier());
  if ((shared_.published().any & published::kTaken) != 0) *way = Path::mpi;
  return Status::ok;
}

// Every rank counts the same number of blocks, so all agree on the next call's message buffers.
void ShmPass::end() {
  (in_device_ ? buffers_.blocks : segment_.blocks) += blocks_ + 1;
}

Status ShmPass::barrier() {
  SLIMPI_TRY(copied());
  return shared_.barrier(exchange_, std::min(call_.count, NodeSegment::kBlock) * sizeof(float));
}

// Copies this rank's values of the others' shards into its message buffer of the block.
Status ShmPass::copy_to_segment(std::uint64_t block) {
  for (int shard_index = 0; shard_index < group_.shards; ++shard_index)
    if (const comm::Range theirs = part(shard_index, block);
        shard_index != group_.shard_index && theirs.count != 0)
      SLIMPI_TRY(copy(place(me_, shard_index, block), call_.in + theirs.first, theirs.count,
                      where_in_segment()));
  return Status::ok;
}

// Makes this rank's sum of a block visible to the others after the next barrier.
Status ShmPass::publish(std::uint64_t block) {
  if (!owner()) return Status::ok;
  const comm::Range mine = part(group_.shard_index, block);
  float* const buffer = place(me_, group_.shard_index, block);
  const float* const from = summed_ != nullptr ? summed_ : call_.out + mine.first;
  if (mine.count == 0 || from == buffer) return Status::ok;
  return copy(buffer, from, mine.count, where_in_segment());
}

// Copies the finished shards of a block into `out`, this rank's held-back sum included.
Status ShmPass::fetch(std::uint64_t block) {
  for (int shard_index = 0; shard_index < group_.shards; ++shard_index)
    if (const comm::Range theirs = part(shard_index, block);
        shard_index != group_.shard_index && theirs.count != 0)
      SLIMPI_TRY(copy(call_.out + theirs.first,
                      place(group_.owner(shard_index), shard_index, block), theirs.count, in_out_));
  const comm::Range mine = owner() ? part(group_.shard_index, block) : comm::Range{};
  if (summed_ == nullptr || mine.count == 0 || summed_ == call_.out + mine.first) return Status::ok;
  return copy(call_.out + mine.first, summed_, mine.count, in_out_);
}

// A sum that is held back is put into the message buffer. If that is written by non-temporal
// stores, it is put into scratch behind what the additions use.
float* ShmPass::place_of_sum(std::uint64_t block) {
  if (!holds_back_) return call_.out + part(group_.shard_index, block).first;
  if (shared_.cross_cache()) return partial() + std::uint64_t(size_ - 1) * piece_;
  return place(me_, group_.shard_index, block);
}

// All ranks stop before this block is written to `out`. No rank reads the message buffers any more.
void ShmPass::leave_to_mpi(std::uint64_t block) {
  result_->left_to_mpi = true;
  for (const comm::Range& shard : shards_)
    result_->finished.push_back({shard.first, std::min(shard.count, block * piece_)});
}

// The node-local ranks' values of this rank's shard in a block, in rank order, in memory that the
// kernels can read.
Status ShmPass::find_addends(std::uint64_t block, const comm::Range& mine,
                             std::vector<const float*>& addends) {
  auto* scratch = reinterpret_cast<float*>(call_.communicator.scratch().messages.data());
  for (int other = 0; other < size_; ++other, scratch += piece_) {
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
  if (!owner()) return Status::ok;
  const comm::Range mine = part(group_.shard_index, block);
  if (mine.count == 0) return Status::ok;
  std::vector<const float*> addends;
  SLIMPI_TRY(find_addends(block, mine, addends));
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

Status ShmPass::run_sum(Path* way) {
  SLIMPI_TRY(begin(way));
  if (elsewhere(*way)) return Status::ok;
  for (std::uint64_t block = 0; block < blocks_; ++block) {
    SLIMPI_TRY(reduce(block, false));
    SLIMPI_TRY(copy_to_segment(block + 1));
    SLIMPI_TRY(barrier());
  }
  end();
  return Status::ok;
}

Status ShmPass::run_share(Path* way) {
  SLIMPI_TRY(begin_share(way));
  if (elsewhere(*way)) return Status::ok;
  for (std::uint64_t block = 0; block < blocks_; ++block) {
    if (block != 0) {
      SLIMPI_TRY(publish(block));
      SLIMPI_TRY(barrier());
    }
    SLIMPI_TRY(fetch(block));
  }
  end();
  return copied();
}

Status ShmPass::run_allreduce(Path* way) {
  SLIMPI_TRY(begin(way));
  if (elsewhere(*way) || result_->unverified || result_->left_to_mpi) return Status::ok;
  for (std::uint64_t block = 0; block < blocks_ && !result_->left_to_mpi; ++block) {
    SLIMPI_TRY(reduce(block, true));
    SLIMPI_TRY(publish(block));
    SLIMPI_TRY(copy_to_segment(block + 1));
    shared_.publish(word_);
    SLIMPI_TRY(barrier());
    if ((shared_.published().any & published::kSeveralNans) != 0)
      leave_to_mpi(block);
    else
      SLIMPI_TRY(fetch(block));
  }
  end();
  return copied();
}

}  // namespace

std::size_t shared_scratch_bytes(std::size_t size, const comm::InterNodeGroup& group) {
  return size * piece_of(group, NodeSegment::kBlock) * sizeof(float);
}

Status reduce_scatter_by_shm(comm::Call& call, const comm::InterNodeGroup& group,
                             const SegmentLease& lease, DevicePath::Path* way) {
  return ShmPass(call, group, lease).sum(way);
}

Status all_gather_by_shm(comm::Call& call, const comm::InterNodeGroup& group,
                         const SegmentLease& lease, DevicePath::Path* way) {
  return ShmPass(call, group, lease).share(way);
}

Status allreduce_by_shm(comm::Call& call, const comm::InterNodeGroup& group,
                        const SegmentLease& lease, std::uint64_t word, DevicePath::Path* way,
                        NodeResult* result) {
  return ShmPass(call, group, lease).allreduce(word, way, result);
}

}  // namespace slimpi::intra
