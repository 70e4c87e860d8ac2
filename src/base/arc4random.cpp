// SPDX-License-Identifier: BSD-3-Clause
// Defines arc4random for std::random_device of the static libstdc++ of g++ 12 and later. slimpi
// does not use std::random_device, but the linker cannot leave it out. glibc has arc4random only
// since 2.36. With this definition, libraries that link libstdc++ statically also load with older
// glibc.
#include <unistd.h>

#include <cstdint>
#include <cstdlib>

extern "C" [[gnu::visibility("hidden")]] std::uint32_t arc4random() noexcept {
  std::uint32_t value = 0;
  if (getentropy(&value, sizeof value) != 0) std::abort();
  return value;
}
