// SPDX-License-Identifier: BSD-3-Clause
#include "comm/memory.h"

#include <algorithm>
#include <utility>

namespace slimpi::comm {

Status Memory::reserve(const device::Location& location, device::Place place, std::size_t bytes,
                       Statistics& statistics, Held held) {
  const auto found = std::find_if(blocks_.begin(), blocks_.end(), [&](const Block& block) {
    return block.location == location && block.place == place;
  });
  // A GPU that was reset has another generation, and so another location: its old block is not
  // found.
  if (found != blocks_.end() && bytes <= found->size) {
    // data() is the block in front.
    std::swap(*found, blocks_.front());
    return Status::ok;
  }
  // The old block is freed first: there may be no memory for both.
  if (found != blocks_.end()) {
    free(*found);
    blocks_.erase(found);
  }
  void* memory = nullptr;
  SLIMPI_TRY(location.device->allocate(location, bytes, place, &memory));
  const Block made{location, place, static_cast<std::byte*>(memory), bytes, &statistics, held};
  count(made, std::int64_t(bytes));
  blocks_.insert(blocks_.begin(), made);
  return Status::ok;
}

void Memory::release() {
  for (const Block& block : blocks_) free(block);
  blocks_.clear();
}

void Memory::free(const Block& block) {
  block.location.device->release(block.data, block.place);
  count(block, -std::int64_t(block.size));
}

// A block remembers which statistics counted it, so that it is subtracted there.
void Memory::count(const Block& block, std::int64_t bytes_more) {
  if (block.held == Held::state)
    block.statistics->count(&Counts::state_bytes, std::uint64_t(bytes_more));
  else
    block.statistics->scratch(bytes_more);
}

}  // namespace slimpi::comm
