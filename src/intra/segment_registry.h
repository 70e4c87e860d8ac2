// SPDX-License-Identifier: BSD-3-Clause
// The node segments that this process has mapped, shared by its communicators. Any thread may ask.
#pragma once
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "base/option_types.h"
#include "intra/node_segment.h"

namespace slimpi::intra {

class SegmentRegistry {
 public:
  // Of this process; never destroyed, as exit handlers may still free communicators.
  static SegmentRegistry& instance();

  // A number that no other process has, and none of a forked child; a random one without a meaning.
  std::uint64_t process();
  std::uint64_t random();

  // A segment of these processes in ascending order, for this value of SLIMPI_INTRA, with a channel
  // that is taken for the caller; null where there is none.
  std::shared_ptr<NodeSegment> find(const std::vector<std::uint64_t>& processes, Intra intra,
                                    int* channel);
  // The segment of this number, which another process named; null where this one has let go of it.
  std::shared_ptr<NodeSegment> find(std::uint64_t id);

  void add(std::shared_ptr<NodeSegment> segment, Intra intra);

  // Ends the caller's use, and the segment's if it was the last one.
  void release(std::shared_ptr<NodeSegment> segment);

  // Segments in use, or still waited for.
  std::size_t size();

 private:
  struct Entry {
    std::shared_ptr<NodeSegment> segment;
    Intra intra;
    int users;  // of this process
  };
  Entry* entry_of(std::uint64_t id);

  std::mutex mutex_;  // guards all below
  std::vector<Entry> entries_;
  std::vector<std::shared_ptr<NodeSegment>> leaving_;  // until the other processes are gone, too
  std::uint64_t process_ = 0;
  int pid_ = 0;
};

}  // namespace slimpi::intra
