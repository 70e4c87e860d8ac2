// SPDX-License-Identifier: BSD-3-Clause
// Whether all node-local ranks share a cache with this rank. This is measured: the time to read
// what a node-local rank has just written. The system is not asked, because ranks that are not
// bound to cores move, and a virtual machine does not know the real caches. The result belongs to
// this rank and may differ between ranks; only speed depends on it.
#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

namespace slimpi::intra {

class CacheLocality {
 public:
  // For local rank `me` of `size`.
  CacheLocality(int size, int me);

  // Bytes of shared memory that each rank writes and the others read.
  static constexpr std::size_t kProbeBytes = 4096;

  // Whether to probe at this barrier. Call it at every barrier, on all ranks with the same `bytes`:
  // those that passed through a message buffer since the last barrier. True: every rank writes its
  // probe lines before the barrier, and reads those of a node-local rank after it. It is true until
  // every node-local rank was probed twice, and later only as often as costs next to nothing.
  bool due(std::uint64_t bytes);
  void write_probe_lines(std::byte* mine) const;

  // The node-local rank to probe next; a different one for every rank.
  int target() const;
  // Reads that rank's probe lines and records the time.
  void probe(const std::byte* probe_lines);
  void record(std::uint64_t nanoseconds);

  // Some node-local rank shares no cache with this one, by the last two probes of it. One slow
  // probe alone may be an interruption.
  bool cross_cache() const { return cross_cache_; }

 private:
  struct Peer {
    bool last = false, cross_cache = false;
  };
  std::vector<Peer> peers_;  // index: distance in local ranks after this one, minus 1
  int me_;
  std::size_t next_ = 0;
  std::uint64_t probes_ = 0, bytes_ = 0;  // bytes since the last probe
  bool cross_cache_ = false;
};

}  // namespace slimpi::intra
