// SPDX-License-Identifier: BSD-3-Clause
// State that belongs to one of the program's buffers and outlives a call: what compression lost,
// the last low-rank factor, replicas of peers. A slot is named by the element count and the order
// of first use of the buffer's address, or by the call's index modulo SLIMPI_CALLS_PER_STEP.
#pragma once
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "algorithm/memory.h"
#include "base/statistics.h"

namespace slimpi::algorithm {

struct Slot {
  std::uint64_t number = 0;  // alike on all ranks, or the state is dropped
  std::uint64_t calls = 0;   // of this buffer so far
  std::uint64_t count = 0;   // elements

  // Named arrays of floats in the buffer's own memory, zero when made.
  struct Array {
    Memory memory;
    std::uint64_t elements = 0;
  };
  std::map<std::string, Array> arrays;
};

class Slots {
 public:
  ~Slots() { drop_all(); }

  // The slot of a call; made at first use. `index` counts the communicator's float sums.
  Slot& find(const void* address, std::uint64_t count, std::uint64_t index,
             std::uint64_t calls_per_step);

  // Forgets a slot's arrays and its count of calls.
  static void drop(Slot& slot);
  void drop_all();

 private:
  std::map<std::pair<std::uint64_t, const void*>, std::unique_ptr<Slot>> by_address_;
  std::map<std::uint64_t, std::unique_ptr<Slot>> by_index_;
  std::map<std::uint64_t, std::uint64_t> used_;  // addresses seen, by count
};

// The array called `name` of a slot: `elements` floats near `like`, zeros when it is new or its
// size changed; *fresh tells. Counted as state in the report.
Status slot_array(Slot& slot, const std::string& name, std::uint64_t elements,
                  const device::Device& device, const void* like, device::Stream* stream,
                  Statistics& statistics, float** array, bool* fresh = nullptr);

}  // namespace slimpi::algorithm
