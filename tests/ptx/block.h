// SPDX-License-Identifier: BSD-3-Clause
// A block of threads (CTA): its shared memory and its warps.
#pragma once
#include <memory>
#include <vector>

#include "tests/ptx/memory.h"
#include "tests/ptx/program.h"
#include "tests/ptx/races.h"

namespace slimpi::test::ptx {

class Warp;

// What all blocks of a launch share.
struct Launch {
  Program* program;
  unsigned blocks, threads;
  const unsigned char* arguments;
  Allocations* allocations;
};

class Block {
 public:
  explicit Block(const Launch& launch);
  ~Block();

  // Runs block `number` from start to end.
  void run(unsigned number);

  const Launch& launch;
  unsigned number = 0;
  Bytes shared;
  Races races;
  std::uint32_t barriers = 1;  // passed by all of its threads; never starts again

 private:
  void pass_barrier();
  const Instruction* first_waiting() const;
  std::vector<std::unique_ptr<Warp>> warps_;
};

}  // namespace slimpi::test::ptx
