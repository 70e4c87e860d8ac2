// SPDX-License-Identifier: BSD-3-Clause
// Runs the kernels of PTX files on the CPU, and finds what a GPU would leave undefined: accesses
// outside of memory or misaligned, values that were never written, races in shared memory, barriers
// that not all threads reach. It is an interpreter, not hardware: it knows nothing of ptxas, of
// caches or of time. Each of these ends with an Error that names file, line, kernel and thread. It
// is a library of its own, libslimpi_ptx.so, that the fake driver loads where FAKE_PTX is set.
#pragma once
#include <cstddef>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "tests/ptx/error.h"
#include "tests/ptx/memory.h"

namespace slimpi::test::ptx {

struct Module;
struct Kernel;

class Machine {
 public:
  Machine();
  virtual ~Machine();

  virtual void load(const std::string& file);
  void load(const std::string& file, const std::string& source);

  // Runs all blocks. `bytes` is the size of what `arguments` points to.
  virtual void run(const std::string& kernel, unsigned blocks, unsigned threads,
                   const void* arguments, std::size_t bytes, Allocations& memory);

  // The kernels that never ran.
  virtual std::vector<std::string> idle() const;
  // Of all kernels that ran: instructions, and those of them that some thread executed.
  struct Coverage {
    std::size_t instructions = 0, executed = 0;
    std::vector<std::string> missing;  // file:line of each that was not, in kernels' order
  };
  virtual Coverage coverage() const;

 private:
  Kernel& kernel(const std::string& name);

  std::vector<std::unique_ptr<Module>> modules_;
  std::map<std::string, std::unique_ptr<Kernel>> kernels_;  // kernels that ran
};

}  // namespace slimpi::test::ptx

// A new one, for who loads the library; its other functions are virtual.
extern "C" slimpi::test::ptx::Machine* slimpi_ptx_machine();
