// SPDX-License-Identifier: BSD-3-Clause
// Loads plugins, which add rows to the device table. slimpi looks for a plugin only once the
// process itself has loaded the library that the plugin needs, such as the CUDA driver.
#pragma once

namespace slimpi::device {

// Keeps load_plugins() from loading plugins for GPUs, so that all GPU memory is foreign
// (foreign.h).
void never_use_gpus();

// Loads the plugins whose library the process has loaded, adds their rows, and looks for the
// libraries of device/foreign.h. Called before locate() if the program may have loaded a library
// since the last time; if there is no new one, this only asks the loader (150 instructions and two
// locks). A plugin that is not installed is ignored, and one that fails to load gives a warning.
void load_plugins();

}  // namespace slimpi::device
