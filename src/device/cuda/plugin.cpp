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

constexpr Device kRow = [] {
  Device row = {"cuda", true,   locate, allocate,   release,      open_stream, close_stream,
                copy,   record, query,  wait_event, cuda_kernels, bus_id,      kNcclOrNull};
  row.pin = pin;
  row.unpin = unpin;
  // One pass over a bucket reads or writes it once; longer ones take several, with atomics.
  row.staging_bucket = kernels::cuda::kTileElements;
  return row;
}();

}  // namespace
}  // namespace slimpi::device::cuda

extern "C" __attribute__((visibility("default"))) const slimpi::device::Device*
slimpi_device_plugin(int version, const slimpi::device::Library* library) {
  if (version != slimpi::device::kPluginVersion) return nullptr;
  return slimpi::device::cuda::open_driver(*library) ? &slimpi::device::cuda::kRow : nullptr;
}
