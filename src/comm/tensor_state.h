// SPDX-License-Identifier: BSD-3-Clause
// State that belongs to one of the program's buffers and outlives a call: what compression lost,
// the last low-rank factor, replicas of peers. A slot is named by the element count and the order
// of first use of the buffer's address, or by the call's index modulo SLIMPI_CALLS_PER_STEP, for
// which every float sum counts that is not too small, whoever answers it.
#pragma once
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "base/statistics.h"
#include "comm/memory.h"

namespace slimpi::algorithm {
struct Algorithm;
}  // namespace slimpi::algorithm

namespace slimpi::comm {

struct TensorState {
  std::uint64_t number = 0;   // alike on all ranks, or the state is dropped
  std::uint64_t calls = 0;    // of this buffer so far, those that SLIMPI_START left exact included
  std::uint64_t count = 0;    // elements
  bool by_order = false;      // named by the order of calls, not by an address
  bool uninitialized = true;  // no call has used the arrays yet
  int nonfinite = 0;          // set by an algorithm whose state became infinite: the ranks drop it
  const algorithm::Algorithm* algorithm = nullptr;  // that the arrays belong to
  const device::Device* device = nullptr;           // that the arrays lie on

  // Named arrays of floats in the buffer's own memory, zero when made.
  struct Array {
    Memory memory;
    std::uint64_t elements = 0;
  };
  std::map<std::string, Array> arrays;

  std::uint64_t used = 0;  // when last, in look-ups of the communicator
  bool evicted = false;    // its arrays went to make room
};

class TensorStates {
 public:
  // How many slots may hold arrays at first; a program that comes back to one that had to give its
  // arrays up doubles the number, so that only a program that never comes back is held to it.
  static constexpr std::size_t kFirstLimit = 32;
  // Slots that are remembered at all.
  static constexpr std::size_t kMost = 4096;

  ~TensorStates() { drop_all(); }

  // A float sum of the program begins.
  void count_call() { ++calls_; }

  // The slot of the sum that began last; made at first use. One look-up per call that needs a slot.
  TensorState& find(const void* address, std::uint64_t count, std::uint64_t calls_per_step);

  // Its arrays must be of this algorithm and lie on this device; others are forgotten.
  static void claim(TensorState& slot, const algorithm::Algorithm* algorithm,
                    const device::Device& device);

  // The number that the next new slot of this count would get here.
  std::uint64_t next_number(std::uint64_t count) { return next_[count]; }

  // The ranks found different slots: all drop theirs and go on with one number, the largest of
  // their next numbers. Slots named by the order of calls keep theirs.
  void realign(TensorState& slot, std::uint64_t number);

  // Forgets a slot's arrays and its count of calls.
  static void drop(TensorState& slot);
  void drop_all();

  std::size_t size() const { return states_.size(); }
  std::size_t limit() const { return limit_; }
  std::size_t holding() const;  // slots with arrays

 private:
  using Key = std::pair<std::uint64_t, const void*>;  // count and address, or index and null

  void make_room();
  void forget();
  std::map<Key, std::unique_ptr<TensorState>>::iterator oldest(bool with_arrays);

  std::map<Key, std::unique_ptr<TensorState>> states_;
  std::map<std::uint64_t, std::uint64_t> next_;  // number of the next new slot, by count
  std::uint64_t calls_ = 0, lookups_ = 0;
  std::size_t limit_ = kFirstLimit;
};

// The array called `name` of a slot: `elements` floats near `like`, zeros when it is new or its
// size changed. Null for no elements. Counted as state in the report.
Status state_array(TensorState& slot, const std::string& name, std::uint64_t elements,
                   const device::Device& device, const void* like, device::Stream* stream,
                   Statistics& statistics, float** array, bool* uninitialized = nullptr);

}  // namespace slimpi::comm
