// SPDX-License-Identifier: BSD-3-Clause
#include "base/float_environment.h"

#include "base/call_locals.h"

namespace slimpi {

namespace {

#if defined(__SSE__)

constexpr std::uint32_t kDefaultMxcsr = 0x1f80;  // all exceptions masked
constexpr std::uint16_t kDefaultX87Control = 0x37f;

std::uint16_t x87_control() {
  std::uint16_t control;
  __asm__ volatile("fnstcw %0" : "=m"(control));
  return control;
}

void save(SavedFloats& saved) {
  saved.mxcsr = __builtin_ia32_stmxcsr();
  saved.all = x87_control() != kDefaultX87Control;
  if (saved.all) std::fegetenv(&saved.environment);
}

void set_own(const SavedFloats& saved) {
  if (saved.all) std::fesetenv(FE_DFL_ENV);
  __builtin_ia32_ldmxcsr(kDefaultMxcsr);
}

void restore(const SavedFloats& saved) {
  if (saved.all) std::fesetenv(&saved.environment);
  __builtin_ia32_ldmxcsr(saved.mxcsr);
}

#else

void save(SavedFloats& saved) {
  saved.all = true;
  std::fegetenv(&saved.environment);
}

void set_own(const SavedFloats&) {
  std::fesetenv(FE_DFL_ENV);
}

void restore(const SavedFloats& saved) {
  std::fesetenv(&saved.environment);
}

#endif

}  // namespace

OwnFloats::OwnFloats() : outer_(t_locals.floats) {
  save(saved_);
  set_own(saved_);
  t_locals.floats = this;
}

OwnFloats::~OwnFloats() {
  restore(saved_);
  t_locals.floats = outer_;
}

CallersFloats::CallersFloats() : within_(t_locals.floats) {
  if (within_ == nullptr) return;
  restore(within_->saved_);
  t_locals.floats = nullptr;
}

CallersFloats::~CallersFloats() {
  if (within_ == nullptr) return;
  save(within_->saved_);
  set_own(within_->saved_);
  t_locals.floats = within_;
}

}  // namespace slimpi
