// SPDX-License-Identifier: BSD-3-Clause
// The node's first rank in the communicator leads: it makes a file, gives it to the others, and
// tells them what to map. Messages order all steps, so no system call blocks. A rank that fails
// reports it in its next message and goes on.
#include "intra/node_segment.h"

#include <algorithm>
#include <atomic>
#include <iterator>
#include <span>
#include <utility>
#include <vector>

#include "base/log.h"
#include "intra/device_path.h"
#include "intra/peer_memory.h"

namespace slimpi::intra {

namespace {

// Floats of a block that are tried: the fastest length first, then shorter ones.
constexpr std::uint64_t kBlocks[] = {NodeSegment::kBlock, 32 << 10, 8 << 10};

// Whether a rank's steps went well so far.
constexpr std::uint64_t kGood = 1, kFailed = 0;

std::uint64_t word_of(Status status) {
  return status == Status::ok ? kGood : kFailed;
}

// Words between the first of the node-local ranks, the leader, and each other one, by messages:
// there is no shared memory yet.
class LeaderWords {
 public:
  LeaderWords(comm::Exchange& exchange, const comm::NodeLayout& layout)
      : exchange_(exchange), node_local_ranks_(layout.node_ranks()), local_(layout.local_rank()) {}

  int ranks() const { return int(node_local_ranks_.size()); }

  // With the node-local rank `local`, which does the opposite at the same step. Each waits until
  // its message is complete; of two ranks one sends while the other receives, so none waits for
  // ever. Settled one by one, so that no rank waits for a later message of a leader that has given
  // up.
  Status send(int local, std::span<const std::uint64_t> words) {
    return exchange_.send_settled(node_local_ranks_[std::size_t(local)], comm::Tag::node_open,
                                  words.data(), words.size_bytes());
  }
  Status receive(int local, std::span<std::uint64_t> words) {
    return exchange_.receive_settled(node_local_ranks_[std::size_t(local)], comm::Tag::node_open,
                                     words.data(), words.size_bytes());
  }

  // Collective over the node. Gives the leader's words to all.
  Status broadcast(std::span<std::uint64_t> words) {
    // One after the other: this happens once for a communicator, among the ranks of one node.
    if (local_ != 0) return receive(0, words);
    for (int local = 1; local < ranks(); ++local) SLIMPI_TRY(send(local, words));
    return Status::ok;
  }

  // Collective over the node. Sets *good to whether it is true on all its ranks.
  Status agree(bool* good);

 private:
  comm::Exchange& exchange_;
  const std::vector<int>& node_local_ranks_;
  const int local_;
};

Status LeaderWords::agree(bool* good) {
  std::uint64_t all = *good ? 1 : 0;
  // A minimum of 0 and 1. A rank that failed takes part like the others, so the messages match.
  if (local_ != 0) SLIMPI_TRY(send(0, {&all, 1}));
  for (int local = 1; local_ == 0 && local < ranks(); ++local) {
    std::uint64_t theirs = 0;
    SLIMPI_TRY(receive(local, {&theirs, 1}));
    all = std::min(all, theirs);
  }
  SLIMPI_TRY(broadcast({&all, 1}));
  *good = all == 1;
  return Status::ok;
}

// The steps of the ranks of one node.
class Opening {
 public:
  Opening(comm::Exchange& exchange, const comm::NodeLayout& layout, Intra intra,
          Statistics& statistics)
      : words_(exchange, layout),
        local_(layout.local_rank()),
        intra_(intra),
        statistics_(statistics) {}
  Opening(const Opening&) = delete;
  Opening& operator=(const Opening&) = delete;

  // Each attempt has shorter blocks than the one before. *segment stays null where it fails.
  Status attempt(std::unique_ptr<NodeSegment>* segment);

 private:
  // What the leader offers: a file for a segment with blocks of so many floats; 0: nothing.
  struct Proposal {
    std::uint64_t name, block;
  };

  bool leads() const { return local_ == 0; }
  Proposal propose();
  Status give_file(bool* good);
  Status take_file(const Proposal& proposal, bool* good);
  Status try_peers(NodeSegment& segment);
  std::unique_ptr<NodeSegment> describe(std::uint64_t block) const {
    return std::make_unique<NodeSegment>(words_.ranks(), local_, block, statistics_);
  }

