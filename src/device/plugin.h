// SPDX-License-Identifier: BSD-3-Clause
// The interface between a device plugin and the library that loads it. A plugin is a shared object
// that adds a row to the device table. It links what the library must not need, such as CUDA, and
// has its own copy of the rest of slimpi that it uses.
#pragma once
#include "base/status.h"
#include "device/device.h"
#include "options/option_types.h"

namespace slimpi::device {

// Increased with every change of Device, Kernels, or what follows.
constexpr int kPluginVersion = 11;

// Functions of the library for a plugin. The plugin's own copies of fail() and log() would have no
// effect in the library.
struct Library {
  Status (*fail)(Status status, const char* text);
  void (*log)(LogLevel level, const char* text);
};

// A plugin exports this as "slimpi_device_plugin". Called once; `library` stays valid. Returns the
// row, or null if it has nothing to add (no GPU, say) or if `version` is not its own. A program, or
// a library that it links, may export it, too: that is a device of the program's own.
using PluginFunction = const Device*(int version, const Library* library);
constexpr const char* kPluginSymbol = "slimpi_device_plugin";

}  // namespace slimpi::device
