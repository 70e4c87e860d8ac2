// SPDX-License-Identifier: BSD-3-Clause
#include "inter/bruck_layout.h"

#include <algorithm>
#include <memory>

#include "base/round_up.h"
#include "inter/schedule.h"
#include "inter/segment_length.h"

namespace slimpi::inter {

int BruckSteps::steps() const {
  int steps = 0;
  while ((1 << steps) < group_size_) ++steps;
  return steps;
}

// Of every 2 * bit numbers from 0 on, the last `bit` have it set.
int BruckSteps::travelling(int step) const {
  const int bit = 1 << step;
  return group_size_ / (2 * bit) * bit + std::max(0, group_size_ % (2 * bit) - bit);
}

int BruckSteps::to_gather(int step) const {
  return std::min(gathered(step), group_size_ - gathered(step));
}

// The first chunk is the longest.
BruckLayout::BruckLayout(const ExchangeSize& size) : first_of_(1, 0) {
  const std::size_t members = std::size_t(size.group_size);
  chunks_.reserve(members);
  lengths_.reserve(members);
  first_of_.reserve(2 * members + 1);
  for (int member = 0; member < size.group_size; ++member) {
    chunks_.push_back(
        comm::chunk_of(size.count, size.group_size, member, comm::chunk_alignment(size.format)));
    // An owner without elements has no blocks and no messages. Otherwise a multiple of 16 bytes, as
    // the header is, so that every payload begins at one.
    const std::uint64_t elements = chunks_.back().count;
    lengths_.push_back(elements == 0 ? 0 : round_up(message_bytes(size.format, elements), 16));
  }
  // Twice around the ring: a run of owners that passes the last member stays one interval.
  for (std::size_t i = 0; i < 2 * members; ++i)
    first_of_.push_back(first_of_.back() + lengths_[i % members]);
  block_ = lengths_.front();
  message_ = std::max(kMostInMessage, block_);
}

std::unique_ptr<const ExchangeLayout> bruck_layout(const ExchangeSize& size) {
  return std::make_unique<BruckLayout>(size);
}

Need bruck_need(const ExchangeSize& size) {
  const BruckLayout layout(size);
  return {layout.total(), layout.chunk(0).count};
}

}  // namespace slimpi::inter
