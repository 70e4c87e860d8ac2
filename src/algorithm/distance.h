// SPDX-License-Identifier: BSD-3-Clause
// How far a rank's neighbours are: whether all of them share a cache with it. The answer is
// measured, by how long it takes to read what a neighbour has just written, and not asked of the
// system, since ranks that are not bound to cores move, and virtual machines move and do not know.
// It is this rank's own and may differ from its neighbours': nothing but speed depends on it.
#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

namespace slimpi::algorithm {

class Distance {
 public:
  // For local rank `me` of `size`.
  Distance(int size, int me);

  // Bytes in shared memory that each rank writes and others read.
  static constexpr std::size_t kMarkBytes = 4096;

  // To be asked at each meeting, by all ranks with the same `bytes` that passed through a box since
  // the last. True: every rank writes its marks before they meet and reads a neighbour's behind it.
  // So at first, until they have seen everybody twice, then whenever that costs next to nothing.
  bool due(std::uint64_t bytes);
  void write_marks(std::byte* mine) const;

  // The neighbour whose marks are read next: another one for every rank.
  int target() const;
  // Reads them, and takes note of the time.
  void look(const std::byte* marks);
  void record(std::uint64_t nanoseconds);

  // Some neighbour has been far the last two times; one time may be an interruption.
  bool far() const { return far_; }

 private:
  struct Neighbour {
    bool last = false, far = false;
  };
  std::vector<Neighbour> neighbours_;  // by how many local ranks they come after this one, less one
  int me_;
  std::size_t next_ = 0;
  std::uint64_t looks_ = 0, bytes_ = 0;  // bytes since the last look
  bool far_ = false;
};

}  // namespace slimpi::algorithm
