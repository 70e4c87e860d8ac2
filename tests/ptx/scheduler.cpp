// SPDX-License-Identifier: BSD-3-Clause
// Which lanes of a warp go on, and until when.
#include <algorithm>
#include <bit>

#include "tests/ptx/error.h"
#include "tests/ptx/lanes.h"
#include "tests/ptx/warp.h"

namespace slimpi::test::ptx {

// The ready lanes that are deepest in functions, and of those the ones that are behind. `until`:
// the next instruction where others may join them.
std::uint32_t Warp::pick(unsigned* until) const {
  std::size_t deepest = 0;
  unsigned behind = ~0u;
  for_lanes(alive_, [&](unsigned lane) {
    if (state_[lane] != State::ready) return;
    const std::size_t depth = returns_[lane].size() + 1;
    if (depth > deepest || (depth == deepest && at_[lane] < behind)) behind = at_[lane];
    deepest = std::max(deepest, depth);
  });
  std::uint32_t picked = 0;
  *until = ~0u;
  for_lanes(alive_, [&](unsigned lane) {
    if (state_[lane] != State::ready || returns_[lane].size() + 1 != deepest) return;
    if (at_[lane] == behind)
      picked |= 1u << lane;
    else
      *until = std::min(*until, at_[lane]);
  });
  return picked;
}

void Warp::run() {
  for (;;) {
    unsigned until = 0;
    const std::uint32_t lanes = pick(&until);
    if (lanes == 0) break;
    execute(lanes, until);
  }
  for_lanes(alive_, [&](unsigned lane) {
    if (state_[lane] == State::at_warp) fail_stuck();
  });
}

std::uint32_t Warp::active_lanes(const Instruction& i, std::uint32_t lanes) const {
  if (!i.conditional) return lanes;
  need(i, i.predicate, lanes, "the predicate");
  std::uint32_t active = 0;
  const std::uint64_t* const predicate = &values_[std::size_t(i.predicate) * kLanes];
  for (unsigned lane = 0; lane < kLanes; ++lane)
    active |= std::uint32_t((predicate[lane] != 0) != i.negated) << lane;
  return active & lanes;
}

// Executes for lanes that are at one instruction, until they separate or others may join them.
void Warp::execute(std::uint32_t lanes, unsigned until) {
  unsigned at = at_[std::countr_zero(lanes)];
  while (at < until) {
    const Instruction& i = program_.code[at];
    block.launch.program->executed[at] = 1;
    const std::uint32_t active = active_lanes(i, lanes);
    if (i.flow == Flow::next) {
      if (active != 0) i.run(*this, i, active);
      ++at;
    } else if (i.flow == Flow::branch && (active == lanes || active == 0)) {
      at = active != 0 ? i.jump : at + 1;
    } else {
      return jump(i, lanes, active, at);
    }
  }
  for_lanes(lanes, [&](unsigned lane) { at_[lane] = at; });
}

// Lanes separate, wait, or go to another function.
void Warp::jump(const Instruction& i, std::uint32_t lanes, std::uint32_t active, unsigned at) {
  for_lanes(lanes, [&](unsigned lane) { at_[lane] = at + 1; });
  if (active == 0) return;
  for_lanes(active, [&](unsigned lane) {
    if (i.flow == Flow::branch) at_[lane] = i.jump;
    if (i.flow == Flow::call) call(i, lane);
    if (i.flow == Flow::leave) leave(lane);
    if (i.flow == Flow::meet_block) state_[lane] = State::at_block;
    if (i.flow == Flow::meet_warp) state_[lane] = State::at_warp;
    // Where it waits, until it goes on.
    if (i.flow == Flow::meet_block || i.flow == Flow::meet_warp) at_[lane] = at;
  });
  if (i.flow == Flow::meet_warp) meet(i, active);
}

void Warp::pass(const std::vector<Passed>& all, unsigned lane) {
  Bytes& frame = frames_[lane];
  for (const Passed& one : all) {
    std::copy_n(&frame.data[one.from], one.bytes, &frame.data[one.to]);
    std::copy_n(&frame.known[one.from], one.bytes, &frame.known[one.to]);
  }
}

void Warp::call(const Instruction& i, unsigned lane) {
  const Call& call = program_.calls[i.jump];
  returns_[lane].push_back({at_[lane], i.jump});
  std::fill_n(frames_[lane].known.begin() + call.frame, call.frame_bytes, 0);
  pass(call.arguments, lane);
  at_[lane] = call.target;
}

void Warp::leave(unsigned lane) {
  if (returns_[lane].empty()) {
    state_[lane] = State::ended;
    alive_ &= ~(1u << lane);
    return;
  }
  const Return back = returns_[lane].back();
  returns_[lane].pop_back();
  pass(program_.calls[back.call].results, lane);
  at_[lane] = back.to;
}

// The last source of what a warp does together is the mask of its lanes. When all of them that have
// not ended are at this instruction, it is executed for them together.
void Warp::meet(const Instruction& i, std::uint32_t active) {
  const Slot mask = i.from[i.sources - 1];
  need(i, mask, active, "the mask of lanes");
  const unsigned first = unsigned(std::countr_zero(active));
  const auto members = std::uint32_t(values(mask)[first]);
  std::uint32_t here = 0;
  for_lanes(alive_, [&](unsigned lane) {
    if (state_[lane] == State::at_warp && at_[lane] == at_[first]) here |= 1u << lane;
  });
  for_lanes(here, [&](unsigned lane) {
    if (std::uint32_t(values(mask)[lane]) != members || (members >> lane & 1) == 0)
      fail(i, lane, "lanes are here with other masks, or without being in theirs");
  });
  if (here != (members & alive_)) return;
  i.run(*this, i, here);
  for_lanes(here, [&](unsigned lane) {
    state_[lane] = State::ready;
    ++at_[lane];
  });
}

void Warp::fail_stuck() const {
  std::string text = "lanes wait for others that never come:";
  unsigned last = ~0u, lane_of_last = 0;
  for_lanes(alive_, [&](unsigned lane) {
    if (at_[lane] == last) return;
    last = at_[lane];
    lane_of_last = lane;
    text += " lane " + std::to_string(lane) + " at line " +
            std::to_string(program_.code[last].line) + ",";
  });
  text.back() = '.';
  if (alive_ != kAllLanes) text += " Some have ended.";
  fail(program_.code[last], lane_of_last, text);
}

const Instruction& Warp::at_barrier() const {
  const Instruction& i = program_.code[at_[std::countr_zero(alive_)]];
  for (unsigned lane = 0; lane < kLanes; ++lane) {
    if (state_[lane] == State::ended) fail(i, lane, "the thread has ended, and the block waits");
    if (&program_.code[at_[lane]] != &i)
      fail(i, lane, "lanes of a warp wait for the block at different barriers");
  }
  return i;
}

void Warp::pass_barrier() {
  for (unsigned lane = 0; lane < kLanes; ++lane) {
    state_[lane] = State::ready;
    ++at_[lane];
  }
}

}  // namespace slimpi::test::ptx
