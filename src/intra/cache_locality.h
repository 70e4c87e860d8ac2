// SPDX-License-Identifier: BSD-3-Clause
// How far a rank's node-local ranks are: whether all of them share a cache with it. The answer is
// measured, by how long it takes to read what a node-local rank has just written, and not asked of
// the system, since ranks that are not bound to cores move, and virtual machines move and do not
// know. It is this rank's own and may differ from its node-local ranks': nothing but speed depends
// on it.
#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

namespace slimpi::intra {

class CacheLocality {
 public:
  // For local rank `me` of `size`.
  CacheLocality(int size, int me);

  // Bytes in shared memory that each rank writes and others read.
  static constexpr std::size_t kProbeBytes = 4096;

  // To be asked at each barrier, by all ranks with the same `bytes` that passed through a message
  // buffer since the last. True: every rank writes its marks before they meet and reads a
  // node-local rank's behind it. So at first, until they have seen everybody twice, then whenever
  // that costs next to nothing.
  bool due(std::uint64_t bytes);
  void write_probe_lines(std::byte* mine) const;

  // The node-local rank whose marks are read next: another one for every rank.
  int target() const;
  // Reads them, and takes note of the time.
  void probe(const std::byte* probe_lines);
  void record(std::uint64_t nanoseconds);

  // Some node-local rank has been far the last two times; one time may be an interruption.
  bool cross_cache() const { return cross_cache_; }

 private:
  struct Peer {
    bool last = false, cross_cache = false;
  };
  std::vector<Peer> peers_;  // by how many local ranks they come after this one, less one
  int me_;
  std::size_t next_ = 0;
  std::uint64_t probes_ = 0, bytes_ = 0;  // bytes since the last look
  bool cross_cache_ = false;
};

}  // namespace slimpi::intra
