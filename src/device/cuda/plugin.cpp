// SPDX-License-Identifier: BSD-3-Clause
// The slimpi-cuda plugin: the memory of NVIDIA's GPUs as a row of the device table.
#include "device/plugin.h"
#include "config.h"

#include "device/cuda/context.h"
#include "device/cuda/driver.h"
#include "device/cuda/functions.h"
#include "device/cuda/stream.h"

namespace slimpi::device::cuda {

namespace {

#ifdef WITH_NCCL
constexpr const NcclTransport* kNcclOrNull = &kNcclTransport;
#else
constexpr const NcclTransport* kNcclOrNull = nullptr;
#endif

constexpr Device kRow = {.name = "cuda",
                         .staged = true,
                         .locate = locate,
                         .allocate = allocate,
                         .release = release,
                         .open_stream = open_stream,
                         .close_stream = close_stream,
                         .copy = copy,
                         .record = record,
                         .query = query,
                         .wait_event = wait_event,
                         .kernels = cuda_kernels,
                         .bus_id = bus_id,
                         .nccl = kNcclOrNull,
                         .pin = pin,
                         .unpin = unpin,
                         // Up to this length, kernels read or write each value of a bucket once.
                         // Longer buckets take several passes, with atomics.
                         .staging_bucket = kernels::cuda::kTileElements};

}  // namespace
}  // namespace slimpi::device::cuda

extern "C" __attribute__((visibility("default"))) const slimpi::device::Device*
slimpi_device_plugin(int version, const slimpi::device::Library* library) {
  if (version != slimpi::device::kPluginVersion) return nullptr;
  return slimpi::device::cuda::open_driver(*library) ? &slimpi::device::cuda::kRow : nullptr;
}
