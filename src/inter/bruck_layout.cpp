// SPDX-License-Identifier: BSD-3-Clause
#include "inter/bruck_layout.h"

#include <algorithm>
#include <memory>

#include "base/round_up.h"
#include "inter/bruck.h"
#include "inter/segment_length.h"

namespace slimpi::inter {

BruckShape::BruckShape(const kernels::Format& format_, std::uint64_t count_, int group_size_)
    : format(format_),
      count(count_),
      group_size(group_size_),
      align(comm::chunk_alignment(format)),
      block(bytes_of(0)),
      message(std::max(kMostInMessage, block)) {}

// A multiple of 16 bytes, as the header is, so that every payload begins at one.
std::size_t BruckShape::bytes_of(int owner) const {
  // An owner without elements has no blocks and no messages. All ranks know that from the count.
  const std::uint64_t elements = chunk(owner).count;
  return elements == 0 ? 0 : round_up(message_bytes(format, elements), 16);
}

BruckLayout::BruckLayout(const ExchangeSize& size)
    : shape(size.format, size.count, size.group_size), first_of_(1, 0) {
  chunks_.reserve(std::size_t(size.group_size));
  lengths_.reserve(std::size_t(size.group_size));
  first_of_.reserve(2 * std::size_t(size.group_size) + 1);
  for (int member = 0; member < size.group_size; ++member) {
    chunks_.push_back(shape.chunk(member));
    lengths_.push_back(shape.bytes_of(member));
  }
  // Twice around the ring: a run of owners that passes the last member stays one interval.
  for (int i = 0; i < 2 * size.group_size; ++i)
    first_of_.push_back(first_of_.back() + lengths_[std::size_t(i % size.group_size)]);
}

std::size_t BruckLayout::bytes() const {
  return sizeof *this + chunks_.size() * (sizeof(comm::Range) + 3 * sizeof(std::size_t));
}

std::unique_ptr<const ExchangeLayout> bruck_layout(const ExchangeSize& size) {
  return std::make_unique<BruckLayout>(size);
}

Need bruck_need(const ExchangeSize& size) {
  // The first chunk is the longest.
  const BruckShape shape(size.format, size.count, size.group_size);
  return {shape.total(), shape.chunk(0).count};
}

}  // namespace slimpi::inter
