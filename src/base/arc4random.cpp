// SPDX-License-Identifier: BSD-3-Clause
// The static libstdc++ of g++ 12 and later refers to arc4random in std::random_device, which slimpi
// does not use but cannot leave out. The C library has that function since glibc 2.36 only, so each
// part that links libstdc++ statically has one of its own, and loads where glibc is older.
#include <unistd.h>

#include <cstdint>
#include <cstdlib>

extern "C" [[gnu::visibility("hidden")]] std::uint32_t arc4random() noexcept {
  std::uint32_t value = 0;
  if (getentropy(&value, sizeof value) != 0) std::abort();
  return value;
}
