// SPDX-License-Identifier: BSD-3-Clause
// Nonblocking and persistent calls that MPI makes on copies of buffers, because MPI cannot take the
// buffers. The program holds MPI's own request. The input is copied when the call begins, or, for a
// persistent call, at each start. The function that completes the request copies the result.
#include "call/staged_requests.h"

#include <atomic>
#include <cstdint>
#include <functional>
#include <list>
#include <mutex>

#include "base/exceptions.h"
#include "base/fiber.h"
#include "call/entry.h"
#include "call/nonblocking.h"
#include "call/staging.h"

namespace slimpi::call {

namespace {

struct StagedRequest {
  StagedRequest(Runtime& runtime, const Request& request, bool its_persistent)
      : call(runtime, request), comm(request.comm), persistent(its_persistent) {}

  StagedCall call;
  const mpi::Comm comm;
  const bool persistent;
  bool started = false;  // the result must be copied when it is there
  mpi::Request handle = mpi::abi.request_null;
  std::uint64_t number = 0;
};

// All staged requests of the process. A request that runs counts as a sum in flight, so that slimpi
// sees its completion.
//
// The mutex is not held while buffers are copied, because the wait for a copy enters fibers, whose
// hooks may complete other requests. MPI lets no second thread use the request meanwhile.
struct StagedRequests {
  std::mutex mutex;
  std::list<StagedRequest> list;
};
StagedRequests& staged_requests() {
  static auto* const requests = new StagedRequests;
  return *requests;
}
std::atomic<int> g_count{0};

std::uint64_t g_last_number = 0;  // the caller holds the mutex

// Returns the request for which same() is true; null if there is none. The caller holds the mutex.
template <typename Same>
StagedRequest* find(const Same& same) {
  for (StagedRequest& one : staged_requests().list)
    if (same(one)) return &one;
  return nullptr;
}
StagedRequest* find_number(std::uint64_t number) {
  return find([&](const StagedRequest& one) { return one.number == number; });
}

// Notes whether the request runs. While it runs, it counts as a fiber in flight: otherwise the
// functions that complete requests would not look for it. The caller holds the mutex.
void set_started(StagedRequest& one, bool started) {
  if (one.started == started) return;
  one.started = started;
  count_fibers(started ? 1 : -1, &enter_fibers);
}

// Removes a request whose copies MPI does not use any more. The caller holds the mutex.
void remove(StagedRequest* gone) {
  set_started(*gone, false);
  staged_requests().list.remove_if([&](const StagedRequest& one) { return &one == gone; });
  --g_count;
}

}  // namespace

int begin_staged(const Request& request, void* handle, bool persistent,
                 const std::function<int(const Request&)>& next) {
  Runtime* const runtime = Runtime::started();
  if (runtime == nullptr || runtime->finished.load(std::memory_order_relaxed)) return next(request);
  std::list<StagedRequest> made_list;  // the element moves without an allocation
  StagedRequest* made = nullptr;
  const Status status = caught([&] {
    made = &made_list.emplace_back(*runtime, request, persistent);
    if (!made->call.needed()) return Status::ok;
    SLIMPI_TRY(made->call.open());
    return persistent ? Status::ok : made->call.bring_in();
  });
  if (status != Status::ok) return runtime->errors.raise(request.comm, status);
  if (!made->call.needed()) return next(request);
  const int code = programs_code([&] { return next(made->call.copy()); });
  if (code != mpi::kSuccess) return code;
  made->handle = mpi::read<mpi::Request>(handle);
  // If the call is complete at once, its handle identifies nothing: MPI may use one handle for all
  // calls of this kind.
  int done = 0;
  if (!persistent) runtime->api.Request_get_status(made->handle, &done, mpi::abi.status_ignore);
  if (done != 0) {
    made->call.count();
    const Status brought = made->call.bring_back();
    return brought == Status::ok ? code : runtime->errors.raise(request.comm, brought);
  }
  const std::lock_guard lock(staged_requests().mutex);
  made->number = ++g_last_number;
  staged_requests().list.splice(staged_requests().list.end(), made_list);
  ++g_count;
  set_started(*made, !persistent);
  return code;
}

std::uint64_t staged_number(mpi::Request handle) {
  if (g_count.load(std::memory_order_acquire) == 0 || handle == mpi::abi.request_null) return 0;
  const std::lock_guard lock(staged_requests().mutex);
  const StagedRequest* const found =
      find([&](const StagedRequest& one) { return one.handle == handle; });
  return found == nullptr ? 0 : found->number;
}

int start_staged(std::uint64_t number) {
  if (number == 0) return mpi::kSuccess;
  std::unique_lock lock(staged_requests().mutex);
  StagedRequest* const found = find_number(number);
  if (found == nullptr) return mpi::kSuccess;
  lock.unlock();
  const Status status = found->call.bring_in();
  lock.lock();
  set_started(*found, status == Status::ok);
  lock.unlock();
  return status == Status::ok ? mpi::kSuccess
                              : Runtime::started()->errors.raise(found->comm, status);
}

int finish_staged(std::uint64_t number, Finish how) {
  if (number == 0) return mpi::kSuccess;
  std::unique_lock lock(staged_requests().mutex);
  StagedRequest* const found = find_number(number);
  if (found == nullptr || (how == Finish::unsure && !found->persistent)) return mpi::kSuccess;
  const mpi::Comm comm = found->comm;
  Status status = Status::ok;
  if (found->started) {
    lock.unlock();
    status = found->call.bring_back();
    found->call.count();
    lock.lock();
  }
  if (how != Finish::unsure) set_started(*found, false);
  if (how == Finish::ends && !found->persistent) remove(found);
  lock.unlock();
  return status == Status::ok ? mpi::kSuccess : Runtime::started()->errors.raise(comm, status);
}

// Drops a request. If a program frees the request of a nonblocking sum, that is an error, and MPI
// may still use the copies. So these copies are kept.
void free_staged(std::uint64_t number) {
  if (number == 0) return;
  const std::lock_guard lock(staged_requests().mutex);
  StagedRequest* const found = find_number(number);
  if (found == nullptr) return;
  if (found->persistent)
    remove(found);
  else
    found->handle = mpi::abi.request_null;
}

void abandon_staged() {
  const std::lock_guard lock(staged_requests().mutex);
  for (StagedRequest& one : staged_requests().list) one.handle = mpi::abi.request_null;
}

}  // namespace slimpi::call
