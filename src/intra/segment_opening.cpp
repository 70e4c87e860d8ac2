// SPDX-License-Identifier: BSD-3-Clause
// The node's first rank in the communicator leads. It collects the processes' numbers, proposes a
// segment to the others, and sends them the result. Messages order all steps, so no system call
// blocks. A rank that fails reports it in its next message and goes on.
#include "intra/segment_opening.h"

#include <algorithm>
#include <string>

#include "base/log.h"
#include "intra/device_path.h"
#include "intra/file_passing.h"
#include "intra/leader_words.h"
#include "intra/peer_memory.h"
#include "intra/segment_registry.h"

namespace slimpi::intra {

namespace {

// Floats of a process's data area in one block: the fastest size first, then smaller ones.
constexpr std::uint64_t kBlocks[] = {NodeSegment::kBlock, 32 << 10, 8 << 10};

class Opening {
 public:
  Opening(comm::Exchange& exchange, const comm::NodeLayout& layout, Intra intra,
          Statistics& statistics)
      : words_(exchange, layout),
        local_(layout.local_rank()),
        intra_(intra),
        statistics_(statistics),
        registry_(SegmentRegistry::instance()) {}
  Opening(const Opening&) = delete;
  Opening& operator=(const Opening&) = delete;

  // Both involve the ranks of this node only. Attempt 0 looks for an existing segment, and makes
  // one if there is none. Later attempts make one with smaller blocks.
  Status exchange_process_numbers();
  Status attempt(std::size_t number, SegmentPlace* place);

 private:
  // What the first rank proposes: an existing segment, or a new one; id 0: nothing.
  struct Proposal {
    std::uint64_t id, channel, is_new, block;
  };

  bool leads() const { return local_ == 0; }
  int size() const { return words_.ranks(); }
  Proposal propose(std::size_t number, SegmentPlace* place);
  Status make(const Proposal& proposal, SegmentPlace* place, bool* good);
  Status try_peers(NodeSegment& segment);
  std::shared_ptr<NodeSegment> new_segment(const Proposal& proposal);
  int process_of(std::size_t local) const;  // position of its number in sorted_

