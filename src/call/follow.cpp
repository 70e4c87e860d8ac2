// SPDX-License-Identifier: BSD-3-Clause
// Which communicators slimpi follows: an attribute on each leads to its state, and tells of its
// end. The keyval exists only while a communicator is followed, because a keyval ends with MPI,
// which a program with sessions may start anew.
#include <utility>

#include "call/entry.h"
#include "call/runtime.h"

namespace slimpi::call {

comm::Communicator* Runtime::find(MPI_Comm comm, std::optional<int>* raised) {
  // The last one that this thread used: a handle is not reused before the generation grows.
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

// Ends with one pin more, whatever it returns. Exactly one call of MPI meets an invalid handle
// first. MPICH 5 returns MPI_SUCCESS from a call whose error handler was the program's own function
// and ran; what the call should have set then stays as it was.
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

// The last one to need the keyval gives it back.
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
