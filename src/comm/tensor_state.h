// SPDX-License-Identifier: BSD-3-Clause
// Tensor state: data that slimpi keeps from call to call for one tensor of the program, such as the
// residual (what compression lost in earlier calls), the last low-rank factor, or copies (replicas)
// of the models of peers.
//
// The program identifies a tensor by a name (slimpi_describe_next) or by the index of its sum
// modulo SLIMPI_CALLS_PER_STEP, which counts every float sum that is not too small, even those that
// were left to MPI. Without either, slimpi assumes that a buffer at the same address is the same
// tensor. That may be wrong, because malloc reuses addresses, so algorithms do not trust their
// state: each of them bounds the error that the state of another tensor can cause in a sum
// (kernels/math/feedback.h, algorithm/powersgd.h, algorithm/residual_limit.h,
// algorithm/low_precision.cpp).
//
// A tensor that is summed by several functions, or with several counts or hierarchies, has one
// state for each combination, because the combination determines which elements a rank's arrays
// have.
//
// The arrays of a state are freed:
//  - with the communicator, and when options change (Communicator::start_anew)
//  - when the ranks found different states, or some rank lacked memory (call/sum_agreement.cpp)
//  - when the tensor comes with another algorithm or from another memory
//  - when the state is not finite; when the program drops or restores it; at the limits below
#pragma once
#include <compare>
#include <cstdint>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "comm/memory.h"
#include "observe/statistics.h"

namespace slimpi::algorithm {
struct Algorithm;
}  // namespace slimpi::algorithm

namespace slimpi::comm {

// Identifies a state on a communicator.
struct TensorKey {
  // `others` is for a rank that receives no part of the sum, and so has no buffer address. Its key
  // has the number of the other ranks' state instead.
  enum class By : std::uint8_t { address, index, name, others };
  By by = By::address;
  std::uint64_t number = 0;  // the address, the index, or TensorState::number of the other ranks
  std::string name = {};
  std::uint64_t count = 0;      // number of elements
  std::uint64_t placement = 0;  // digest of which elements each rank's arrays have; equal on all

  static TensorKey of_address(const void* address, std::uint64_t count) {
    return {By::address, reinterpret_cast<std::uintptr_t>(address), {}, count};
  }
  static TensorKey of_index(std::uint64_t index, std::uint64_t count) {
    return {By::index, index, {}, count};
  }
  static TensorKey of_name(std::string name, std::uint64_t count) {
    return {By::name, 0, std::move(name), count};
  }

  auto operator<=>(const TensorKey&) const = default;
};

// Names one array of a tensor state.
struct StateArray {
  enum What {
    residual,        // error feedback: what compression lost of this rank's messages
    low_rank_error,  // error feedback of a low-rank algorithm: what it lost of the vector
    factor,          // the last Q of a low-rank algorithm
    own_replica,     // low_precision_decentralized: of this worker's model
    replica_of,      // low_precision_decentralized: of a peer's model
  };
  What what;
  int member = 0;  // of the inter-node group; replica_of only

  auto operator<=>(const StateArray&) const = default;
};

// A state of a named tensor, as a program keeps it in a checkpoint.
struct SavedState {
  const algorithm::Algorithm* algorithm = nullptr;
  std::uint64_t count = 0, placement = 0, calls = 0;
  bool uninitialized = true;
  std::map<StateArray, std::vector<float>> arrays;
};

class TensorStates;

class TensorState {
 public:
  TensorState(TensorStates& owner, const TensorKey& key) : key(key), owner_(owner) {}

  // Returns whether a name or an index identifies the tensor, so that the state cannot belong to
  // another tensor.
  bool named() const { return key.by == TensorKey::By::index || key.by == TensorKey::By::name; }

  const TensorKey key;
  std::uint64_t number = 0;   // if ranks differ in it, they drop the state
  std::uint64_t calls = 0;    // calls of this tensor so far, even those left exact by SLIMPI_START
  bool uninitialized = true;  // no call has used the arrays yet
  int nonfinite = 0;  // set by an algorithm whose state became non-finite: all ranks drop it

  // Floats at the location that open() was given.
  struct Array {
    Memory memory;
    std::uint64_t elements = 0;
  };
  // Sets *array to `elements` floats at `location`. An array that is new or was resized has zeros,
  // or values from a checkpoint. If `elements` is 0, *array is null, but the state still counts as
  // having the array, because all ranks must free the arrays of the same states at the limit below.
  Status open(const StateArray& which, std::uint64_t elements, const device::Location& location,
              device::Stream* stream, Statistics& statistics, float** array);
  void close(const StateArray& which);
  bool holds_arrays() const { return !arrays_.empty(); }

  // Makes `algorithm` the owner of the arrays, for buffers at `location`, and frees arrays that
  // belong to another algorithm or are at another location.
  void claim(const algorithm::Algorithm* algorithm, const device::Location& location);

  // Frees the arrays and resets the count of calls. Key and number stay.
  void drop();

  // Returns a digest of the state's history: the calls, whether the arrays were used, and a
  // restored factor. A sum may use the arrays only if all ranks have the same digest.
  std::uint64_t history() const { return (2 * calls + (uninitialized ? 1 : 0)) ^ restored_factor_; }

  const algorithm::Algorithm* algorithm() const { return algorithm_; }
  const std::map<StateArray, Array>& arrays() const { return arrays_; }
  // Returns the arrays of a checkpoint that open() has not copied yet.
  const std::map<StateArray, std::vector<float>>& restored() const { return restored_; }

