// SPDX-License-Identifier: BSD-3-Clause
// A kernel ready to run: its instructions and those of the functions that it calls, with places for
// every register, number and variable.
#pragma once
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "tests/ptx/module.h"

namespace slimpi::test::ptx {

class Warp;
struct Instruction;

// Executes an instruction for the lanes in the mask.
using Handler = void (*)(Warp& warp, const Instruction& instruction, std::uint32_t lanes);

enum class Flow : std::uint8_t { next, branch, call, leave, meet_warp, meet_block };

using Slot = std::uint32_t;  // a register or a number: a value for each lane of a warp

struct Instruction {
  Handler run = nullptr;
  Flow flow = Flow::next;
  bool conditional = false, negated = false;
  Slot predicate = 0;
  Slot to[4] = {}, from[4] = {};
  unsigned targets = 0, sources = 0;
  // Of loads, stores and atomics.
  Space space = Space::generic;
  std::uint8_t bytes = 0;  // of an element
  std::uint8_t width = 0;  // bits of the registers that are loaded
  bool is_signed = false, read_only = false;
  std::int64_t offset = 0;
  unsigned jump = 0;  // of a branch: the next instruction; of a call: its number in `calls`
  unsigned barrier = 0;
  unsigned line = 0;
  const char* opcode = nullptr;
};

// A copy between a caller's part of the frame and its callee's.
struct Passed {
  unsigned from, to, bytes;
};
struct Call {
  unsigned target;  // instruction
  std::vector<Passed> arguments, results;
  unsigned frame, frame_bytes;  // the callee's part
};

struct Program {
  std::string name, file;
  std::vector<Instruction> code;
  std::vector<Call> calls;
  Slot registers = 0;  // the slots before those of numbers
  std::vector<std::uint64_t> numbers;
  std::map<std::string, Slot> special;  // %tid.x
  unsigned first = 0;                   // instruction of the kernel itself
  unsigned slots = 0, frame_bytes = 0, shared_end = 0, argument_bytes = 0, most_threads = 0;
  // Shared memory, by its first byte; between variables nothing may be touched.
  std::map<unsigned, unsigned> shared;
  std::vector<unsigned char> executed;  // of each instruction: whether any lane has
};

std::unique_ptr<Program> assemble(const Module& module, const Function& entry);

}  // namespace slimpi::test::ptx
