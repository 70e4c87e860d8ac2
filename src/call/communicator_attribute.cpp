// SPDX-License-Identifier: BSD-3-Clause
// Which communicators slimpi follows. An attribute on each one holds its state, and the attribute's
// delete callback reports its end. The keyval exists only while a communicator is followed: a
// keyval ends with MPI, and a program with sessions may start MPI again.
#include "call/communicator_attribute.h"

#include <algorithm>
#include <atomic>
#include <memory>
#include <span>
#include <utility>

#include "base/exceptions.h"
#include "call/nonblocking.h"
#include "call/persistent.h"
#include "call/runtime.h"
#include "call/staged_requests.h"
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

  int keyval = mpi::abi.keyval_invalid;

 private:
  Runtime& runtime_;
};

comm::Communicator* Runtime::find(mpi::Comm comm, std::optional<int>* raised) {
  // The last communicator that this thread used. A handle is not reused before generation_ is
  // incremented.
  thread_local mpi::Comm last_comm{};
  thread_local std::uint64_t last_generation = 0;
  thread_local comm::Communicator* last = nullptr;
  if (comm == mpi::abi.comm_null || Freeing::is_freeing(comm)) return nullptr;
  const std::uint64_t generation = generation_.load(std::memory_order_acquire);
  if (comm == last_comm && generation == last_generation) return last;

  comm::Communicator* const found = follow(comm, raised);
  if (found == nullptr) return nullptr;
  last_comm = comm;
  last_generation = generation;
  last = found;
  return found;
}

// What was kept by the handle of a communicator is not looked up any more.
void Runtime::handles_end() {
  for (auto& comm : refused_types) comm.store(mpi::Comm(), std::memory_order_relaxed);
  generation_.fetch_add(1, std::memory_order_release);
}

comm::Communicator* Runtime::find_made(mpi::Comm comm) {
  const std::lock_guard lock(mutex_);
  const auto found = std::find_if(communicators_.begin(), communicators_.end(),
                                  [&](const auto* known) { return known->user() == comm; });
  return found == communicators_.end() ? nullptr : *found;
}

// An invalid handle is passed to exactly one MPI call, the first one here. MPICH 5 returns
// MPI_SUCCESS from a call whose error handler was a function of the program and ran; the output of
// that call then stays unset.
comm::Communicator* Runtime::follow(mpi::Comm comm, std::optional<int>* raised) {
  constexpr int kUnset = -1;
  const Pin pin(*this);
  int keyval = pin.keyval;
  comm::Communicator* found = nullptr;
  int known = kUnset;
  const int code = keyval != mpi::abi.keyval_invalid
                       ? api.Comm_get_attr(comm, keyval, &found, &known)
                       : api.Comm_test_inter(comm, &known);
  if (code != mpi::kSuccess || known == kUnset) {
    if (raised != nullptr) *raised = code;
    return nullptr;
  }
  if (keyval != mpi::abi.keyval_invalid && known != 0) return found;

  drop_late();
  auto made = std::make_unique<comm::Communicator>(api, statistics, config, comm);
  if (!world_) add_session(*made);
  made->spans_other_world = world_ && mpi::spans_other_world(api, comm);
  if (!make_keyval(&keyval)) return nullptr;
  {
    const std::lock_guard lock(mutex_);
    communicators_.insert(made.get());
  }
  if (api.Comm_set_attr(comm, keyval, made.get()) != mpi::kSuccess) {
    const std::lock_guard lock(mutex_);
    communicators_.erase(made.get());
    return nullptr;
  }
  return made.release();  // the attribute owns it
}

// Makes keyval_ unless another thread was faster. The caller holds a pin.
bool Runtime::make_keyval(int* keyval) {
  if (*keyval != mpi::abi.keyval_invalid) return true;
  int made = mpi::abi.keyval_invalid;
  if (api.Comm_create_keyval(&mpi::copy_no_attribute, &Runtime::forget, &made, this) !=
      mpi::kSuccess)
    return false;
  {
    const std::lock_guard lock(mutex_);
    if (keyval_ == mpi::abi.keyval_invalid) std::swap(keyval_, made);
    *keyval = keyval_;
  }
  if (made != mpi::abi.keyval_invalid) api.Comm_free_keyval(&made);
  return true;
}

