// SPDX-License-Identifier: BSD-3-Clause
#include "algorithm/slot.h"

#include <algorithm>

#include "base/log.h"

namespace slimpi::algorithm {

Slot& Slots::find(const void* address, std::uint64_t count, std::uint64_t calls_per_step) {
  const bool by_index = calls_per_step != 0;
  const std::uint64_t index = by_index ? (calls_ - 1) % calls_per_step : 0;
  const Key key = by_index ? Key{index, nullptr} : Key{count, address};
  ++lookups_;
  auto found = slots_.find(key);
  if (found == slots_.end()) {
    make_room();
    forget();
    found = slots_.emplace(key, std::make_unique<Slot>()).first;
    found->second->number = by_index ? index : next_[count]++;
    found->second->count = count;
    found->second->by_order = by_index;
  } else if (found->second->evicted) {
    limit_ = std::min(2 * limit_, kMost);
    make_room();
  }
  Slot& slot = *found->second;
  if (slot.count != count) drop(slot);  // by index: another tensor stands here now
  slot.count = count;
  slot.used = lookups_;
  slot.evicted = false;
  return slot;
}

std::size_t Slots::holding() const {
  return std::size_t(std::count_if(slots_.begin(), slots_.end(), [](const auto& entry) {
    return !entry.second->arrays.empty();
  }));
}

std::map<Slots::Key, std::unique_ptr<Slot>>::iterator Slots::oldest(bool with_arrays) {
  auto found = slots_.end();
  for (auto entry = slots_.begin(); entry != slots_.end(); ++entry)
    if ((!with_arrays || !entry->second->arrays.empty()) &&
        (found == slots_.end() || entry->second->used < found->second->used))
      found = entry;
  return found;
}

// A program that sums a new buffer at every call would fill the memory with state that nothing asks
// for again. It can not be told from one that goes through its buffers for the first time, so the
// oldest give up their arrays, and the limit moves when one of those is asked for again.
void Slots::make_room() {
  for (std::size_t held = holding(); held >= limit_; --held) {
    Slot& slot = *oldest(true)->second;
    drop(slot);
    slot.evicted = true;
  }
}

void Slots::forget() {
  if (slots_.size() < kMost) return;
  slots_.erase(oldest(false));
  log_once(LogLevel::warn,
           "state is kept for the last " + std::to_string(kMost) +
               " buffers of a communicator, and the program sums more; SLIMPI_CALLS_PER_STEP names "
               "buffers by the order of calls");
}

void Slots::claim(Slot& slot, const Algorithm* algorithm, const device::Device& device) {
  if (slot.device != nullptr && slot.device != &device) drop(slot);
  if (slot.algorithm != algorithm) {
    slot.arrays.clear();
    slot.fresh = true;
  }
  slot.algorithm = algorithm;
  slot.device = &device;
}

void Slots::realign(Slot& slot, std::uint64_t number) {
  drop(slot);
  if (slot.by_order) return;
  slot.number = number;
  next_[slot.count] = number + 1;
}

void Slots::drop(Slot& slot) {
  slot.arrays.clear();
  slot.calls = 0;
  slot.fresh = true;
  slot.spoiled = 0;
}

void Slots::drop_all() {
  slots_.clear();
  next_.clear();
}

Status slot_array(Slot& slot, const std::string& name, std::uint64_t elements,
                  const device::Device& device, const void* like, device::Stream* stream,
                  Statistics& statistics, float** array, bool* fresh) {
  Slot::Array& entry = slot.arrays[name];
  const bool made = entry.elements != elements;
  if (made) {
    entry.memory.release();
    entry.elements = 0;
    if (elements != 0) {
      SLIMPI_TRY(entry.memory.reserve(device, like, device::Place::device, elements * sizeof(float),
                                      statistics, Held::state));
      device.kernels()->fill(reinterpret_cast<float*>(entry.memory.data()), 0.0f, elements, stream);
    }
    entry.elements = elements;
  }
  *array = reinterpret_cast<float*>(entry.memory.data());
  if (fresh != nullptr) *fresh = made;
  return Status::ok;
}

}  // namespace slimpi::algorithm
