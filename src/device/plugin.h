// SPDX-License-Identifier: BSD-3-Clause
// What a part and the library that loads it have to know of each other. A part is a shared object
// of its own that brings a row of the device table: it links what the library must not need, such
// as CUDA, and has its own copy of whatever else it uses.
#pragma once
#include "base/option_types.h"
#include "base/status.h"
#include "device/device.h"

namespace slimpi::device {

// Grows with every change of Device, Kernels, or what follows.
constexpr int kPluginVersion = 4;

// What the library lends to a part. A part's own fail() and log() would be heard by nobody.
struct Library {
  Status (*fail)(Status status, const char* text);
  void (*log)(LogLevel level, const char* text);
};

// A part exports this as "slimpi_device_plugin". Called once; `library` stays valid. Returns the
// row, or null when there is nothing for it here (no GPU, say) or `version` is not its own.
using PluginFunction = const Device*(int version, const Library* library);
constexpr const char* kPluginSymbol = "slimpi_device_plugin";

}  // namespace slimpi::device
