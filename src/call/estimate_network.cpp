// SPDX-License-Identifier: BSD-3-Clause
// SLIMPI_ESTIMATE: latency and bandwidth between two nodes, for the cost model. Some milliseconds
// on a fast network, and less than a second at 100 Mbit/s.
#include <algorithm>
#include <array>
#include <bit>
#include <chrono>
#include <new>
#include <optional>
#include <vector>

#include "call/estimate.h"

namespace slimpi::call {

namespace {

struct Asked : comm::Attachment {
  bool done = false;
};

constexpr int kTag = 90;  // no tag of comm::Tag; nothing else is on its way during the measurement

// Messages between this rank and one other.
class Pair {
 public:
  Pair(const mpi::Api& api, mpi::Comm comm, int peer)
      : api_(api), comm_(comm), peer_(peer), out_(kPieces * kPiece), in_(kPieces * kPiece) {}

  // Seconds for a message in one direction: of several rounds the one that was disturbed least.
  double latency() {
    constexpr int kRounds = 8, kTimes = 10;
    double least = 1;
    for (int round = 0; round < kRounds; ++round) {
      const auto begin = Clock::now();
      for (int i = 0; i < kTimes; ++i) swap_words();
      least = std::min(least, since(begin) / kTimes);
    }
    return least;
  }

  // Seconds per byte, with traffic in both directions. Both ranks go by the longer of their first
  // times, so that they stream equally often.
  double per_byte() {
    double least = longer(stream());
    if (least * double(out_.size()) > 0.05) return least;
    for (int i = 0; i < 7; ++i) least = std::min(least, stream());
    return least;
  }

  bool works() const { return works_; }

 private:
  using Clock = std::chrono::steady_clock;
  static constexpr std::size_t kPieces = 32, kPiece = 64 << 10;

  static double since(Clock::time_point begin) {
    return std::chrono::duration<double>(Clock::now() - begin).count();
  }

  void start(const char* out, char* in, std::size_t bytes, mpi::Request* requests) {
    works_ = works_ &&
             api_.Irecv(in, int(bytes), mpi::abi.type_char, peer_, kTag, comm_, requests) ==
                 mpi::kSuccess &&
             api_.Isend(out, int(bytes), mpi::abi.type_char, peer_, kTag, comm_, requests + 1) ==
                 mpi::kSuccess;
  }

  void finish(mpi::Request* requests, std::size_t count) {
    for (std::size_t i = 0; i < count; ++i)
      works_ = works_ && api_.Wait(&requests[i], mpi::abi.status_ignore) == mpi::kSuccess;
  }

  void swap_words() { swap(out_.data(), in_.data(), 1); }

  void swap(const char* out, char* in, std::size_t bytes) {
    mpi::Request requests[2] = {mpi::abi.request_null, mpi::abi.request_null};
    start(out, in, bytes, requests);
    finish(requests, 2);
  }

  double longer(double seconds) {
    double peers = 0;
    swap(reinterpret_cast<const char*>(&seconds), reinterpret_cast<char*>(&peers), sizeof peers);
    return std::max(seconds, peers);
  }

  double stream() {
    std::array<mpi::Request, 2 * kPieces> requests;
    requests.fill(mpi::abi.request_null);
    const auto begin = Clock::now();
    for (std::size_t i = 0; i < kPieces; ++i)
      start(&out_[i * kPiece], &in_[i * kPiece], kPiece, &requests[2 * i]);
    finish(requests.data(), requests.size());
    return since(begin) / double(out_.size());
  }

  const mpi::Api& api_;
  const mpi::Comm comm_;
  const int peer_;
  std::vector<char> out_, in_;
  bool works_ = true;
};

// The first rank of another node than that of rank 0.
int partner_of(const comm::NodeLayout& layout) {
  return layout.ranks_of.at(1).front();
}

}  // namespace

// Rank 0 and its partner measure; the others wait in the reduction, so that their next call does
// not begin before. Positive doubles are ordered like their bits. `world_size`: the largest
// communicator that this rank knows, which with sessions is not the same on all ranks.
Status CallEstimate::measure_network(comm::Communicator& communicator, int world_size) {
  Asked& asked = communicator.attachment<Asked>();
  if (asked.done) return Status::ok;
  asked.done = true;
  const int rank = communicator.rank(), partner = partner_of(communicator.layout());
  std::optional<Pair> pair;
  // It is known already, or a rank has no memory for it, or knows a larger communicator.
  std::uint64_t skip = communicator.size() != world_size ? 1 : 0;
  try {
    if (skip == 0 && (rank == 0 || rank == partner))
      pair.emplace(api_, communicator.exchange().comm(), rank == 0 ? partner : 0);
    const std::lock_guard lock(mutex_);
    if (measured_) skip = 1;
  } catch (const std::bad_alloc&) {
    skip = 1;
  }
  SLIMPI_TRY(communicator.exchange().all_max({&skip, 1}));
  if (skip != 0) return Status::ok;
  std::uint64_t words[] = {0, 0, 0};  // the two times, and whether MPI failed in the pair
  if (pair) {
    words[0] = std::bit_cast<std::uint64_t>(pair->latency());
    words[1] = std::bit_cast<std::uint64_t>(pair->per_byte());
    words[2] = pair->works() ? 0 : 1;
  }
  SLIMPI_TRY(communicator.exchange().all_max(words));
  if (words[2] != 0) return fail(Status::mpi, "SLIMPI_ESTIMATE: the network cannot be measured");
  const std::lock_guard lock(mutex_);
  constants_.latency = std::bit_cast<double>(words[0]);
  constants_.link = constants_.exchange = constants_.measured_link =
      std::bit_cast<double>(words[1]);
  measured_ = true;
  return Status::ok;
}

}  // namespace slimpi::call
