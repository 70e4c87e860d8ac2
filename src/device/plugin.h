// SPDX-License-Identifier: BSD-3-Clause
// The interface between a device plugin and the library that loads it. A plugin is a shared object
// that adds a row to the device table. It uses what the library must not depend on, such as CUDA,
// and has its own copy of the other code of slimpi that it needs.
#pragma once
#include "base/status.h"
#include "device/device.h"
#include "options/option_types.h"

namespace slimpi::device {

// The version of this interface. Increase it with every change of Device, Kernels, or this file.
constexpr int kPluginVersion = 11;

// The library's functions for a plugin. The plugin's own copies of fail() and log() would not reach
// the library.
struct Library {
  Status (*fail)(Status status, const char* text);
  void (*log)(LogLevel level, const char* text);
};

// The function that a plugin exports as "slimpi_device_plugin". Called once; `library` stays valid.
// Returns the row, or null if the plugin has no row (no GPU, say) or has another version. A
// program, or a library that it links, may export the function, too, for a device of its own.
using PluginFunction = const Device*(int version, const Library* library);
constexpr const char* kPluginSymbol = "slimpi_device_plugin";

}  // namespace slimpi::device
