// SPDX-License-Identifier: BSD-3-Clause
// The end of MPI in a process that goes on. This happens when the last session is finalized and
// MPI_COMM_WORLD is not in use. MPI then forgets keyvals, error classes and codes, communicators
// and everything else, and the next session starts it again.
#include <atomic>

#include "call/entry.h"
#include "call/nonblocking.h"
#include "call/runtime.h"
#include "mpi/internal_comm.h"

namespace slimpi::call {

namespace {
std::atomic<int> g_open{0}, g_seen{0};
}  // namespace

Finalizing::Finalizing() {
  now_ = true;
}

Finalizing::~Finalizing() {
  now_ = false;
}

void session_opened() {
  ++g_seen;
  ++g_open;
}

void session_closed() {
  if (--g_open > 0) return;
  if (Runtime* const runtime = Runtime::started();
      runtime != nullptr && !mpi::has_world(runtime->api))
    runtime->mpi_ended();
}

int sessions_seen() {
  return g_seen;
}

void Runtime::mpi_ended() {
  end_helper();
  std::set<comm::Communicator*> never_freed;
  handles_end();
  {
    const std::lock_guard lock(mutex_);
    never_freed.swap(communicators_);
    keyval_ = mpi::abi.keyval_invalid;
    report_comm_ = mpi::abi.comm_null;
    report_owner_ = nullptr;
    error_class_ = 0;
    error_codes_.fill(0);
  }
  for (comm::Communicator* communicator : never_freed) {
    communicator->abandon();
    delete communicator;
  }
  abandon_persistent();
  mpi::forget_internal();
}

}  // namespace slimpi::call
