// SPDX-License-Identifier: BSD-3-Clause
// The first rank of each node leads it: it makes a file and gives it to the others. All ranks of
// the communicator take the same steps, and agree after each whether it went well everywhere. So no
// system call blocks, and a rank that fails keeps none waiting.
#include "intra/shared_memory.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <utility>

#include "base/hash.h"
#include "intra/nccl_group.h"
#include "observe/log.h"

namespace slimpi::intra {

namespace {

// Floats of a block that are tried: the fastest length first, then shorter ones.
constexpr std::uint64_t kBlocks[] = {NodeSegment::kBlock, 32 << 10, 8 << 10};

// So many ranks of a node ask for its file at once: the queue of a socket has room for them.
constexpr int kAtOnce = 64;

// What they show the leader.
constexpr std::uint64_t kToken = 0x736c696d7069;

// A number that no other process has. Without random numbers, which a sandbox may refuse, the time
// and the process tell it apart.
std::uint64_t random_number() {
  std::uint64_t number = 0;
  if (getentropy(&number, sizeof number) != 0)
    number = splitmix64(std::uint64_t(std::chrono::system_clock::now().time_since_epoch().count()),
                        getpid());
  return number;
}

// One attempt: maps the file of the node's leader on all its ranks. *good: on all ranks of the
// communicator. Every rank reserves the memory of its own region, so it lies on that rank's NUMA
// node. `largest`: ranks of a node.
Status map(comm::Exchange& exchange, const comm::NodeLayout& layout, int largest,
           NodeSegment& segment, bool* good) {
  const int local = segment.me();
  const bool leads = local == 0;
  SharedFile file;
  FileOffer offer;
  FileRequest request;
  *good = true;
  // Makes a step of this rank, unless one before has failed on some rank.
  const auto together = [&](const auto& step) {
    if (*good && !step()) {
      *good = false;
      log_failure_once(LogLevel::debug, "a shared-memory segment could not be made");
    }
    return exchange.all_true(good);
  };
  // A name for the node and the attempt, also of attempts of other threads at the same time: the
  // ranks agree on a random one of theirs.
  static std::atomic<std::uint64_t> attempts{0};
  std::uint64_t name = splitmix64(random_number(), attempts++) >> 1;  // see Exchange::all_max
  SLIMPI_TRY(exchange.all_max({&name, 1}));
  name = splitmix64(name, std::uint64_t(layout.node()));
  SLIMPI_TRY(together([&] {
    // The file has its length and no memory yet.
    return !leads || (file.create(segment.bytes()) == Status::ok && offer.open(name) == Status::ok);
  }));
  for (int first = 1; first < largest; first += kAtOnce) {
    const int end = std::min(first + kAtOnce, segment.ranks());
    SLIMPI_TRY(together(
        [&] { return local < first || local >= end || request.ask(name, kToken) == Status::ok; }));
    SLIMPI_TRY(together([&] {
      bool given = true;
      for (int other = first; leads && given && other < end; ++other)
        given = offer.give(file, kToken) == Status::ok;
      return given;
    }));
  }
  return together([&] {
    return (leads || request.take(&file) == Status::ok) && segment.map(file, leads) == Status::ok;
  });
}

}  // namespace

Status open_segment(comm::Exchange& exchange, const comm::NodeLayout& layout, Intra intra,
                    Statistics& statistics, std::unique_ptr<NodeSegment>* segment) {
  std::size_t largest = 0;  // ranks of a node
  for (const auto& ranks : layout.ranks_of) largest = std::max(largest, ranks.size());
  for (const std::uint64_t block : kBlocks) {
    // A block has some floats of every rank's shard; see piece_of().
    if (block < kLeastPiece * largest) break;
    auto made = std::make_unique<NodeSegment>(int(layout.node_ranks().size()), layout.local_rank(),
                                              block, statistics);
    bool good = false;
    SLIMPI_TRY(map(exchange, layout, int(largest), *made, &good));
    if (!good) continue;
    made->touch();  // only now, when every rank has reserved its part
    made->nccl = std::make_unique<NcclGroup>(intra);
    *segment = std::move(made);
    break;
  }
  return Status::ok;
}

}  // namespace slimpi::intra
