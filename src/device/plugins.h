// SPDX-License-Identifier: BSD-3-Clause
// Rows of the device table that are loaded on demand: a part is looked for only once the process
// itself has loaded the library that makes it useful, such as the CUDA driver.
#pragma once
#include "base/option_types.h"

namespace slimpi::device {

// DeviceUse::none: no part is looked for from now on.
void set_device_use(DeviceUse use);

// Loads the parts whose time has come and adds their rows. To be called before owner_of() wherever
// the program may have loaded something since; costs some 50 ns when it has not. A part that is
// not installed is not missed; one that cannot be loaded is a warning.
void load_plugins();

}  // namespace slimpi::device
