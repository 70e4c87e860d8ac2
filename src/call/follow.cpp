// SPDX-License-Identifier: BSD-3-Clause
// Which communicators slimpi follows. An attribute on each one holds its state, and the attribute's
// delete callback reports its end. The keyval exists only while a communicator is followed: a
// keyval ends with MPI, and a program with sessions may start MPI again.
#include <utility>

#include "call/entry.h"
#include "call/runtime.h"

namespace slimpi::call {

comm::Communicator* Runtime::find(MPI_Comm comm, std::optional<int>* raised) {
  // The last communicator that this thread used. A handle is not reused before generation_ is
  // incremented.
  thread_local MPI_Comm last_comm = MPI_COMM_NULL;
  thread_local std::uint64_t last_generation = 0;
  thread_local comm::Communicator* last = nullptr;
  if (comm == MPI_COMM_NULL || Freeing::is_freeing(Word(comm))) return nullptr;
  const std::uint64_t generation = generation_.load(std::memory_order_acquire);
  if (comm == last_comm && generation == last_generation) return last;

  comm::Communicator* const found = follow(comm, raised);
  unpin();
  if (found == nullptr) return nullptr;
  last_comm = comm;
  last_generation = generation;
  last = found;
  return found;
}

// Increments pins_, whatever it returns. An invalid handle is passed to exactly one MPI call, the
// first one here. MPICH 5 returns MPI_SUCCESS from a call whose error handler was a function of the
// program and ran; the output of that call then stays unset.
comm::Communicator* Runtime::follow(MPI_Comm comm, std::optional<int>* raised) {
  constexpr int kUnset = -1;
  int keyval = MPI_KEYVAL_INVALID;
  {
    const std::lock_guard lock(mutex_);
    ++pins_;
    keyval = keyval_;
  }
  comm::Communicator* found = nullptr;
  int known = kUnset;
  const int code = keyval != MPI_KEYVAL_INVALID ? api.Comm_get_attr(comm, keyval, &found, &known)
                                                : api.Comm_test_inter(comm, &known);
  if (code != MPI_SUCCESS || known == kUnset) {
    if (raised != nullptr) *raised = code;
    return nullptr;
  }
  if (keyval != MPI_KEYVAL_INVALID && known != 0) return found;

  int made = MPI_KEYVAL_INVALID;
  if (keyval == MPI_KEYVAL_INVALID &&
      api.Comm_create_keyval(MPI_COMM_NULL_COPY_FN, &Runtime::forget, &made, this) != MPI_SUCCESS)
    return nullptr;
  found = new comm::Communicator(api, statistics, config, comm);
  {
    const std::lock_guard lock(mutex_);
    if (keyval_ == MPI_KEYVAL_INVALID) std::swap(keyval_, made);
    keyval = keyval_;
    communicators_.insert(found);
  }
  if (made != MPI_KEYVAL_INVALID) api.Comm_free_keyval(&made);  // another thread was faster
  if (api.Comm_set_attr(comm, keyval, found) != MPI_SUCCESS) {
    {
      const std::lock_guard lock(mutex_);
      communicators_.erase(found);
    }
    delete found;
    return nullptr;
  }
  if (!world_) meet_session(*found);
  found->spans_other_world = world_ && mpi::spans_other_world(api, comm);
  return found;
}

// Decrements pins_. The last user of the keyval frees it.
void Runtime::unpin() {
  int unused = MPI_KEYVAL_INVALID;
  {
    const std::lock_guard lock(mutex_);
    if (--pins_ == 0 && communicators_.empty()) std::swap(keyval_, unused);
  }
  if (unused != MPI_KEYVAL_INVALID) api.Comm_free_keyval(&unused);
}

int Runtime::forget(MPI_Comm, int, void* value, void* self) {
  auto* const runtime = static_cast<Runtime*>(self);
  auto* const communicator = static_cast<comm::Communicator*>(value);
  MPI_Comm report = MPI_COMM_NULL;
  runtime->generation_.fetch_add(1, std::memory_order_release);
  {
    const std::lock_guard lock(runtime->mutex_);
    if (runtime->communicators_.erase(communicator) == 0) return MPI_SUCCESS;
    ++runtime->pins_;
    if (runtime->report_owner_ == communicator) {
      runtime->report_owner_ = nullptr;
      std::swap(report, runtime->report_comm_);
    }
  }
  if (runtime->finished)
    communicator->abandon();
  else if (report != MPI_COMM_NULL)
    runtime->api.Comm_free(&report);
  delete communicator;
  runtime->unpin();
  return MPI_SUCCESS;
}

}  // namespace slimpi::call
