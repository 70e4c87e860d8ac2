// SPDX-License-Identifier: BSD-3-Clause
#include "tests/ptx/block.h"

#include <algorithm>

#include "tests/ptx/warp.h"

namespace slimpi::test::ptx {

Block::Block(const Launch& launch)
    : launch(launch), shared(launch.program->shared_end), races(launch.program->shared_end) {
  for (unsigned thread = 0; thread < launch.threads; thread += kLanes)
    warps_.push_back(std::make_unique<Warp>(*this, thread));
}

Block::~Block() = default;

// The last warp comes first in blocks of odd number, so that an order that is only by chance shows.
void Block::run(unsigned block) {
  number = block;
  ++barriers;
  std::fill(shared.known.begin(), shared.known.end(), 0);
  for (const auto& warp : warps_) warp->start();
  if (block % 2 != 0) std::reverse(warps_.begin(), warps_.end());
  for (;;) {
    for (const auto& warp : warps_)
      if (!warp->ended()) warp->run();
    if (std::all_of(warps_.begin(), warps_.end(), [](const auto& w) { return w->ended(); })) break;
    pass_barrier();
  }
  if (block % 2 != 0) std::reverse(warps_.begin(), warps_.end());
}

void Block::pass_barrier() {
  const Instruction* first = nullptr;
  for (const auto& warp : warps_) {
    if (warp->ended()) warp->fail(*first_waiting(), 0, "the warp has ended, and the block waits");
    const Instruction& at = warp->at_barrier();
    if (first == nullptr) first = &at;
    if (at.barrier != first->barrier)
      warp->fail(at, 0, "warps wait at barriers with different numbers");
  }
  ++barriers;
  for (const auto& warp : warps_) warp->pass_barrier();
}

const Instruction* Block::first_waiting() const {
  for (const auto& warp : warps_)
    if (!warp->ended()) return &warp->at_barrier();
  return nullptr;
}

}  // namespace slimpi::test::ptx
