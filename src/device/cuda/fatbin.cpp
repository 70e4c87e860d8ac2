// SPDX-License-Identifier: BSD-3-Clause
#include "device/cuda/fatbin.h"

// The files are in the build directory, where the assembler searches for them.
#define SLIMPI_IMAGE(name)                                           \
  __asm__(".section .rodata\n.balign 64\nslimpi_image_" #name        \
          ":\n"                                                      \
          ".incbin \"kernels/cuda/" #name ".fatbin\"\n.previous\n"); \
  extern "C" __attribute__((visibility("hidden"))) const unsigned char slimpi_image_##name[];

SLIMPI_IMAGE(encode)
SLIMPI_IMAGE(sum)
SLIMPI_IMAGE(decode)
SLIMPI_IMAGE(packed)
SLIMPI_IMAGE(plain)

namespace slimpi::device::cuda {

const void* image_of(Module module) {
  // In the order of the enumerators.
  static constexpr const void* kImages[] = {slimpi_image_encode, slimpi_image_sum,
                                            slimpi_image_decode, slimpi_image_packed,
                                            slimpi_image_plain};
  return kImages[int(module)];
}

}  // namespace slimpi::device::cuda
