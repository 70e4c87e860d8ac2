// SPDX-License-Identifier: BSD-3-Clause
// The memory of NVIDIA's GPUs: a row of the device table, in a part of its own.
#include "device/part.h"
#include "config.h"

#include "device/cuda/context.h"
#include "device/cuda/driver.h"
#include "device/cuda/ipc.h"
#include "device/cuda/launch.h"
#include "device/cuda/links.h"
#include "device/cuda/memory.h"
#include "device/cuda/stream.h"

namespace slimpi::device::cuda {

namespace {

#ifdef WITH_NCCL
constexpr const Links* kLinksHere = &kLinks;
#else
constexpr const Links* kLinksHere = nullptr;
#endif

constexpr Device kRow = {"cuda",       true,      owns,   allocate,  release,  open_stream,
                         close_stream, copy,      mark,   poll,      wait_for, cuda_kernels,
                         unit,         &kSharing, bus_id, kLinksHere};

}  // namespace
}  // namespace slimpi::device::cuda

extern "C" __attribute__((visibility("default"))) const slimpi::device::Device* slimpi_device_part(
    int version, const slimpi::device::Library* library) {
  if (version != slimpi::device::kPartVersion) return nullptr;
  return slimpi::device::cuda::open_driver(*library) ? &slimpi::device::cuda::kRow : nullptr;
}
