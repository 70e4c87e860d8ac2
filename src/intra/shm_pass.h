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
// While a rank writes a block, others read the two before it at most; while it writes the first
// block of a call, the last one of the call before.
#pragma once
#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "base/exceptions.h"
#include "comm/communicator.h"
#include "comm/stream_wait.h"
#include "intra/copies.h"
#include "intra/intra_node.h"
#include "intra/node_blocks.h"
#include "intra/node_slice.h"
#include "intra/node_state.h"
#include "intra/pass_decision.h"
#include "intra/transports.h"

namespace slimpi::intra {

// Floats of one shard in a block of `block` floats. All shards together have no more than a block:
// opening a segment ensures that a block has kLeastPiece floats of each.
inline std::uint64_t piece_of(const comm::InterNodeGroup& group, std::uint64_t block) {
  return std::max(block / std::uint64_t(group.shards) / kLeastPiece * kLeastPiece, kLeastPiece);
}

// One call, or one half of a hierarchical one.
class ShmPass {
 public:
  using Path = DevicePath::Path;

  ShmPass(comm::Call& call, const comm::InterNodeGroup& group)
      : call_(call),
        group_(group),
        shared_(*shared_of(call.communicator)),
        segment_(shared_.segment()),
        exchange_(call.communicator.exchange()),
        me_(call.communicator.layout().local_rank()),
        size_(int(call.communicator.layout().node_ranks().size())),
        device_path_(*segment_.device_path),
        buffers_(device_path_.buffers),
        blocks_(call, group) {}

  // sum and allreduce only set *path where the call must use nccl.
  Status sum(Path* path, bool* in_pieces) {
    return settle(caught([&] { return run_sum(path, in_pieces); }));
  }
  Status allreduce(std::uint64_t word, Path* path, NodeResult* result) {
    word_ = word;
    result_ = result;
    holds_back_ = call_.in == call_.out && call_.device.kernels()->add != nullptr;
    return settle(caught([&] { return run_allreduce(path); }));
  }
  Status share(Path path) {
    return settle(caught([&] { return run_share(path); }));
  }

 private:
  Status settle(Status status);
  Status run_sum(Path* path, bool* in_pieces);
  Status run_share(Path path);
  Status run_allreduce(Path* path);
  void use(bool in_device);
  Path propose(bool wants_pieces);
  Status begin(Path* path, bool* in_pieces);
  void end();
  // Where a shard of a block lies in the message buffer of local rank `local`, the only one that
  // writes there.
  float* place(int local, int shard_index, std::uint64_t block) const {
    float* const data = in_device_ ? buffers_.buffer(local) : shared_.buffer(local);
    return data + message_buffers_.place(block) + std::uint64_t(shard_index) * blocks_.piece();
  }
  BufferRing& ring() const { return in_device_ ? buffers_.ring : segment_.ring; }
  // Scratch of the additions; private to this rank.
  float* partial() const {
    return in_device_ ? buffers_.scratch() : call_.scratch.node_partial().data();
  }
  using Where = NodeCopies::Where;
  Status copy(float* to, const float* from, std::uint64_t count, Where where = Where::caches) {
    const NodeSlice slice(call_, where == Where::memory ? "node copy, non-temporal" : "node copy",
                          count * sizeof(float));
    return copies_.copy(to, from, count * sizeof(float), where);
  }
  // Waits for the copies and additions on the stream; then other ranks may see the message buffer.
  Status copied() {
    SLIMPI_TRY(comm::synchronize(call_.device_stream()));
    copies_.done();
    return Status::ok;
  }
  Status copy_to_segment(std::uint64_t block);
  float* place_of_sum(std::uint64_t block);
  void leave_to_mpi(std::uint64_t block);
  Status reduce(std::uint64_t block, bool pairwise);
  Status publish(std::uint64_t block);
  Status fetch(std::uint64_t block);
  std::uint64_t count_field() const;
  std::string describe_counts() const;
  Status find_addends(std::uint64_t block, const comm::Range& mine,
                      std::pmr::vector<const float*>& addends);
  Status barrier();

  comm::Call& call_;
  const comm::InterNodeGroup& group_;
  NodeBarrier& shared_;
  NodeSegment& segment_;
  comm::Exchange& exchange_;
  const int me_, size_;
  DevicePath& device_path_;
  IpcBuffers& buffers_;
  bool in_device_ = false;  // true: the message buffers are in device memory
  NodeBlocks blocks_;
  BufferRing::Buffers message_buffers_;
  std::uint64_t word_ = 0;  // what this rank publishes in addition to its readiness
  NodeResult* result_ = nullptr;
  // In a call in place, a block's input is lost once its sum is in `out`. So the sum is held back
  // until all ranks know that no rank leaves the block to MPI.
  bool holds_back_ = false;
  float* summed_ = nullptr;  // this rank's sum in the block that was added last
  NodeCopies copies_{call_};
  // From this size on, a result evicts everything else from the caches, and has left them itself
  // when the program reads it. It is written by non-temporal stores (docs/DESIGN.md).
  static constexpr std::uint64_t kLargeBytes = 4 << 20;
  // The stores that write message buffers of the host, and `out`.
  const Where in_segment_ = shared_.cross_cache() ? Where::memory : Where::caches;
  const Where in_out_ = call_.count * sizeof(float) >= kLargeBytes ? Where::memory : Where::caches;
};

}  // namespace slimpi::intra
