// SPDX-License-Identifier: BSD-3-Clause
#include "intra/transport_cma.h"

#include <algorithm>
#include <atomic>
#include <memory_resource>
#include <vector>

#include "intra/node_state.h"
#include "intra/ordered_sum.h"

namespace slimpi::intra {

namespace {

// Floats that are added at once. The pieces of all ranks stay in the caches of a core.
constexpr std::uint64_t kAtOnce = 16 << 10;

// Below this a call has too few segments for its pieces to overlap, and a system call for each
// costs more than the copies it saves.
constexpr std::uint64_t kLeastBytes = 1 << 20;

}  // namespace

NodePieces::NodePieces(comm::Call& call) : call_(call), shared_(*shared_of(call.communicator)) {}

bool NodePieces::possible(comm::Communicator& communicator, std::uint64_t bytes) {
  NodeBarrier* const shared = shared_of(communicator);
  return bytes >= kLeastBytes && shared != nullptr && shared->segment().peers_readable;
}

// One part for what is read from each other rank, and one for add_in_order.
Status NodePieces::reserve(const comm::Call& call) {
  const std::size_t ranks = call.communicator.layout().node_ranks().size();
  return call.scratch.pieces.reserve(call.location, device::Place::device,
                                     ranks * kAtOnce * sizeof(float),
                                     call.communicator.statistics());
}

Status NodePieces::sum(const comm::Range& part) {
  const Timed timed(call_.communicator.statistics(), Stage::intra, "node sum", 4 * part.count);
  comm::CallScratch& scratch = call_.scratch;
  std::pmr::vector<const float*> addends(&scratch.objects);
  for (std::uint64_t at = 0; at < part.count; at += kAtOnce) {
    const std::uint64_t first = part.first + at, count = std::min(kAtOnce, part.count - at);
    auto* to = reinterpret_cast<float*>(scratch.pieces.data());
    // In rank order, as in all transports: the bytes of the sum depend on it.
    addends.clear();
    for (int local = 0; local < shared_.size(); ++local) {
      if (local == shared_.local_rank()) {
        addends.push_back(call_.in + first);
        continue;
      }
      const PeerNote& peer = shared_.segment().peer_note(local);
      SLIMPI_TRY(read_peer(peer, peer.in + first, to, count * sizeof(float)));
      addends.push_back(to);
      to += kAtOnce;
    }
    add_in_order(call_.device_stream(), addends, count, to, call_.out + first);
  }
  return Status::ok;
}

// The fence orders non-temporal stores, too.
void NodePieces::set_finished(std::uint64_t segments) {
  PeerNote& note = shared_.segment().peer_note(shared_.local_rank());
  std::atomic_thread_fence(std::memory_order_seq_cst);
  std::atomic_ref(note.finished).store(segments, std::memory_order_release);
}

std::uint64_t NodePieces::finished(int local) const {
  return std::atomic_ref(shared_.segment().peer_note(local).finished)
      .load(std::memory_order_acquire);
}

Status NodePieces::fetch(int local, const comm::Range& part) {
  const Timed timed(call_.communicator.statistics(), Stage::intra, "node share", 4 * part.count);
  const PeerNote& peer = shared_.segment().peer_note(local);
  return read_peer(peer, peer.result + part.first, call_.out + part.first,
                   part.count * sizeof(float));
}

}  // namespace slimpi::intra
