// SPDX-License-Identifier: BSD-3-Clause
// Waiting for what a device does: record an event, then poll it. With an exchange, messages make
// progress meanwhile, and the wait fails when another rank has reported a failure. A wait during a
// schedule must have one: a rank that this one waits for may wait for its messages.
#pragma once
#include <cstddef>
#include <cstdint>

#include "comm/point_to_point.h"
#include "device/device.h"

namespace slimpi::comm {

// Waits until the stream has passed `event`.
Status wait_for_event(const device::DeviceStream& on, std::uint64_t event, PointToPoint* exchange);

// What is queued on `later` from now on waits for all that is queued on `earlier`: its event
// *number.
Status hold_up(const device::Device& device, device::Stream* later, device::Stream* earlier,
               std::uint64_t* number = nullptr);

// Waits until everything queued on the stream is done.
Status synchronize(const device::DeviceStream& on, PointToPoint* exchange = nullptr);

// Queues a copy on the stream and waits for it. The trace shows it as `name`: "copy out" or "copy
// in", as seen from the device.
Status copy_and_wait(const device::DeviceStream& on, const char* name, void* to, const void* from,
                     std::size_t bytes, PointToPoint* exchange = nullptr);

}  // namespace slimpi::comm
