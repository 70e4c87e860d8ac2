// SPDX-License-Identifier: BSD-3-Clause
// The node segments that this process has mapped, shared by its communicators. Any thread may call
// it.
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
  // The registry of this process. Never destroyed, because exit handlers may still free
  // communicators.
  static SegmentRegistry& instance();

  // process(): a number that no other process has; a forked child gets another one. random(): a
  // random number without a meaning.
  std::uint64_t process();
  std::uint64_t random();

  // A segment of these processes in ascending order, opened with this value of SLIMPI_INTRA; null
  // where there is none. A channel on it is taken for the caller, who becomes one of its users.
  std::shared_ptr<NodeSegment> find(const std::vector<std::uint64_t>& processes, Intra intra,
                                    int* channel);
  // The segment with this id, which another process sent; null where this process has released it.
  // The caller becomes one of its users.
  std::shared_ptr<NodeSegment> find(std::uint64_t id);

  void add(std::shared_ptr<NodeSegment> segment, Intra intra);

  // Ends the caller's use. The last user of this process leaves the segment.
  void release(std::shared_ptr<NodeSegment> segment);

  // Segments in use, and those that are kept until the other processes have left.
  std::size_t size();

 private:
  struct Entry {
    std::shared_ptr<NodeSegment> segment;
    Intra intra;
    int users;  // communicators of this process
  };
  Entry* entry_of(std::uint64_t id);

  std::mutex mutex_;  // guards all below
  std::vector<Entry> entries_;
  std::vector<std::shared_ptr<NodeSegment>>
      leaving_;  // kept until the other processes have left, too
  std::uint64_t process_ = 0;
  int pid_ = 0;
};

}  // namespace slimpi::intra
