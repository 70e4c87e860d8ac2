// SPDX-License-Identifier: BSD-3-Clause
// The threads that slimpi starts. They write to the program's buffers and call MPI, which may call
// functions of the program there, such as the MPI_Op of another request.
#pragma once
#include <pthread.h>

namespace slimpi {

// Starts a thread that calls run(). Its stack is as large as that of the program's main thread may
// get. The program's signal handlers do not run there, except those of faults of the thread itself,
// because the kernel ends a process that blocks the signal of its own fault. Returns false if no
// thread can be started.
bool start_thread(pthread_t* thread, void (*run)());

}  // namespace slimpi
