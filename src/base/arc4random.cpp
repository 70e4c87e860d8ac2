// SPDX-License-Identifier: BSD-3-Clause
// Defines arc4random(), which glibc has only since 2.36. The static libstdc++ of g++ 12 and later
// needs it for std::random_device, which slimpi does not use but the linker cannot leave out. With
// this definition, libraries that link libstdc++ statically also load with older glibc.
#include <unistd.h>

#include <cstdint>
#include <cstdlib>

extern "C" [[gnu::visibility("hidden")]] std::uint32_t arc4random() noexcept {
  std::uint32_t value = 0;
  if (getentropy(&value, sizeof value) != 0) std::abort();
  return value;
}
