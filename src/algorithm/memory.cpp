// SPDX-License-Identifier: BSD-3-Clause
#include "algorithm/memory.h"

#include <utility>

namespace slimpi::algorithm {

Status Memory::reserve(const device::Device& device, const void* like, device::Place place,
                       std::size_t bytes, Statistics& statistics, Held held) {
  const int unit = device::unit_of(device, like);
  if (bytes <= size_ && device_ == &device && unit_ == unit && place_ == place) return Status::ok;
  release();
  void* memory = nullptr;
  SLIMPI_TRY(device.allocate(like, bytes, place, &memory));
  device_ = &device;
  unit_ = unit;
  place_ = place;
  data_ = static_cast<std::byte*>(memory);
  size_ = bytes;
  statistics_ = &statistics;
  held_ = held;
  count(std::int64_t(bytes));
  return Status::ok;
}

void Memory::release() {
  if (data_ == nullptr) return;
  device_->release(data_, place_);
  count(-std::int64_t(size_));
  data_ = nullptr;
  size_ = 0;
}

void Memory::swap(Memory& other) noexcept {
  std::swap(device_, other.device_);
  std::swap(unit_, other.unit_);
  std::swap(place_, other.place_);
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  std::swap(statistics_, other.statistics_);
  std::swap(held_, other.held_);
}

void Memory::count(std::int64_t bytes_more) {
  if (held_ == Held::state)
    statistics_->state(bytes_more);
  else
    statistics_->scratch(bytes_more);
}

}  // namespace slimpi::algorithm