// Decrements pins_. The last user of the keyval frees it.
void Runtime::unpin() {
  int unused = mpi::abi.keyval_invalid;
  {
    const std::lock_guard lock(mutex_);
    if (--pins_ == 0 && communicators_.empty() && late_.empty()) std::swap(keyval_, unused);
  }
  if (unused != mpi::abi.keyval_invalid) api.Comm_free_keyval(&unused);
}

int Runtime::forget(mpi::Comm comm, int, void* value, void* self) {
  auto* const runtime = static_cast<Runtime*>(self);
  auto* const communicator = static_cast<comm::Communicator*>(value);
  // MPI may free the communicator later than the program, when a request of it is complete. Then it
  // calls this in the middle of its progress, where nothing of MPI may be called.
  const bool late = !runtime->abandoned_ && !Freeing::is_freeing(comm);
  runtime->handles_end();
  {
    const std::lock_guard lock(runtime->mutex_);
    auto node = runtime->communicators_.extract(communicator);
    if (node.empty()) return mpi::kSuccess;
    if (late) {
      runtime->late_.insert(std::move(node));
      runtime->has_late_ = true;
      return mpi::kSuccess;
    }
    ++runtime->pins_;
  }
  runtime->drop(communicator);
  return mpi::kSuccess;
}

// With a pin, which ends.
void Runtime::drop(comm::Communicator* communicator) {
  wait_for_sums(*communicator);  // where the free was not intercepted
  mpi::Comm report = mpi::abi.comm_null;
  {
    const std::lock_guard lock(mutex_);
    if (report_owner_ == communicator) {
      report_owner_ = nullptr;
      std::swap(report, report_comm_);
    }
  }
  (void)caught([&] {
    if (finished)
      communicator->abandon();
    else if (report != mpi::abi.comm_null)
      api.Comm_free(&report);
    delete communicator;
  });
  unpin();
}

void Runtime::drop_late() {
  while (has_late_.load(std::memory_order_relaxed) && !finished) {
    std::set<comm::Communicator*>::node_type node;
    {
      const std::lock_guard lock(mutex_);
      if (!late_.empty()) node = late_.extract(late_.begin());
      has_late_ = !late_.empty();
      if (node.empty()) return;
      ++pins_;
    }
    drop(node.value());
  }
}

namespace {
// MPI calls the callbacks of a free in the thread that frees.
thread_local const Freeing* t_innermost = nullptr;
}  // namespace

// Objects nest: callbacks may free other communicators.
Freeing::Freeing(mpi::Comm comm) : comm_(comm), outer_(t_innermost) {
  t_innermost = this;
  alive_.fetch_add(1, std::memory_order_relaxed);
}

Freeing::~Freeing() {
  alive_.fetch_sub(1, std::memory_order_relaxed);
  t_innermost = outer_;
}

bool Freeing::frees(mpi::Comm comm) {
  for (const Freeing* one = t_innermost; one != nullptr; one = one->outer_)
    if (one->comm_ == comm) return true;
  return false;
}

// The end of MPI in a process that goes on. This happens when the last session is finalized and
// MPI_COMM_WORLD is not in use. MPI then forgets keyvals, error classes and codes, communicators
// and everything else, and the next session starts it again.

namespace {
std::atomic<int> g_open{0}, g_seen{0};
}  // namespace

Finalizing::Finalizing() {
  if (Runtime* const runtime = Runtime::started(); runtime != nullptr)
    (void)caught([&] { runtime->drop_late(); });
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
    never_freed.merge(late_);
    has_late_ = false;
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
  abandon_staged();
  mpi::forget_internal();
}

}  // namespace slimpi::call
