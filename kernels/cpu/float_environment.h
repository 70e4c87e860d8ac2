// SPDX-License-Identifier: BSD-3-Clause
// Sets the floating-point environment in which the loops give the same bytes on every rank: round
// to nearest even, subnormal numbers kept, no traps. The program may run in another environment,
// which is restored afterwards. Each file that includes this header gets its own copy, because each
// is compiled for another instruction set.
#pragma once
#if !defined(__SSE__)
#include <cfenv>
#endif

namespace slimpi::kernels {
namespace {

// Sets the default environment while the object lives, then restores the caller's environment,
// flags included. The arithmetic must be in a function that is not inlined; otherwise the compiler
// may move it to before or after the object's lifetime.
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
