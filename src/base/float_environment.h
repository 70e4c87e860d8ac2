// SPDX-License-Identifier: BSD-3-Clause
// Saves, sets and restores the floating-point environment of the calling thread: rounding,
// subnormal numbers, traps and exception flags. slimpi's computations between nodes must neither
// depend on the program's settings nor trap, while the program's MPI and its callbacks must compute
// in the program's environment.
#pragma once
#include <cfenv>
#include <cstdint>

namespace slimpi {

// A saved environment. The x87 unit is saved only if the program changed its control word, because
// saving takes a hundred cycles and slimpi's own code does not use the unit.
struct SavedFloats {
  std::uint32_t mxcsr = 0;
  bool all = false;
  std::fenv_t environment{};  // valid if `all`
};

// Sets slimpi's own environment while the object lives (round to nearest even, subnormal numbers
// unchanged, no traps), then restores the caller's, flags included. Objects nest, in one thread.
// The function that makes the object must do no arithmetic, because the compiler may move it out of
// the object's lifetime.
class OwnFloats {
 public:
  OwnFloats();
  ~OwnFloats();
  OwnFloats(const OwnFloats&) = delete;
  OwnFloats& operator=(const OwnFloats&) = delete;

 private:
  friend class CallersFloats;
  SavedFloats saved_;
  OwnFloats* const outer_;
};

// Restores, while the object lives, the environment that the innermost OwnFloats has saved, so that
// code of the program or of MPI runs in it. Flags that are raised meanwhile stay raised there. Does
// nothing outside an OwnFloats.
class CallersFloats {
 public:
  CallersFloats();
  ~CallersFloats();
  CallersFloats(const CallersFloats&) = delete;
  CallersFloats& operator=(const CallersFloats&) = delete;

 private:
  OwnFloats* const within_;
};

}  // namespace slimpi
