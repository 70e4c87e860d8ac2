// SPDX-License-Identifier: BSD-3-Clause
#include "comm/tensor_state.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "base/hash.h"
#include "observe/log.h"

namespace slimpi::comm {

TensorStates::States::iterator TensorStates::look_up(const TensorKey& key) {
  if (key.by != TensorKey::By::others) {
    const auto known = by_key_.find(key);
    return known == by_key_.end() ? states_.end() : known->second;
  }
  // by_key_ may have an old number, because realign() changes TensorState::number and not the key.
  return std::find_if(states_.begin(), states_.end(), [&](const TensorState& state) {
    return state.key.by == key.by && state.number == key.number && state.key.count == key.count &&
           state.key.placement == key.placement;
  });
}

// If ranks make the same calls in the same order, the numbers agree. They differ if the program
// frees and allocates differently on one rank; the ranks find that out in the call, and call
// realign().
std::uint64_t TensorStates::number_of(const TensorKey& key) const {
  if (const auto known = by_key_.find(key); known != by_key_.end()) return known->second->number;
  if (key.by == TensorKey::By::address) return next_number_;
  return key.by == TensorKey::By::name ? text_hash(key.name) : key.number;
}

TensorStates::States::iterator TensorStates::make(const TensorKey& key, Lost* lost) {
  make_room();
  forget();
  const std::uint64_t number = number_of(key);
  states_.emplace_back(*this, key);
  const auto made = std::prev(states_.end());
  made->number = number;
  if (!made->named()) next_number_ = std::max(next_number_, number + 1);
  by_key_.emplace(key, made);
  if (key.by == TensorKey::By::name) take_restored(*made, lost);
  return made;
}

void TensorStates::take_restored(TensorState& state, Lost* lost) {
  const TensorKey& key = state.key;
  const std::lock_guard lock(restored_->mutex);
  const auto restored = restored_->by_name.find(key.name);
  if (restored == restored_->by_name.end()) return;
  std::vector<SavedState>& saved = restored->second;
  const auto fitting = std::find_if(saved.begin(), saved.end(), [&](const SavedState& one) {
    return one.count == key.count && one.placement == key.placement;
  });
  if (fitting == saved.end()) {
    *lost = Lost::saved;
    saved.clear();
  } else {
    state.restore(std::move(*fitting));
    saved.erase(fitting);
  }
  if (saved.empty()) restored_->by_name.erase(restored);
}

TensorState& TensorStates::use(const TensorKey& key, Lost* lost) {
  *lost = Lost::nothing;
  if (key.by == TensorKey::By::index &&
      index_counts_.emplace(key.number, key.count).first->second != key.count) {
    *lost = Lost::indices;
    forget_indices();
    index_counts_.emplace(key.number, key.count);
  }
  auto found = look_up(key);
  if (found == states_.end()) {
    found = make(key, lost);
  } else if (found->evicted_) {
    limit_ = std::min(2 * limit_, kMost);
    make_room();
  }
  found->evicted_ = false;
  states_.splice(states_.end(), states_, found);
  return *found;
}

void TensorStates::erase(States::iterator state) {
  if (state->holds_arrays()) --holding_;
  by_key_.erase(state->key);
  states_.erase(state);
}

// Drops the arrays of the oldest states when too many states have arrays: a program that sums a new
// buffer at every call would fill memory with state that is never used again. A program that uses
// its many buffers for the first time looks the same, so the limit doubles when a state that has
// lost its arrays is used again.
void TensorStates::make_room() {
  for (auto state = states_.begin(); holding_ >= limit_; ++state) {
    if (!state->holds_arrays()) continue;
    state->drop();
    state->evicted_ = true;
  }
}

void TensorStates::forget() {
  if (states_.size() < kMost) return;
  erase(states_.begin());
  log_once(LogLevel::warn,
           "state is kept for the last " + std::to_string(kMost) +
               " buffers of a communicator, and the program sums more; SLIMPI_CALLS_PER_STEP names "
               "buffers by the order of calls");
}

void TensorStates::forget_indices() {
  index_counts_.clear();
  for (auto state = states_.begin(); state != states_.end();) {
    const auto next = std::next(state);
    if (state->key.by == TensorKey::By::index) erase(state);
    state = next;
  }
}

void TensorStates::realign(TensorState& state, std::uint64_t number) {
  state.drop();
  if (state.named()) return;
  state.number = number;
  next_number_ = number + 1;
}

// Drops all states except those that restore() was given and no call has used. Keeps calls_,
// because all ranks count the same calls, and the index of a call comes from this count.
void TensorStates::drop_all() {
  by_key_.clear();
  states_.clear();
  index_counts_.clear();
  holding_ = next_number_ = 0;
}

std::vector<const TensorState*> TensorStates::find_named(const std::string& name) const {
  std::vector<const TensorState*> found;
  for (auto known = by_key_.lower_bound(TensorKey::of_name(name, 0));
       known != by_key_.end() && known->first.name == name; ++known)
    found.push_back(&*known->second);
  return found;
}

void TensorStates::give_back(TensorState& state) {
  if (!state.unused_) return;
  {
    const std::lock_guard lock(restored_->mutex);
    restored_->by_name[state.key.name].push_back(state.save());
  }
  erase(by_key_.at(state.key));
}

void TensorStates::restore(const std::string& name, std::vector<SavedState> saved) {
  for (const TensorState* const state : find_named(name)) erase(by_key_.at(state->key));
  const std::lock_guard lock(restored_->mutex);
  auto& restored = restored_->by_name;
  if (saved.empty())
    restored.erase(name);
  else
    restored.insert_or_assign(name, std::move(saved));
  // The program will come back to all these states, like before the checkpoint.
  std::size_t all = 0;
  for (const auto& [each, states] : restored) all += states.size();
  limit_ = std::clamp(all, limit_, kMost);
}

void TensorState::restore(SavedState saved) {
  algorithm_ = saved.algorithm;
  calls = saved.calls;
  uninitialized = saved.uninitialized;
  unused_ = true;
  restored_ = std::move(saved.arrays);
  if (const auto factor = restored_.find({StateArray::factor}); factor != restored_.end()) {
    Fnv1a hash;
    for (const float value : factor->second) hash.add(std::bit_cast<std::uint32_t>(value));
    restored_factor_ = hash.value();
  }
}

// Undoes restore(). The state must be unused_.
SavedState TensorState::save() {
  SavedState saved{algorithm_, key.count, key.placement, calls, uninitialized, {}};
  saved.arrays = std::move(restored_);
  saved.arrays.merge(copied_);
  return saved;
}

Status TensorState::open(const StateArray& which, std::uint64_t elements,
                         const device::Location& location, device::Stream* stream,
                         Statistics& statistics, float** array) {
  const bool first = arrays_.empty();
  Array& entry = arrays_[which];
  if (first) ++owner_.holding_;
  if (entry.elements != elements) {
    // Free the old memory first, because there may not be memory for both. `entry.elements` stays 0
    // until the new memory is there, so that a call after a failure tries again.
    entry.memory.release();
    entry.elements = 0;
    if (elements != 0) {
      SLIMPI_TRY(entry.memory.reserve(location, device::Place::device, elements * sizeof(float),
                                      statistics, Held::state));
      // The zeros are queued on the stream of the call, like the kernels that read the array.
      location.device->kernels()->fill(entry.memory.floats(), 0.0f, elements, stream);
    }
    SLIMPI_TRY(copy_restored(which, elements, location, stream, entry));
    entry.elements = elements;
  }
  *array = entry.memory.floats();
  return Status::ok;
}

// Copies the restored array `which`, if there is one, into the new array, which open() has filled
// with zeros. If the restored array does not have the `elements` elements that this call needs, it
// was saved from another array. The new array then stays zero, and `uninitialized` is set so that
// the ranks start over.
Status TensorState::copy_restored(const StateArray& which, std::uint64_t elements,
                                  const device::Location& location, device::Stream* stream,
                                  Array& entry) {
  auto restored = restored_.extract(which);
  if (restored.empty()) return Status::ok;
  const std::vector<float>& floats = restored.mapped();
  if (floats.size() != elements)
    uninitialized = true;
  else if (elements != 0)
    SLIMPI_TRY(location.device->copy(entry.memory.data(), floats.data(), elements * sizeof(float),
                                     stream));
  copied_.insert(std::move(restored));
  return Status::ok;
}

void TensorState::close(const StateArray& which) {
  if (arrays_.erase(which) != 0 && arrays_.empty()) --owner_.holding_;
}

void TensorState::clear() {
  if (!arrays_.empty()) --owner_.holding_;
  arrays_.clear();
  restored_.clear();
  unused_ = false;
  restored_factor_ = 0;
  uninitialized = true;
}

void TensorState::claim(const algorithm::Algorithm* algorithm, const device::Location& location) {
  // Arrays in other memory are dropped, because this call's kernels may not reach them.
  if (location_ && *location_ != location) drop();
  // Residuals and factors of one algorithm mean nothing to another.
  if (algorithm_ != algorithm) clear();
  if (!copied_.empty()) {  // a call has compared the factor
    copied_.clear();
    restored_factor_ = 0;
  }
  algorithm_ = algorithm;
  location_ = location;
}

void TensorState::drop() {
  clear();
  calls = 0;
  nonfinite = 0;
}

}  // namespace slimpi::comm
