// SPDX-License-Identifier: BSD-3-Clause
// State that belongs to one of the program's buffers and outlives a call: the residual, the last
// low-rank factor, replicas of peers. A state is identified by the element count and the order in
// which addresses were first used, or by the index of the call modulo SLIMPI_CALLS_PER_STEP. That
// index counts every float sum that is not too small, also those that were left to MPI.
#pragma once
#include <compare>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <utility>

#include "base/statistics.h"
#include "comm/memory.h"

namespace slimpi::algorithm {
struct Algorithm;
}  // namespace slimpi::algorithm

namespace slimpi::comm {

// Which of a state's arrays.
struct StateArray {
  enum What {
    residual,        // of error feedback: what this rank's encoded messages lost
    low_rank_error,  // of error feedback with a low-rank algorithm: of the whole vector
    factor,          // the last Q of a low-rank algorithm
    own_replica,     // low_precision_decentralized: of this worker's model
    replica_of,      // the same of a peer's
  };
  What what;
  int member = 0;  // of the inter-node group; replica_of only

  auto operator<=>(const StateArray&) const = default;
};

struct TensorState {
  std::uint64_t number = 0;   // the same on all ranks, or the state is dropped
  std::uint64_t calls = 0;    // of this buffer so far, including those that SLIMPI_START left exact
  std::uint64_t count = 0;    // elements
  bool by_order = false;      // identified by the index of the call, not by an address
  bool uninitialized = true;  // no call has used the arrays yet
  int nonfinite = 0;  // set by an algorithm whose state became non-finite: all ranks drop it
  const algorithm::Algorithm* algorithm = nullptr;  // owner of the arrays
  std::optional<device::Location> location;         // of the arrays; empty: not claimed yet

  // Floats, mostly in the same kind of memory as the buffer; zero when made.
  struct Array {
    Memory memory;
    std::uint64_t elements = 0;
  };
  std::map<StateArray, Array> arrays;

  std::uint64_t used = 0;  // value of lookups_ at the last use
  bool evicted = false;    // its arrays were freed to limit memory
};

class TensorStates {
 public:
  // How many states may have arrays at first. When a program uses a state again whose arrays were
  // freed, the limit is doubled. So only a program that never uses a buffer again stays at the
  // limit.
  static constexpr std::size_t kFirstLimit = 32;
  // The most states that are kept, with or without arrays.
  static constexpr std::size_t kMost = 4096;

  ~TensorStates() { drop_all(); }

  // To be called when a float sum of the program begins.
  void count_call() { ++calls_; }

  // The state of the sum that began last; made at first use. To be called once for each call that
  // needs a state.
  TensorState& find(const void* address, std::uint64_t count, std::uint64_t calls_per_step);

  // Makes `algorithm` the owner of the state, for buffers at `location`; other arrays are freed.
  static void claim(TensorState& state, const algorithm::Algorithm* algorithm,
                    const device::Location& location);

  // The number that the next new state of this count would get on this rank.
  std::uint64_t next_number(std::uint64_t count) const {
    const auto found = next_.find(count);
    return found == next_.end() ? 0 : found->second;
  }

  // For when the ranks found different states: every rank drops its own, and all continue with
  // `number`, the largest of their next numbers. States identified by the index of the call keep
  // their number.
  void realign(TensorState& state, std::uint64_t number);

  // Frees a state's arrays and resets its count of calls.
  static void drop(TensorState& state);
  void drop_all();

  std::size_t size() const { return states_.size(); }
  std::size_t limit() const { return limit_; }
  std::size_t holding() const;  // states with arrays

 private:
  using Key = std::pair<std::uint64_t, const void*>;  // count and address, or index and null

  void make_room();
  void forget();
  std::map<Key, std::unique_ptr<TensorState>>::iterator oldest(bool with_arrays);

  std::map<Key, std::unique_ptr<TensorState>> states_;
  std::map<std::uint64_t, std::uint64_t> next_;  // number of the next new state, by count
  std::uint64_t calls_ = 0, lookups_ = 0;
  std::size_t limit_ = kFirstLimit;
};

// The array `which` of a state: `elements` floats at `location`, zero if it is new or its size
// changed. Null if `elements` is 0. The report counts it as state. A rank without elements makes
// the array, too: which states lose their arrays depends on which have some, on all ranks alike.
Status state_array(TensorState& state, const StateArray& which, std::uint64_t elements,
                   const device::Location& location, device::Stream* stream, Statistics& statistics,
                   float** array);

}  // namespace slimpi::comm
