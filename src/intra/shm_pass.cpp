// SPDX-License-Identifier: BSD-3-Clause
// How the ranks of a node agree on the buffers of a call: message buffers of the host or of a
// device; or, in a sum in pieces, the program's own.
#include "intra/shm_pass.h"

#include "base/activity.h"
#include "base/round_up.h"
#include "intra/published_word.h"

namespace slimpi::intra {

// Chooses the message buffers. The length of a block, and so the number of blocks, depends on it.
void ShmPass::use(bool in_device) {
  in_device_ = in_device;
  blocks_.divide(piece_of(group_, ring().longest()));
  if (blocks_.blocks() == 1)
    blocks_.divide(std::min<std::uint64_t>(blocks_.piece(), round_up(blocks_.longest(), 16)));
  message_buffers_ = ring().next(blocks_.piece() * std::uint64_t(group_.shards));
}

std::uint64_t ShmPass::count_field() const {
  return call_.count << published::kCountShift;
}

// The ranks of the node are named by their numbers in the communicator.
std::string ShmPass::describe_counts() const {
  const std::uint64_t mine = count_field();
  const std::vector<int>& ranks = call_.communicator.layout().node_ranks();
  int other = 0;
  while ((shared_.word(other) & published::kCount) == mine) ++other;
  return describe_other_count(ranks[std::size_t(other)],
                              shared_.word(other) >> published::kCountShift);
}

// Before the first barrier: chooses message buffers of the host or of a device by what this rank's
// own buffers allow, and publishes that.
ShmPass::Path ShmPass::propose(bool wants_pieces) {
  const DevicePath::Readiness mine = device_path_.readiness(call_.location);
  const Path own = mine == DevicePath::ready ? device_path_.path() : Path::host;
  use(own == Path::ipc);
  if (mine == DevicePath::unavailable) segment_.pin(call_.location);
  if (wants_pieces) shared_.peer_note(me_).offer(call_.in, call_.out);
  shared_.publish(std::uint64_t(mine) | word_ | count_field() |
                  (wants_pieces ? published::kPieces : 0));
  return own;
}

// When this returns, the first block is in the message buffers, unless the call is done by nccl, in
// pieces, or left to MPI. Only if ranks proposed different buffers, or if they had to open a device
// path first, is the first block copied a second time. What was copied until then is in a message
// buffer that every call writes before it reads it.
Status ShmPass::begin(Path* path, bool* in_pieces) {
  const Path own = propose(*in_pieces);
  if (own != Path::nccl && !*in_pieces) SLIMPI_TRY(copy_to_segment(0));
  SLIMPI_TRY(barrier());
  const NodeBarrier::Published published = shared_.published();
  if (!published.alike(published::kCount)) return fail(Status::bad_message, describe_counts());
  if (result_ != nullptr) {
    result_->unverified = (published.any & published::kUnverified) != 0;
    result_->left_to_mpi =
        (published.any & published::kUnfit) != 0 || !published.alike(published::kEnvironment);
    if (result_->left_to_mpi || result_->unverified) return Status::ok;
    // Only some ranks add on a device, and others have not checked what these would add.
    result_->unchecked =
        (published.any & published::kOnDevice) != 0 && (published.all & published::kChecked) == 0;
    if (result_->unchecked) return Status::ok;
  }
  const PassDecision decision = decide(published, own);
  *in_pieces = decision.pieces;
  *path = decision.path;
  if (decision.open) {
    SLIMPI_TRY(
        device_path_.open(shared_, exchange_, call_.location, call_.communicator.statistics()));
    *path = device_path_.path();
  }
  if (*path == Path::nccl || !decision.again) return Status::ok;
  use(*path == Path::ipc);
  if (!in_device_) segment_.pin(call_.location);
  SLIMPI_TRY(copy_to_segment(0));
  return barrier();
}

// Every rank passes the same message buffers, so all agree on the next call's.
void ShmPass::end() {
  ring().pass(message_buffers_, blocks_.blocks());
}

// A communicator of NCCL whose ranks may have done different things is not closed in order.
Status ShmPass::settle(Status status) {
  status = exchange_.settle(status, {});
  if (status != Status::ok) device_path_.close_nccl(false);
  return status;
}

Status ShmPass::barrier() {
  SLIMPI_TRY(copied());
  return shared_.barrier(exchange_, std::min(call_.count, NodeSegment::kBlock) * sizeof(float));
}

}  // namespace slimpi::intra
