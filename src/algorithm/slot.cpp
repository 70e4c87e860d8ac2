// SPDX-License-Identifier: BSD-3-Clause
#include "algorithm/slot.h"

namespace slimpi::algorithm {

namespace {
// Slot numbers of one count leave room for this many buffers of that size.
constexpr std::uint64_t kBuffersOfOneSize = 1u << 20;
}  // namespace

Slot& Slots::find(const void* address, std::uint64_t count, std::uint64_t index,
                  std::uint64_t calls_per_step) {
  if (calls_per_step != 0) {
    std::unique_ptr<Slot>& slot = by_index_[index % calls_per_step];
    if (slot == nullptr) slot = std::make_unique<Slot>();
    if (slot->count != count) drop(*slot);
    slot->number = index % calls_per_step;
    slot->count = count;
    return *slot;
  }
  std::unique_ptr<Slot>& slot = by_address_[{count, address}];
  if (slot == nullptr) {
    slot = std::make_unique<Slot>();
    slot->number = used_[count]++ % kBuffersOfOneSize;
    slot->count = count;
  }
  return *slot;
}

void Slots::drop(Slot& slot) {
  slot.arrays.clear();
  slot.calls = 0;
}

void Slots::drop_all() {
  by_address_.clear();
  by_index_.clear();
  used_.clear();
}

Status slot_array(Slot& slot, const std::string& name, std::uint64_t elements,
                  const device::Device& device, const void* like, device::Stream* stream,
                  Statistics& statistics, float** array, bool* fresh) {
  Slot::Array& entry = slot.arrays[name];
  const bool made = entry.elements != elements || entry.memory.data() == nullptr;
  if (made) {
    entry.memory.release();
    SLIMPI_TRY(entry.memory.reserve(device, like, device::Place::device,
                                    elements * sizeof(float) + 4, statistics, Held::state));
    entry.elements = elements;
    float* floats = reinterpret_cast<float*>(entry.memory.data());
    device.kernels()->fill(floats, 0.0f, elements, stream);
  }
  *array = reinterpret_cast<float*>(entry.memory.data());
  if (fresh != nullptr) *fresh = made;
  return Status::ok;
}

}  // namespace slimpi::algorithm