  LeaderWords words_;
  const int local_;
  const Intra intra_;
  Statistics& statistics_;
  SharedFile file_;
  FileOffer offer_;
  std::size_t tried_ = 0;  // entries of kBlocks
};

Opening::Proposal Opening::propose() {
  static std::atomic<std::uint64_t> offers{0};
  const std::uint64_t block = kBlocks[tried_++];
  // A block has some floats of every rank's shard; see piece_of().
  if (block < kLeastPiece * std::uint64_t(words_.ranks())) return {};
  // The file has its length and no memory yet; every rank reserves its own part.
  const std::uint64_t name = process_token() + offers++;
  if (file_.create(describe(block)->bytes()) != Status::ok || offer_.open(name) != Status::ok)
    return {};
  return {name, block};
}

// The leader gives the file to one rank after the other, so that the socket's queue is never full.
// The words between the leader and another rank, in order:
//   1. from the leader: begin
//   2. to the leader: the rank has asked at the socket
//   3. from the leader: the file is in the socket
// Each step is answered also after a failure, so no rank waits for ever.
Status Opening::give_file(bool* good) {
  for (int local = 1; local < words_.ranks(); ++local) {
    std::uint64_t word = kGood;
    SLIMPI_TRY(words_.send(local, {&word, 1}));
    SLIMPI_TRY(words_.receive(local, {&word, 1}));
    if (word == kGood) word = word_of(offer_.give(file_, std::uint64_t(local)));
    *good = *good && word == kGood;
    SLIMPI_TRY(words_.send(local, {&word, 1}));
  }
  return Status::ok;
}

Status Opening::take_file(const Proposal& proposal, bool* good) {
  FileRequest request;
  std::uint64_t word = kGood;
  SLIMPI_TRY(words_.receive(0, {&word, 1}));
  word = word_of(request.ask(proposal.name, std::uint64_t(local_)));
  SLIMPI_TRY(words_.send(0, {&word, 1}));
  SLIMPI_TRY(words_.receive(0, {&word, 1}));
  *good = *good && word == kGood && request.take(&file_) == Status::ok;
  return Status::ok;
}

// Finds out whether the ranks can read each other's memory. Nothing is logged where they cannot,
// unless SLIMPI_INTRA asks for it.
Status Opening::try_peers(NodeSegment& segment) {
  if (intra_ != Intra::cma && intra_ != Intra::automatic) return Status::ok;
  offer_memory(&segment.peer_note(local_));
  bool good = true;
  SLIMPI_TRY(words_.agree(&good));  // all notes are written
  for (int other = 0; other < words_.ranks(); ++other)
    // Every pair is tried: the permission may hold in one direction only.
    good = good && (other == local_ || can_read(segment.peer_note(other)));
  SLIMPI_TRY(words_.agree(&good));
  segment.peers_readable = good;
  if (!good && intra_ == Intra::cma && leads())
    log_once(LogLevel::warn,
             "SLIMPI_INTRA=cma cannot be used here: the ranks of a node may not read each other's "
             "memory (process_vm_readv); they use shm");
  return Status::ok;
}

Status Opening::attempt(std::unique_ptr<NodeSegment>* segment) {
  Proposal proposal{};
  if (leads()) proposal = propose();
  std::uint64_t words[] = {proposal.name, proposal.block};
  SLIMPI_TRY(words_.broadcast(words));
  proposal = {words[0], words[1]};
  if (proposal.block == 0) return Status::ok;
  bool good = true;
  SLIMPI_TRY(leads() ? give_file(&good) : take_file(proposal, &good));
  // Every rank reserves the memory of its own region, so it lies on that rank's NUMA node.
  auto made = describe(proposal.block);
  good = good && made->map(file_, leads()) == Status::ok;
  if (!good) log_failure_once(LogLevel::debug, "a shared-memory segment could not be made");
  SLIMPI_TRY(words_.agree(&good));
  if (!good) return Status::ok;
  // Only now, when every rank has reserved its part.
  made->touch();
  SLIMPI_TRY(try_peers(*made));
  made->device_path = std::make_unique<DevicePath>(intra_);
  *segment = std::move(made);
  return Status::ok;
}

}  // namespace

// Repeats until the ranks of every node have a segment, or have tried everything.
Status open_segment(comm::Exchange& exchange, const comm::NodeLayout& layout, Intra intra,
                    Statistics& statistics, std::unique_ptr<NodeSegment>* segment) {
  Opening opening(exchange, layout, intra, statistics);
  std::unique_ptr<NodeSegment> found;
  bool ready = false;
  for (std::size_t number = 0; number < std::size(kBlocks) && !ready; ++number) {
    // A node that has its segment only takes part in the agreement, which is over the communicator.
    if (found == nullptr) SLIMPI_TRY(opening.attempt(&found));
    ready = found != nullptr;
    SLIMPI_TRY(exchange.all_true(&ready));
  }
  if (!ready) return Status::ok;
  SLIMPI_TRY(exchange.all_true(&found->peers_readable));
  *segment = std::move(found);
  return Status::ok;
}

}  // namespace slimpi::intra
