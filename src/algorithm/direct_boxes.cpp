// SPDX-License-Identifier: BSD-3-Clause
#include "algorithm/direct_boxes.h"

#include <cstring>
#include <new>

namespace slimpi::algorithm {

namespace {

constexpr std::size_t kBytes = (DirectBoxes::kSlots + 1) * DirectBoxes::kBlock * sizeof(float);

// What a rank tells its neighbours while they open the boxes.
struct Note {
  device::Sharing::Handle handle;
  std::uint32_t offered, opened;
};
static_assert(sizeof(Note) <= SharedMemory::kNoteBytes);

Note& note_of(SharedMemory& shared, int process) {
  return *reinterpret_cast<Note*>(shared.note(process));
}

}  // namespace

Status DirectBoxes::offer(const device::Device& device, const void* like, Statistics& statistics,
                          device::Sharing::Handle* handle) {
  SLIMPI_TRY(memory_.reserve(device, like, device::Place::device, kBytes, statistics));
  return device.sharing->offer(memory_.data(), handle);
}

Status DirectBoxes::open(SharedMemory& shared, Exchange& exchange, const device::Device& device,
                         const void* like, Statistics& statistics, bool* opened,
                         std::string* reason) {
  me_ = shared.segment().me();
  const int size = shared.size();
  Note& mine = *new (&note_of(shared, me_)) Note{};
  mine.offered = offer(device, like, statistics, &mine.handle) == Status::ok ? 1 : 0;
  *reason = mine.offered != 0 ? "" : failure_text();
  SLIMPI_TRY(shared.meet(exchange));

  bool all = true;
  for (int one = 0; one < size; ++one) all = all && note_of(shared, one).offered != 0;
  device_ = &device;
  boxes_.assign(std::size_t(size), nullptr);
  boxes_[std::size_t(me_)] = memory_.data();
  for (int one = 0; all && one < size; ++one) {
    if (one == me_) continue;
    void* theirs = nullptr;
    all = device.sharing->open(like, note_of(shared, one).handle, &theirs) == Status::ok;
    if (!all) *reason = failure_text();
    boxes_[std::size_t(one)] = static_cast<std::byte*>(theirs);
  }
  mine.opened = all ? 1 : 0;
  SLIMPI_TRY(shared.meet(exchange));

  *opened = true;
  for (int one = 0; one < size; ++one) *opened = *opened && note_of(shared, one).opened != 0;
  if (*opened) return Status::ok;
  close();
  SLIMPI_TRY(shared.meet(exchange));  // nobody has this rank's memory any more
  memory_.release();
  return Status::ok;
}

void DirectBoxes::close() {
  for (std::size_t one = 0; one < boxes_.size(); ++one)
    if (boxes_[one] != nullptr && int(one) != me_) device_->sharing->close(boxes_[one]);
  boxes_.clear();
  device_ = nullptr;
}

}  // namespace slimpi::algorithm
