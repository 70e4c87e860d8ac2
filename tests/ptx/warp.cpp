// SPDX-License-Identifier: BSD-3-Clause
// The lanes' memory and where they are; scheduler.cpp lets them go on.
#include "tests/ptx/warp.h"

#include <algorithm>
#include <bit>

#include "tests/ptx/error.h"

namespace slimpi::test::ptx {

namespace {

unsigned special_value(const std::string& name, const Launch& launch, unsigned block,
                       unsigned thread) {
  if (name == "%tid.x") return thread;
  if (name == "%ctaid.x") return block;
  if (name == "%ntid.x") return launch.threads;
  if (name == "%nctaid.x") return launch.blocks;
  if (name == "%laneid") return thread % kLanes;
  if (name == "%tid.y" || name == "%tid.z" || name == "%ctaid.y" || name == "%ctaid.z") return 0;
  throw Error(launch.program->file + ": the interpreter does not know the special register " +
              name + "; add it to special_value in tests/ptx/warp.cpp");
}

}  // namespace

Warp::Warp(Block& block, unsigned first_thread)
    : block(block),
      program_(*block.launch.program),
      first_thread_(first_thread),
      values_(std::size_t(program_.slots) * kLanes),
      known_(program_.slots, Known{{kAllLanes, kAllLanes}}),
      frames_(kLanes, Bytes(program_.frame_bytes)) {
  for (std::size_t n = 0; n < program_.numbers.size(); ++n)
    std::fill_n(values(program_.registers + Slot(n)), kLanes, program_.numbers[n]);
}

void Warp::start() {
  alive_ = kAllLanes;
  std::fill_n(known_.begin(), program_.registers, Known{});
  std::fill_n(at_, kLanes, program_.first);
  std::fill_n(state_, kLanes, State::ready);
  for (unsigned lane = 0; lane < kLanes; ++lane) {
    returns_[lane].clear();
    std::fill(frames_[lane].known.begin(), frames_[lane].known.end(), 0);
    for (const auto& [name, slot] : program_.special)
      values(slot)[lane] = special_value(name, block.launch, block.number, first_thread_ + lane);
  }
}

void Warp::fail(const Instruction& i, unsigned lane, const std::string& text) const {
  throw Error(at_line(program_.file, i.line) + program_.name + ": block " +
              std::to_string(block.number) + " thread " + std::to_string(first_thread_ + lane) +
              ": " + i.opcode + ": " + text);
}

void Warp::need(const Instruction& i, Slot slot, std::uint32_t lanes, const char* what) const {
  const std::uint32_t missing = lanes & ~known(slot);
  if (missing != 0)
    fail(i, unsigned(std::countr_zero(missing)), std::string(what) + " was never written");
}

Warp::Place Warp::place(const Instruction& i, unsigned lane, std::uint64_t address, unsigned bytes,
                        bool write) {
  if (address % bytes != 0)
    fail(i, lane, "the address is not a multiple of " + std::to_string(bytes));
  if (i.space == Space::shared) return shared_place(i, lane, address, bytes, write);
  if (i.space == Space::generic && in_window(kSharedWindow, address))
    return shared_place(i, lane, address - kSharedWindow, bytes, write);
  if (i.space != Space::global && in_window(kFrameWindow, address))
    return frame_place(i, lane, address - kFrameWindow, bytes);
  if (i.space != Space::global && in_window(kParamWindow, address)) {
    const std::uint64_t at = address - kParamWindow;
    if (at + bytes > program_.argument_bytes) fail(i, lane, "it reads behind the arguments");
    if (write) fail(i, lane, "it writes to the kernel's arguments");
    return {const_cast<unsigned char*>(block.launch.arguments) + at, nullptr};
  }
  if (i.space == Space::frame) fail(i, lane, "the address is none of the thread's own");
  if (!block.launch.allocations->contains(address, bytes))
    fail(i, lane, std::string(write ? "it writes" : "it reads") + " outside of GPU memory");
  // NOLINTNEXTLINE(performance-no-int-to-ptr): the kernel's pointers are this process's
  return {reinterpret_cast<unsigned char*>(address), nullptr, true};
}

void Warp::touch(const Instruction& i, unsigned lane, std::uint64_t address, unsigned bytes,
                 Access access) {
  if (block.launch.blocks == 1) return;
  const int other = block.launch.allocations->race(address, bytes, block.number, access);
  if (other >= 0) fail(i, lane, "a race with block " + std::to_string(other) + " in GPU memory");
}

Warp::Place Warp::frame_place(const Instruction& i, unsigned lane, std::uint64_t address,
                              unsigned bytes) {
  if (address + bytes > program_.frame_bytes) fail(i, lane, "the address is behind the frame");
  Bytes& frame = frames_[lane];
  return {&frame.data[address], &frame.known[address]};
}

Warp::Place Warp::shared_place(const Instruction& i, unsigned lane, std::uint64_t address,
                               unsigned bytes, bool write) {
  auto variable = program_.shared.upper_bound(unsigned(std::min<std::uint64_t>(address, ~0u)));
  if (variable == program_.shared.begin() || address + bytes > (--variable)->second)
    fail(i, lane, "the address is outside of the variables in shared memory");
  const Accessor by = {first_thread_ + lane, first_thread_ / kLanes, block.barriers, barriers};
  for (std::uint64_t at = address; at < address + bytes; ++at) {
    const int other = write ? block.races.write(at, by) : block.races.read(at, by);
    if (other >= 0)
      fail(i, lane,
           "a race with thread " + std::to_string(other) + " for byte " +
               std::to_string(at - variable->first) + " of a variable in shared memory");
  }
  return {&block.shared.data[address], &block.shared.known[address]};
}

}  // namespace slimpi::test::ptx
