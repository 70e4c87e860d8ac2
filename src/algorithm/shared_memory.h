// SPDX-License-Identifier: BSD-3-Clause
// Memory that the ranks of one node share: a box of each rank that all of them can read, and a way
// to wait for each other that costs a store and a few loads.
#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "algorithm/distance.h"
#include "algorithm/exchange.h"

namespace slimpi::algorithm {

class SharedMemory {
 public:
  explicit SharedMemory(const mpi::Api& api) : api_(api) {}
  ~SharedMemory();
  SharedMemory(const SharedMemory&) = delete;
  SharedMemory& operator=(const SharedMemory&) = delete;

  // Gives every rank of this rank's node a box of `bytes`. Collective over the communicator; *ready
  // is alike on all its ranks, and false where the neighbours of some node can not share memory.
  // The pages are there when it returns, each near the rank whose box it is.
  Status open(Exchange& exchange, const Layout& layout, std::size_t bytes, bool* ready);

  // The box of local rank `local`, aligned to 64 bytes.
  std::byte* box(int local) const { return boxes_[std::size_t(local)]; }

  // Returns when every neighbour has called it as often as this rank has. What a rank wrote before
  // is seen by the others after. MPI makes progress meanwhile, since a neighbour may wait for a
  // message. Fails when a rank says that it failed. `bytes`: of a rank's box that were written
  // since the last meeting, at most; alike on all neighbours.
  Status meet(Exchange& exchange, std::uint64_t bytes = 0);

  // Some neighbour shares no cache with this rank: what is written into boxes comes to it faster
  // through memory. Of this rank, now.
  bool far() const { return distance_->far(); }

  // What a rank publishes, at most once between two meetings, before the first of them: a word of
  // the fields of published.h. After it, the words of all ranks of the node, joined by "and" and by
  // "or".
  struct Said {
    std::uint64_t all, any;
    bool alike(std::uint64_t field) const { return ((all ^ any) & field) == 0; }
  };
  void say(std::uint64_t word);
  Said said() const;

  // A note of each rank, read by the others after a meeting.
  static constexpr std::size_t kNoteBytes = 384;
  std::byte* note(int local) const { return marks(local) + Distance::kMarkBytes; }

  // Blocks that passed through the boxes so far: the next one's place among them follows from it,
  // so that a slow reader of the last pass is not written over by the next.
  std::uint64_t blocks = 0;

  // After MPI_Finalize began, nothing may be freed there any more.
  void abandon() { window_ = MPI_WIN_NULL; }

 private:
  // In front of a box, from its end: a cache line with the count of meetings and the words, so that
  // who waits for the count gets the words with it; the note; the marks of Distance.
  static constexpr std::size_t kFront = Distance::kMarkBytes + kNoteBytes + 64;
  std::uint64_t& word(int local, std::uint64_t number) const;
  std::byte* marks(int local) const { return boxes_[std::size_t(local)] - kFront; }

  std::uint64_t sayings_ = 0;
  const mpi::Api& api_;
  MPI_Win window_ = MPI_WIN_NULL;
  std::vector<std::byte*> boxes_;
  int me_ = 0;
  std::uint64_t meetings_ = 0;
  std::optional<Distance> distance_;  // once it is open
};

}  // namespace slimpi::algorithm
