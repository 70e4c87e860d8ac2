// SPDX-License-Identifier: BSD-3-Clause
// Memory that the kernel gives to every process and that no GPU library hands out: the static data
// of the executable, the heap below the program break, the stack of the main thread. The buffers of
// most small sums lie there. Whose they are is known without a question to any driver.
#pragma once

namespace slimpi::device {

// Whether the byte at `pointer` certainly lies there. False means unknown: mapped memory, which
// large blocks of malloc() and the stacks of other threads are too, may be anybody's.
bool in_process_memory(const void* pointer);

}  // namespace slimpi::device