  LeaderWords words_;
  const int local_;
  const Intra intra_;
  Statistics& statistics_;
  SegmentRegistry& registry_;
  std::vector<std::uint64_t> by_rank_, sorted_;  // numbers of the node's processes
  SharedFile file_;
  FileOffer offer_;
  std::size_t made_ = 0;  // entries of kBlocks that were tried
};

Status Opening::exchange_process_numbers() {
  // The sorted numbers are what a segment is found by: two communicators of the same processes may
  // number their ranks differently.
  const std::uint64_t mine = registry_.process();
  by_rank_.assign(std::size_t(size()), mine);
  if (leads())
    for (int local = 1; local < size(); ++local)
      SLIMPI_TRY(words_.receive(local, {&by_rank_[std::size_t(local)], 1}));
  else
    SLIMPI_TRY(words_.send(0, {&mine, 1}));
  SLIMPI_TRY(words_.publish(by_rank_));
  sorted_ = by_rank_;
  std::sort(sorted_.begin(), sorted_.end());
  return Status::ok;
}

int Opening::process_of(std::size_t local) const {
  return int(std::lower_bound(sorted_.begin(), sorted_.end(), by_rank_[local]) - sorted_.begin());
}

std::shared_ptr<NodeSegment> Opening::new_segment(const Proposal& proposal) {
  return std::make_shared<NodeSegment>(proposal.id, sorted_, process_of(std::size_t(local_)),
                                       proposal.block, statistics_);
}

Opening::Proposal Opening::propose(std::size_t number, SegmentPlace* place) {
  // Threads that open communicators of the same processes at the same moment make a segment each.
  if (number == 0) place->segment = registry_.find(sorted_, intra_, &place->channel);
  if (place->segment != nullptr)
    return {place->segment->id(), std::uint64_t(place->channel), 0, place->segment->ring.longest()};
  // A block has some floats of every rank's shard; see piece_of().
  if (made_ == std::size(kBlocks) || kBlocks[made_] < kLeastPiece * std::uint64_t(size()))
    return {};
  // The file has its length and no memory yet; every process reserves its own part in make().
  Proposal proposal{registry_.random(), 0, 1, kBlocks[made_++]};
  if (file_.create(new_segment(proposal)->bytes()) != Status::ok ||
      offer_.open(proposal.id) != Status::ok)
    proposal.id = 0;
  return proposal;
}

// Finds out whether the processes can read each other's memory. Nothing is logged where they
// cannot, unless SLIMPI_INTRA asks for it.
Status Opening::try_peers(NodeSegment& segment) {
  if (intra_ != Intra::cma && intra_ != Intra::automatic) return Status::ok;
  const int me = segment.me();
  offer_memory(registry_.process(), segment.data(me), &segment.peer_note(me));
  bool good = true;
  SLIMPI_TRY(words_.agree(&good));  // all notes are written
  for (int process = 0; process < size(); ++process)
    // Every pair is tried: the permission may hold in one direction only.
    good = good && (process == me || can_read(segment.peer_note(process)));
  SLIMPI_TRY(words_.agree(&good));
  segment.peers_readable = good;
  if (!good && intra_ == Intra::cma && leads())
    log_once(LogLevel::warn,
             "SLIMPI_INTRA=cma cannot be used here: the ranks of a node may not read each other's "
             "memory (process_vm_readv); they use shm");
  return Status::ok;
}

// Every process reserves the memory of its own region, so it lies on that process's NUMA node.
Status Opening::make(const Proposal& proposal, SegmentPlace* place, bool* good) {
  SLIMPI_TRY(leads() ? give_file(words_, offer_, file_, by_rank_, good)
                     : take_file(words_, proposal.id, by_rank_[std::size_t(local_)], &file_, good));
  place->segment = new_segment(proposal);
  *good = *good && place->segment->map(file_, leads()) == Status::ok;
  if (!*good) log_failure_once(LogLevel::debug, "a shared-memory segment could not be made");
  SLIMPI_TRY(words_.agree(good));
  if (!*good) {
    place->segment.reset();
    return Status::ok;
  }
  // Only now, when every process has reserved its part.
  place->segment->touch();
  SLIMPI_TRY(try_peers(*place->segment));
  place->segment->device_path = std::make_unique<DevicePath>(intra_);
  // The first rank proposes it to other communicators only when all ranks can find it.
  if (!leads()) registry_.add(place->segment, intra_);
  SLIMPI_TRY(words_.agree(good));
  std::uint64_t channel = leads() ? std::uint64_t(place->segment->take_channel()) : 0;
  SLIMPI_TRY(words_.publish({&channel, 1}));
  place->channel = int(channel);
  if (leads()) registry_.add(place->segment, intra_);
  return Status::ok;
}

Status Opening::attempt(std::size_t number, SegmentPlace* place) {
  Proposal proposal{};
  if (leads()) proposal = propose(number, place);
  std::uint64_t words[] = {proposal.id, proposal.channel, proposal.is_new, proposal.block};
  SLIMPI_TRY(words_.publish(words));
  proposal = {words[0], words[1], words[2], words[3]};
  bool good = proposal.id != 0;
  if (good && proposal.is_new != 0) {
    SLIMPI_TRY(make(proposal, place, &good));
  } else if (good) {
    // Null where this process has released the segment since; then all give it up.
    if (!leads()) place->segment = registry_.find(proposal.id);
    place->channel = int(proposal.channel);
    good = place->segment != nullptr;
    SLIMPI_TRY(words_.agree(&good));
    if (!good && leads()) place->segment->give_back_channel(place->channel);
    if (!good && place->segment != nullptr) registry_.release(std::move(place->segment));
  }
  if (!good) {
    *place = {};
    return Status::ok;
  }
  place->process_of.clear();
  for (std::size_t local = 0; local < by_rank_.size(); ++local)
    place->process_of.push_back(process_of(local));
  return Status::ok;
}

// Repeats until the ranks of every node have a segment, or have tried everything. A segment that
// one of the processes has already released costs one attempt of its own.
Status find_places(Opening& opening, comm::Exchange& exchange, SegmentPlace* place, bool* ready) {
  SLIMPI_TRY(opening.exchange_process_numbers());
  constexpr std::size_t kAttempts = std::size(kBlocks) + 1;
  for (std::size_t number = 0; number < kAttempts && !*ready; ++number) {
    // A node that has its segment only takes part in the agreement, which is over the communicator.
    if (place->segment == nullptr) SLIMPI_TRY(opening.attempt(number, place));
    *ready = place->segment != nullptr;
    SLIMPI_TRY(exchange.all_true(ready));
  }
  return Status::ok;
}

}  // namespace

// Without a channel the opening failed on the way, and the registry may not know the segment yet.
void leave_segment(SegmentPlace* place) {
  if (place->segment != nullptr) {
    if (place->channel >= 0) place->segment->leave_channel(place->channel);
    SegmentRegistry::instance().release(std::move(place->segment));
  }
  *place = {};
}

Status open_segment(comm::Exchange& exchange, const comm::NodeLayout& layout, Intra intra,
                    Statistics& statistics, SegmentPlace* place, bool* ready) {
  Opening opening(exchange, layout, intra, statistics);
  *place = {};
  *ready = false;
  const Status status = find_places(opening, exchange, place, ready);
  if (!*ready) leave_segment(place);
  return status;
}

}  // namespace slimpi::intra
