// SPDX-License-Identifier: BSD-3-Clause
// Rows of the device table that plugins add on demand. A plugin is searched only after the process
// itself has loaded the library that makes it useful, such as the CUDA driver.
#pragma once

namespace slimpi::device {

// No plugin for a GPU is loaded from now on: its memory is foreign (device/foreign.h).
void never_use_gpus();

// Loads the plugins whose library the process has loaded, and adds their rows; finds the libraries
// of device/foreign.h. Call it before locate() wherever the program may have loaded something
// since. If it has not, this costs a look at the loader's list: 150 instructions and two locks.
// A plugin that is not installed is ignored; one that cannot be loaded is a warning.
void load_plugins();

}  // namespace slimpi::device
