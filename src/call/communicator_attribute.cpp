// SPDX-License-Identifier: BSD-3-Clause
#include "call/communicator_attribute.h"

#include <algorithm>
#include <atomic>
#include <memory>
#include <span>
#include <utility>

#include "base/exceptions.h"
#include "call/entry.h"
#include "call/held.h"
#include "call/queue.h"
#include "call/runtime.h"
#include "comm/waiter.h"
#include "mpi/internal_comm.h"

namespace slimpi::call {

// Keeps keyval_ from being freed while a thread uses it.
class Registry::Pin {
 public:
  explicit Pin(Registry& registry) : registry_(registry) {
    const std::lock_guard lock(registry.mutex_);
    ++registry.pins_;
    keyval = registry.keyval_;
  }
  ~Pin() { registry_.unpin(); }
  Pin(const Pin&) = delete;
  Pin& operator=(const Pin&) = delete;

  int keyval = mpi::abi.keyval_invalid;

 private:
  Registry& registry_;
};

comm::Communicator* Registry::find_or_follow(mpi::Comm comm, std::optional<int>* raised) {
  // The last communicator that this thread used, which is valid as long as generation_ has not
  // changed: MPI calls forget(), which increments generation_, before it reuses a handle.
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

// Invalidates everything that is remembered under a communicator's handle, here and by each thread
// in find_or_follow(), because MPI may give the handle to another communicator.
void Registry::handles_end() {
  for (auto& comm : refused_types) comm.store(mpi::Comm(), std::memory_order_relaxed);
  generation_.fetch_add(1, std::memory_order_release);
}

comm::Communicator* Registry::find(mpi::Comm comm) {
  const std::lock_guard lock(mutex_);
  const auto found = std::find_if(followed_.begin(), followed_.end(),
                                  [&](const auto* known) { return known->user() == comm; });
  return found == followed_.end() ? nullptr : *found;
}

mpi::Comm Registry::largest() {
  const std::lock_guard lock(mutex_);
  mpi::Comm found = mpi::abi.comm_null;
  int most = 0;
  for (const comm::Communicator* known : followed_)
    if (!known->freed() && known->size() > most) {
      found = known->user();
      most = known->size();
    }
  return found;
}

// Finds or makes the state of a communicator whose handle may be invalid. If it is, the first MPI
// call below fails, and no other call is made. Under MPICH 5 the return code alone does not show
// that: if the program's error handler is a function, the failed call returns MPI_SUCCESS, but
// leaves `known` unset.
comm::Communicator* Registry::follow(mpi::Comm comm, std::optional<int>* raised) {
  constexpr int kUnset = -1;
  const Pin pin(*this);
  int keyval = pin.keyval;
  comm::Communicator* found = nullptr;
  int known = kUnset;
  const int code = keyval != mpi::abi.keyval_invalid
                       ? runtime_.api.Comm_get_attr(comm, keyval, &found, &known)
                       : runtime_.api.Comm_test_inter(comm, &known);
  if (code != mpi::kSuccess || known == kUnset) {
    if (raised != nullptr) *raised = code;
    return nullptr;
  }
  if (keyval != mpi::abi.keyval_invalid && known != 0) return found;
  if (mpi::is_thread_comm(comm)) return nullptr;

  drop_late();
  auto made = std::make_unique<comm::Communicator>(runtime_.api, runtime_.statistics,
                                                   runtime_.config, comm);
  if (!runtime_.has_world) runtime_.add_session(*made);
  made->spans_other_world = runtime_.has_world && mpi::spans_other_world(runtime_.api, comm);
  {
    const std::lock_guard lock(mutex_);
    followed_.insert(made.get());
  }
  if (make_keyval(&keyval) &&
      runtime_.api.Comm_set_attr(comm, keyval, made.get()) == mpi::kSuccess)
    return made.release();  // the attribute owns it
  {
    const std::lock_guard lock(mutex_);
    followed_.erase(made.get());
  }
  // The other ranks may have attached theirs, and would wait in slimpi for this rank.
  if (made->has_peers())
    runtime_.errors.end_job(comm, "MPI cannot attach slimpi's data to a communicator");
  return nullptr;
}

// Makes keyval_ unless another thread has just made it. The caller holds a Pin.
bool Registry::make_keyval(int* keyval) {
  if (*keyval != mpi::abi.keyval_invalid) return true;
  int made = mpi::abi.keyval_invalid;
  if (runtime_.api.Comm_create_keyval(&mpi::copy_no_attribute, &Registry::forget, &made, this) !=
      mpi::kSuccess)
    return false;
  {
    const std::lock_guard lock(mutex_);
    if (keyval_ == mpi::abi.keyval_invalid) std::swap(keyval_, made);
    *keyval = keyval_;
  }
  if (made != mpi::abi.keyval_invalid) runtime_.api.Comm_free_keyval(&made);
  return true;
}

// Undoes a pin. The last user of the keyval frees it.
void Registry::unpin() {
  int unused = mpi::abi.keyval_invalid;
  {
    const std::lock_guard lock(mutex_);
    if (--pins_ == 0 && followed_.empty() && late_.empty()) std::swap(keyval_, unused);
  }
  if (unused != mpi::abi.keyval_invalid) runtime_.api.Comm_free_keyval(&unused);
}

int Registry::forget(mpi::Comm comm, int, void* value, void* self) {
  auto* const registry = static_cast<Registry*>(self);
  auto* const communicator = static_cast<comm::Communicator*>(value);
  // If requests are pending, MPI frees a communicator only when the last of them completes, long
  // after the program's free has returned. forget() is then called in the middle of another MPI
  // call, where no MPI function may be called.
  const bool late = !registry->abandoned_ && !Freeing::is_freeing(comm);
  registry->handles_end();
  {
    const std::lock_guard lock(registry->mutex_);
    auto node = registry->followed_.extract(communicator);
    if (node.empty()) return mpi::kSuccess;
    if (late) {
      registry->late_.insert(std::move(node));
      registry->has_late_ = true;
      return mpi::kSuccess;
    }
    ++registry->pins_;
  }
  registry->drop(communicator);
  return mpi::kSuccess;
}

// Drops a state. The caller has incremented pins_, and this function calls unpin().
void Registry::drop(comm::Communicator* communicator) {
  wait_for_sums(*communicator);  // for a free that was not intercepted
  mpi::Comm report = runtime_.report.release(*communicator);
  (void)caught([&] {
    if (runtime_.finished)
      communicator->abandon();
    else if (report != mpi::abi.comm_null)
      runtime_.api.Comm_free(&report);
    delete communicator;
  });
  unpin();
}

void Registry::drop_late() {
  while (has_late_.load(std::memory_order_relaxed) && !runtime_.finished) {
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

bool Registry::wait_for_finalize(const std::function<std::optional<bool>()>& meet) {
  struct End {
    comm::Communicator* communicator;
    int word = 0;
    mpi::Request request = mpi::abi.request_null;
  };
  std::vector<std::unique_ptr<End>> ends;  // MPI writes to them until their requests are complete
  {
    const std::lock_guard lock(mutex_);
    for (comm::Communicator* communicator : followed_)
      if (!communicator->freed()) ends.push_back(std::make_unique<End>(End{communicator}));
  }
  for (auto& end : ends) end->communicator->begin_end(&end->word, &end->request);
  for (comm::Waiter waiter(comm::Waiter::Poll::mpi);; waiter.rest()) {
    std::erase_if(ends, [&](std::unique_ptr<End>& end) {
      int done = 1;
      if (end->request == mpi::abi.request_null ||
          runtime_.api.Test(&end->request, &done, mpi::abi.status_ignore) != mpi::kSuccess ||
          done != 0)
        return true;
      if (end->communicator->serve_end()) return false;
      (void)end.release();
      return true;
    });
    const std::optional<bool> all = meet ? meet() : true;
    if (all == true && ends.empty()) return true;
    if (all == false) break;
  }
  for (auto& end : ends) (void)end.release();
  return false;
}

void Registry::abandon(bool mpi_works) {
  const std::lock_guard lock(mutex_);
  followed_.merge(late_);
  has_late_ = false;
  abandoned_ = true;
  for (comm::Communicator* communicator : followed_) {
    if (mpi_works) communicator->exchange().drain_roll_call();
    communicator->abandon();
  }
}

namespace {
// The innermost Freeing of this thread. MPI calls delete callbacks in the thread that frees the
// communicator.
thread_local const Freeing* t_innermost = nullptr;
}  // namespace

// Objects of a thread nest, because a delete callback may free another communicator.
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

void wait_for_sums_on(mpi::Comm comm) {
  if (!sums_in_flight() || Fiber::inside()) return;
  Runtime* const runtime = Runtime::started();
  if (comm::Communicator* const communicator = runtime->communicators.find(comm);
      communicator != nullptr)
    wait_for_sums(*communicator);
}

void finish_on(mpi::Comm comm) {
  Runtime* const runtime = Runtime::started();
  if (runtime == nullptr || Fiber::inside()) return;
  runtime->communicators.drop_late();
  comm::Communicator* const communicator = runtime->communicators.find(comm);
  if (communicator == nullptr) return;
  wait_for_sums(*communicator);
  communicator->finish_refusals();
  (void)caught([&] { runtime->report.collect(*communicator); });
  communicator->set_freed();
}

// Detection of the end of MPI in a process that continues: the last session has been finalized, and
// MPI_COMM_WORLD is not in use. MPI has then forgotten communicators, keyvals, error classes and
// codes, and everything else, and the next session starts MPI anew.

namespace {
std::atomic<int> g_open{0}, g_seen{0};
}  // namespace

Finalizing::Finalizing() {
  if (Runtime* const runtime = Runtime::started(); runtime != nullptr)
    (void)caught([&] { runtime->communicators.drop_late(); });
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

void world_closed() {
  if (g_open == 0) abandon_requests(true);
}

int sessions_seen() {
  return g_seen;
}

void Registry::mpi_ended() {
  std::set<comm::Communicator*> never_freed;
  handles_end();
  {
    const std::lock_guard lock(mutex_);
    never_freed.swap(followed_);
    never_freed.merge(late_);
    has_late_ = false;
    keyval_ = mpi::abi.keyval_invalid;
  }
  for (comm::Communicator* communicator : never_freed) {
    communicator->abandon();
    delete communicator;
  }
}

}  // namespace slimpi::call
