// SPDX-License-Identifier: BSD-3-Clause
#pragma once

namespace slimpi::comm {

// What a stream of a communicator is for: kernels, copies out of a device, copies into it.
enum class StreamRole { compute, d2h, h2d };

}  // namespace slimpi::comm