 private:
  friend class TensorStates;

  void clear();
  void restore(SavedState saved);
  SavedState save();
  Status copy_restored(const StateArray& which, std::uint64_t elements,
                       const device::Location& location, device::Stream* stream, Array& entry);

  TensorStates& owner_;
  const algorithm::Algorithm* algorithm_ = nullptr;
  std::optional<device::Location> location_;  // of the arrays; empty: not claimed yet
  std::map<StateArray, Array> arrays_;
  // Arrays of a checkpoint: restored_ has those that open() has not copied yet, copied_ those that
  // it has, which a device may read until the next call.
  std::map<StateArray, std::vector<float>> restored_, copied_;
  bool unused_ = false;  // restored, and no sum of slimpi has used it yet
  // A digest of the restored factor. The next call compares the digests of all ranks, because a
  // factor is useless unless all ranks have the same one. 0 after this comparison.
  std::uint64_t restored_factor_ = 0;
  bool evicted_ = false;  // the arrays were freed to limit memory
};

// The states that TensorStates::restore() was given and that no sum has taken yet, by name.
// Persistent sums, which the helper thread may run, share them with their communicator.
struct RestoredStates {
  std::mutex mutex;
  std::map<std::string, std::vector<SavedState>> by_name;
};

class TensorStates {
 public:
  // How many states may have arrays at first; beyond that the arrays of the oldest states are
  // freed. The limit doubles when the program uses one of those states again, so only a program
  // that never uses a buffer twice stays at it.
  static constexpr std::size_t kFirstLimit = 32;
  // The most states that are kept, with or without arrays.
  static constexpr std::size_t kMost = 4096;

  TensorStates() : restored_(std::make_shared<RestoredStates>()) {}
  // Makes the states of a persistent sum, which takes restored states from those of its
  // communicator.
  explicit TensorStates(std::shared_ptr<RestoredStates> restored)
      : restored_(std::move(restored)) {}
  TensorStates(const TensorStates&) = delete;
  TensorStates& operator=(const TensorStates&) = delete;
  ~TensorStates() { drop_all(); }

  // Counts a float sum of the program that is not too small, when the sum begins.
  void count_call() { ++calls_; }
  // Returns how many sums were counted.
  std::uint64_t calls() const { return calls_; }

  // Which states use() has dropped, on all ranks.
  enum class Lost {
    nothing,
    indices,  // an index came with another count, so SLIMPI_CALLS_PER_STEP is not the number of
              // sums of a step: the states of all indices are forgotten
    saved,    // all states that restore() was given for the name have other elements
  };
  // Returns the state with this key, which is made at its first use. All ranks call this once for
  // each call that needs a state, in the same order.
  TensorState& use(const TensorKey& key, Lost* lost);

  // Returns the number that the state with this key has, or would get, on this rank.
  std::uint64_t number_of(const TensorKey& key) const;
  // Returns the number that the next new state of an address would get on this rank.
  std::uint64_t next_number() const { return next_number_; }

  // Drops the arrays of `state`. Called by every rank for its own state, after the ranks found that
  // their states differ. The state gets `number`, the largest next_number() of all ranks; a named
  // state keeps its number.
  void realign(TensorState& state, std::uint64_t number);

  void drop_all();

  // Returns the states under a name.
  std::vector<const TensorState*> find_named(const std::string& name) const;
  // Calls act() with each state that restore() was given for a name and that no sum has taken.
  template <typename Act>
  void for_restored(const std::string& name, const Act& act) const {
    const std::lock_guard lock(restored_->mutex);
    const auto found = restored_->by_name.find(name);
    if (found == restored_->by_name.end()) return;
    for (const SavedState& saved : found->second) act(saved);
  }
  // Replaces the states of this name. The next sum of the name uses the saved state whose elements
  // match its own. All ranks must call this between the same two sums; otherwise they all drop the
  // state at the next sum of the name.
  void restore(const std::string& name, std::vector<SavedState> saved);
  // Called when all ranks leave a sum to MPI after use(). If the sum took a restored state, undoes
  // that, so that the next sum of the name can take it, and `state` is gone.
  void give_back(TensorState& state);
  // Called when slimpi makes the sum.
  void keep(TensorState& state) { state.unused_ = false; }

  const std::shared_ptr<RestoredStates>& restored() const { return restored_; }

  std::size_t size() const { return states_.size(); }
  std::size_t limit() const { return limit_; }
  std::size_t holding() const { return holding_; }  // states with arrays

 private:
  friend class TensorState;
  using States = std::list<TensorState>;  // in the order of their last use

  States::iterator look_up(const TensorKey& key);
  States::iterator make(const TensorKey& key, Lost* lost);
  void take_restored(TensorState& state, Lost* lost);
  void erase(States::iterator state);
  void make_room();
  void forget();
  void forget_indices();

  States states_;
  std::map<TensorKey, States::iterator> by_key_;
  std::map<std::uint64_t, std::uint64_t> index_counts_;      // the number of elements of each index
  const std::shared_ptr<RestoredStates> restored_;
  std::size_t holding_ = 0;  // states with arrays
  std::uint64_t calls_ = 0, next_number_ = 0;
  std::size_t limit_ = kFirstLimit;
};

}  // namespace slimpi::comm
