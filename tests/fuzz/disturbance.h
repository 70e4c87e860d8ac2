// SPDX-License-Identifier: BSD-3-Clause
// Disturbs a process while it is inside MPI_Allreduce: signals, children, little memory or few file
// descriptors, a small stack, another floating-point environment.
#pragma once
#include <sys/resource.h>

#include <cfenv>
#include <functional>
#include <string>

#include "tests/fuzz/draws.h"

namespace fuzz {

class Disturbance {
 public:
  // A word of the command line:
  //   signals:HZ     SIGALRM so often, for the whole run
  //   fork           children now and then, which exit at once
  //   skew:MS        before a step each rank sleeps for up to so many milliseconds
  //   files:N        N file descriptors more than are open
  //   memory:BYTES   so much address space more than is used
  //   float          ranks flush subnormals to zero, or round up, or down
  //   stack:BYTES    a stack of this size, of a fiber of the program
  // The last four hold between enter() and leave() only. Returns whether it is one of these.
  bool take(const std::string& word, int rank);

  void begin();  // after MPI_Init
  void end();    // before MPI_Finalize
  void between_steps(Draws& draws);
  void enter();
  void leave();
  int call(const std::function<int()>& sum);  // between them; returns what it returns

  // Whether the library may lack what it needs, and leave calls to MPI.
  bool limited() const { return files_ >= 0 || memory_ >= 0; }
  // Whether sums of MPI's own may differ by rank.
  bool rounds() const { return float_; }

 private:
  long hertz_ = 0, files_ = -1, memory_ = -1, stack_ = 0, skew_ = 0;
  bool fork_ = false, float_ = false;
  int rank_ = 0;
  rlimit before_{};
  std::fenv_t environment_{};
};

// How often the handler of signals:HZ ran.
long signals_seen();

}  // namespace fuzz
