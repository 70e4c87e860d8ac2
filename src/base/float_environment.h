// SPDX-License-Identifier: BSD-3-Clause
// Saves, sets and restores the floating-point environment of the calling thread: rounding,
// subnormal numbers, traps and exception flags. slimpi's computations between nodes must neither
// depend on the program's settings nor trap, while the program's MPI and its callbacks must compute
// in the program's environment.
#pragma once
#include <cfenv>
#include <cstdint>

namespace slimpi {

// A saved environment. The x87 unit is included only if the program changed its control word:
// saving takes a hundred cycles, and slimpi's own code does not use the unit.
struct SavedFloats {
  std::uint32_t mxcsr = 0;
  bool all = false;
  std::fenv_t environment{};  // valid if `all`
};

// Sets slimpi's own environment for its lifetime (round to nearest even, keep subnormal numbers, no
// traps), then restores the caller's, flags included. Objects of a thread nest. Do no arithmetic in
// the function that makes the object, because the compiler may move it out of the lifetime.
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

// For its lifetime, restores the environment that the innermost OwnFloats has saved, so that code
// of the program or of MPI can run in it. Exception flags that this code raises stay raised in the
// saved environment. Does nothing outside an OwnFloats.
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
