// SPDX-License-Identifier: BSD-3-Clause
// Sets the floating-point environment in which the loops produce the same bytes on every rank:
// round to nearest even, keep subnormal numbers, no traps. The program may have set another
// environment, which is restored afterwards. Every file that includes this header gets its own
// copy, because each is compiled for another instruction set.
#pragma once
#if !defined(__SSE__)
#include <cfenv>
#endif

namespace slimpi::kernels {
namespace {

// Sets the default environment for its lifetime, then restores the caller's, flags included. Do the
// arithmetic in a function that is not inlined: the compiler may move inlined arithmetic out of the
// lifetime.
class DefaultEnvironment {
 public:
#if defined(__SSE__)
  DefaultEnvironment() : saved_(__builtin_ia32_stmxcsr()) {
    __builtin_ia32_ldmxcsr(0x1f80);
  }
  ~DefaultEnvironment() {
    __builtin_ia32_ldmxcsr(saved_);
  }
#else
  DefaultEnvironment() {
    fegetenv(&saved_);
    fesetenv(FE_DFL_ENV);
  }
  ~DefaultEnvironment() {
    fesetenv(&saved_);
  }
#endif
  DefaultEnvironment(const DefaultEnvironment&) = delete;
  DefaultEnvironment& operator=(const DefaultEnvironment&) = delete;

 private:
#if defined(__SSE__)
  unsigned saved_;
#else
  fenv_t saved_;
#endif
};

}  // namespace
}  // namespace slimpi::kernels
