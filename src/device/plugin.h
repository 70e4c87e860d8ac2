// SPDX-License-Identifier: BSD-3-Clause
// The interface between libslimpi.so and a device plugin, which is a shared object that adds a row
// to the device table (device.h). A plugin uses what the library must not depend on, such as CUDA,
// and has its own copy of any other code of slimpi that it needs.
#pragma once
#include "base/status.h"
#include "device/device.h"
#include "options/option_types.h"

namespace slimpi::device {

// The version of this interface. Increase it with every change of Device, Kernels, or this file.
constexpr int kPluginVersion = 11;

// The functions of libslimpi.so that a plugin calls, because its own copies of fail() and log()
// would not reach the texts and the log of libslimpi.so.
struct Library {
  Status (*fail)(Status status, const char* text);
  void (*log)(LogLevel level, const char* text);
};

// The function that a plugin exports as "slimpi_device_plugin". slimpi calls it once; `library`
// stays valid. Returns the plugin's Device, a table of functions, or null if there is no GPU or the
// plugin has another version. A program, or a library that it links, may also export this function,
// for a device of its own.
using PluginFunction = const Device*(int version, const Library* library);
constexpr const char* kPluginSymbol = "slimpi_device_plugin";

}  // namespace slimpi::device
