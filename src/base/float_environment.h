// SPDX-License-Identifier: BSD-3-Clause
// The floating-point environment of the calling thread: rounding, subnormal numbers, traps and the
// flags of exceptions. What slimpi computes between nodes must not depend on what the program set,
// and must not trap; what the program's MPI or its callbacks compute must run in the program's own.
#pragma once
#include <cfenv>
#include <cstdint>

namespace slimpi {

// A saved environment. The x87 unit is saved only where the program changed its control word: it
// takes a hundred cycles, and slimpi's own code does not use the unit.
struct SavedFloats {
  std::uint32_t mxcsr = 0;
  bool all = false;
  std::fenv_t environment{};  // valid if `all`
};

// slimpi's own environment for the lifetime of the object: round to nearest even, subnormal numbers
// as they are, no traps. Then the caller's again, flags included. Objects nest, in one thread.
// Arithmetic must not stand in the function that makes the object, or the compiler may move it
// across.
class OwnFloats {
 public:
  OwnFloats();
  ~OwnFloats();
  OwnFloats(const OwnFloats&) = delete;
  OwnFloats& operator=(const OwnFloats&) = delete;

 private:
  friend class CallersFloats;
  friend std::uint32_t callers_float_control();
  SavedFloats saved_;
  OwnFloats* const outer_;
};

// Within the innermost OwnFloats, the environment that was there before it. Flags that are raised
// meanwhile stay raised in it. Nothing happens outside an OwnFloats.
class CallersFloats {
 public:
  CallersFloats();
  ~CallersFloats();
  CallersFloats(const CallersFloats&) = delete;
  CallersFloats& operator=(const CallersFloats&) = delete;

 private:
  OwnFloats* const within_;
};

// The control bits of the caller's environment that matter to sums of floats, at most 16: rounding,
// treatment of subnormal numbers, traps. They are kDefaultFloatControl where the program changed
// nothing.
std::uint32_t callers_float_control();
extern const std::uint32_t kDefaultFloatControl;

}  // namespace slimpi
