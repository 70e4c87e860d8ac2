// SPDX-License-Identifier: BSD-3-Clause
#include "comm/tensor_state.h"

#include <algorithm>
#include <set>

#include "base/log.h"

namespace slimpi::comm {

TensorState& TensorStates::find(const void* address, std::uint64_t count,
                                std::uint64_t calls_per_step) {
  const bool by_index = calls_per_step != 0;
  // count_call() has counted the sum already.
  const std::uint64_t index = by_index ? (calls_ - 1) % calls_per_step : 0;
  const Key key = by_index ? Key{index, nullptr} : Key{count, address};
  ++lookups_;
  auto found = states_.find(key);
  if (found == states_.end()) {
    make_room();
    forget();
    found = states_.emplace(key, std::make_unique<TensorState>()).first;
    // The ranks make the same calls in the same order, so they give the same numbers. Where a
    // program frees and allocates differently on one rank they do not, and the call's agreement
    // leads to realign().
    found->second->number = by_index ? index : next_[count]++;
    found->second->count = count;
    found->second->by_order = by_index;
  } else if (found->second->evicted) {
    limit_ = std::min(2 * limit_, kMost);
    make_room();
  }
  TensorState& state = *found->second;
  // An index identifies a tensor only as long as its count stays.
  if (state.count != count) drop(state);  // this index is now another tensor's
  state.count = count;
  state.used = lookups_;
  state.evicted = false;
  return state;
}

std::size_t TensorStates::holding() const {
  return std::size_t(std::count_if(states_.begin(), states_.end(), [](const auto& entry) {
    return !entry.second->arrays.empty();
  }));
}

std::map<TensorStates::Key, std::unique_ptr<TensorState>>::iterator TensorStates::oldest(
    bool with_arrays) {
  auto found = states_.end();
  for (auto entry = states_.begin(); entry != states_.end(); ++entry)
    if ((!with_arrays || !entry->second->arrays.empty()) &&
        (found == states_.end() || entry->second->used < found->second->used))
      found = entry;
  return found;
}

// A program that sums a new buffer at every call would fill memory with state that is never used
// again. At first it looks the same as a program that goes through its buffers for the first time.
// So the oldest states lose their arrays, and the limit is doubled when one of those is used again.
void TensorStates::make_room() {
  for (std::size_t held = holding(); held >= limit_; --held) {
    TensorState& state = *oldest(true)->second;
    drop(state);
    state.evicted = true;
  }
}

void TensorStates::forget() {
  // Numbers of counts that no state has may begin anew; all ranks keep the same states.
  if (next_.size() >= 2 * kMost) {
    std::set<std::uint64_t> counts;
    for (const auto& [key, state] : states_) counts.insert(state->count);
    std::erase_if(next_, [&](const auto& entry) { return !counts.contains(entry.first); });
  }
  if (states_.size() < kMost) return;
  states_.erase(oldest(false));
  log_once(LogLevel::warn,
           "state is kept for the last " + std::to_string(kMost) +
               " buffers of a communicator, and the program sums more; SLIMPI_CALLS_PER_STEP names "
               "buffers by the order of calls");
}

void TensorStates::claim(TensorState& state, const algorithm::Algorithm* algorithm,
                         const device::Location& location) {
  // The arrays lie where this call's kernels may not reach them.
  if (state.location && *state.location != location) drop(state);
  if (state.algorithm != algorithm) {
    // Residuals and factors of one algorithm mean nothing to another.
    state.arrays.clear();
    state.uninitialized = true;
  }
  state.algorithm = algorithm;
  state.location = location;
}

void TensorStates::realign(TensorState& state, std::uint64_t number) {
  drop(state);
  if (state.by_order) return;
  state.number = number;
  next_[state.count] = number + 1;
}

// Keeps the number, the count and the owner: what identifies a state does not depend on its arrays.
void TensorStates::drop(TensorState& state) {
  state.arrays.clear();
  state.calls = 0;
  state.uninitialized = true;
  state.nonfinite = 0;
}

// calls_ goes on: all ranks count the same calls, and the index of a call comes from it.
void TensorStates::drop_all() {
  states_.clear();
  next_.clear();
}

Status state_array(TensorState& state, const StateArray& which, std::uint64_t elements,
                   const device::Location& location, device::Stream* stream, Statistics& statistics,
                   float** array) {
  TensorState::Array& entry = state.arrays[which];
  if (entry.elements != elements) {
    // First: there may be no memory for both. `elements` stays 0 until the new memory is there, so
    // that a call after a failure tries again.
    entry.memory.release();
    entry.elements = 0;
    if (elements != 0) {
      SLIMPI_TRY(entry.memory.reserve(location, device::Place::device, elements * sizeof(float),
                                      statistics, Held::state));
      // Queued on the stream of the call, as are the kernels that read the array.
      location.device->kernels()->fill(reinterpret_cast<float*>(entry.memory.data()), 0.0f,
                                       elements, stream);
    }
    entry.elements = elements;
  }
  *array = reinterpret_cast<float*>(entry.memory.data());
  return Status::ok;
}

}  // namespace slimpi::comm
