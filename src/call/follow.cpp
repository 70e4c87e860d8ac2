// SPDX-License-Identifier: BSD-3-Clause
// Which communicators slimpi follows. An attribute on each one holds its state, and the attribute's
// delete callback reports its end. The keyval exists only while a communicator is followed: a
// keyval ends with MPI, and a program with sessions may start MPI again.
#include <algorithm>
#include <memory>
#include <span>
#include <utility>

#include "base/exceptions.h"
#include "call/entry.h"
#include "call/runtime.h"
#include "mpi/internal_comm.h"

namespace slimpi::call {

// While this object lives, the thread uses keyval_, which is not freed.
class Runtime::Pin {
 public:
  explicit Pin(Runtime& runtime) : runtime_(runtime) {
    const std::lock_guard lock(runtime.mutex_);
    ++runtime.pins_;
    keyval = runtime.keyval_;
  }
  ~Pin() { runtime_.unpin(); }
  Pin(const Pin&) = delete;
  Pin& operator=(const Pin&) = delete;

  int keyval = MPI_KEYVAL_INVALID;

 private:
  Runtime& runtime_;
};

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
  if (found == nullptr) return nullptr;
  last_comm = comm;
  last_generation = generation;
  last = found;
  return found;
}

comm::Communicator* Runtime::find_made(MPI_Comm comm) {
  const std::lock_guard lock(mutex_);
  const auto found = std::find_if(communicators_.begin(), communicators_.end(),
                                  [&](const auto* known) { return known->user() == comm; });
  return found == communicators_.end() ? nullptr : *found;
}

// An invalid handle is passed to exactly one MPI call, the first one here. MPICH 5 returns
// MPI_SUCCESS from a call whose error handler was a function of the program and ran; the output of
// that call then stays unset.
comm::Communicator* Runtime::follow(MPI_Comm comm, std::optional<int>* raised) {
  constexpr int kUnset = -1;
  const Pin pin(*this);
  int keyval = pin.keyval;
  comm::Communicator* found = nullptr;
  int known = kUnset;
  const int code = keyval != MPI_KEYVAL_INVALID ? api.Comm_get_attr(comm, keyval, &found, &known)
                                                : api.Comm_test_inter(comm, &known);
  if (code != MPI_SUCCESS || known == kUnset) {
    if (raised != nullptr) *raised = code;
    return nullptr;
  }
  if (keyval != MPI_KEYVAL_INVALID && known != 0) return found;

  auto made = std::make_unique<comm::Communicator>(api, statistics, config, comm);
  if (!world_) add_session(*made);
  made->spans_other_world = world_ && mpi::spans_other_world(api, comm);
  if (!make_keyval(&keyval)) return nullptr;
  {
    const std::lock_guard lock(mutex_);
    communicators_.insert(made.get());
  }
  if (api.Comm_set_attr(comm, keyval, made.get()) != MPI_SUCCESS) {
    const std::lock_guard lock(mutex_);
    communicators_.erase(made.get());
    return nullptr;
  }
  return made.release();  // the attribute owns it
}

// Makes keyval_ unless another thread was faster. The caller holds a pin.
bool Runtime::make_keyval(int* keyval) {
  if (*keyval != MPI_KEYVAL_INVALID) return true;
  int made = MPI_KEYVAL_INVALID;
  if (api.Comm_create_keyval(MPI_COMM_NULL_COPY_FN, &Runtime::forget, &made, this) != MPI_SUCCESS)
    return false;
  {
    const std::lock_guard lock(mutex_);
    if (keyval_ == MPI_KEYVAL_INVALID) std::swap(keyval_, made);
    *keyval = keyval_;
  }
  if (made != MPI_KEYVAL_INVALID) api.Comm_free_keyval(&made);
  return true;
}

// Sets a null attribute, which is what find() returns from then on. Its keyval stays until MPI
// ends.
void Runtime::leave_alone(MPI_Comm comm) {
  const Pin pin(*this);
  int keyval = pin.keyval, inter = 1, size = 1;
  if (!make_keyval(&keyval) || api.Comm_set_attr(comm, keyval, nullptr) != MPI_SUCCESS) return;
  {
    const std::lock_guard lock(mutex_);
    ++pins_;
  }
  bool other_world = false;
  (void)caught([&] { other_world = world_ && mpi::spans_other_world(api, comm); });
  api.Comm_test_inter(comm, &inter);
  api.Comm_size(comm, &size);
  if (inter != 0 || size == 1 || other_world) return;
  mpi::decline_internal(api, comm, [this](MPI_Request& request, std::span<const int>) {
    return api.Wait(&request, MPI_STATUS_IGNORE) == MPI_SUCCESS ? Status::ok : Status::mpi;
  });
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
  (void)caught([&] {
    if (runtime->finished)
      communicator->abandon();
    else if (report != MPI_COMM_NULL)
      runtime->api.Comm_free(&report);
    delete communicator;
  });
  runtime->unpin();
  return MPI_SUCCESS;
}

}  // namespace slimpi::call
