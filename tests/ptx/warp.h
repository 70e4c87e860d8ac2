// SPDX-License-Identifier: BSD-3-Clause
// A warp: the registers of its lanes, and where each of them is. Lanes are scheduled independently,
// as GPUs do since Volta: those at the same instruction go on together, the ones that are behind
// first. Lanes wait for others only at barriers and at what a warp does together.
#pragma once
#include <string>
#include <vector>

#include "tests/ptx/block.h"

namespace slimpi::test::ptx {

constexpr unsigned kLanes = 32;
constexpr std::uint32_t kAllLanes = 0xffffffff;

class Warp {
 public:
  Warp(Block& block, unsigned first_thread);

  // Puts all lanes at the kernel's first instruction.
  void start();
  // Goes on until every lane has ended or waits for the block.
  void run();
  bool ended() const { return alive_ == 0; }

  // Of the lanes that wait for the block: the instruction. Fails where they are not all at one, or
  // where lanes have ended.
  const Instruction& at_barrier() const;
  void pass_barrier();

  std::uint64_t* values(Slot slot) { return &values_[slot * kLanes]; }
  // The lanes whose value was written: all of it, or one 32-bit part (nvcc makes a pair of which it
  // uses only one).
  std::uint32_t known(Slot slot) const { return known_[slot].part[0] & known_[slot].part[1]; }
  std::uint32_t known_part(Slot slot, unsigned part) const { return known_[slot].part[part]; }
  void set_known(Slot slot, std::uint32_t lanes, std::uint32_t known) {
    set_known(slot, lanes, known, known);
  }
  void set_known(Slot slot, std::uint32_t lanes, std::uint32_t low, std::uint32_t high) {
    std::uint32_t* const part = known_[slot].part;
    part[0] = (part[0] & ~lanes) | (low & lanes);
    part[1] = (part[1] & ~lanes) | (high & lanes);
  }
  // Fails if a lane's value was never written.
  void need(const Instruction& i, Slot slot, std::uint32_t lanes, const char* what) const;

  // The bytes at an address, of which `known` says whether each was written (null: always so).
  struct Place {
    unsigned char *data, *known;
    bool global = false;
  };
  Place place(const Instruction& i, unsigned lane, std::uint64_t address, unsigned bytes,
              bool write);

  // Fails where another block has a conflicting access to these bytes of GPU memory.
  void touch(const Instruction& i, unsigned lane, std::uint64_t address, unsigned bytes,
             Access access);

  [[noreturn]] void fail(const Instruction& i, unsigned lane, const std::string& text) const;

  Block& block;
  std::uint32_t barriers = 1;  // passed by all of its lanes together

 private:
  struct Return {
    unsigned to, call;
  };
  struct Known {
    std::uint32_t part[2];
  };
  enum class State : std::uint8_t { ready, at_warp, at_block, ended };

  std::uint32_t pick(unsigned* until) const;
  void execute(std::uint32_t lanes, unsigned until);
  std::uint32_t active_lanes(const Instruction& i, std::uint32_t lanes) const;
  void jump(const Instruction& i, std::uint32_t lanes, std::uint32_t active, unsigned at);
  void call(const Instruction& i, unsigned lane);
  void leave(unsigned lane);
  void pass(const std::vector<Passed>& all, unsigned lane);
  void meet(const Instruction& i, std::uint32_t active);
  [[noreturn]] void fail_stuck() const;
  Place shared_place(const Instruction& i, unsigned lane, std::uint64_t address, unsigned bytes,
                     bool write);
  Place frame_place(const Instruction& i, unsigned lane, std::uint64_t address, unsigned bytes);

  const Program& program_;
  const unsigned first_thread_;
  std::vector<std::uint64_t> values_;
  std::vector<Known> known_;
  std::vector<Bytes> frames_;
  std::uint32_t alive_ = 0;
  State state_[kLanes] = {};
  unsigned at_[kLanes] = {};
  std::vector<Return> returns_[kLanes];
};

}  // namespace slimpi::test::ptx
