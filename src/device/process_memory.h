// SPDX-License-Identifier: BSD-3-Clause
// Memory that the kernel gives to every process and that no GPU library hands out: the static data
// of the executable, the heap below the program break, and the stack of the main thread. The
// buffers of most small sums are there, which is host memory, so no driver needs to be asked about
// them.
#pragma once

namespace slimpi::device {

// Returns true if the byte at `pointer` is certainly in the executable's static data, the heap or
// the main thread's stack. False means unknown: other memory may be a GPU's, but may also be a
// large block of malloc() or the stack of another thread.
bool in_process_memory(const void* pointer);

}  // namespace slimpi::device
