// SPDX-License-Identifier: BSD-3-Clause
// Nonblocking and persistent calls that MPI makes on copies of buffers that it cannot access. The
// program holds MPI's own request. The input is copied when the call begins or, for a persistent
// call, at each start, and the function that completes the request copies the result back.
#include "call/staged_requests.h"

#include <atomic>
#include <cstdint>
#include <functional>
#include <list>

#include "base/exceptions.h"
#include "base/fiber.h"
#include "call/entry.h"
#include "call/nonblocking.h"
#include "call/request_list.h"
#include "call/staging.h"

namespace slimpi::call {

namespace {

struct StagedRequest {
  StagedRequest(Runtime& runtime, const Request& request, bool its_persistent)
      : call(runtime, request), comm(request.comm), persistent(its_persistent) {}

  StagedCall call;
  const mpi::Comm comm;
  const bool persistent;
  bool started = false;  // counts as a sum in flight (set_started)
  bool copied = false;   // the program has the result of this nonblocking call
  std::atomic<mpi::Request> handle = mpi::abi.request_null;
  std::uint64_t number = 0;
};

// All staged requests of the process. Their mutex is not held while buffers are copied, because the
// wait for a copy enters fibers, whose hooks may complete other requests.
RequestList<StagedRequest>& requests() {
  return RequestList<StagedRequest>::instance();
}

std::atomic<std::uint64_t> g_last_number{0};

StagedRequest* find(std::uint64_t number) {
  if (number == 0) return nullptr;
  return requests().find([&](const StagedRequest& one) { return one.number == number; });
}

// Notes whether the request counts in g_fibers: if g_fibers is 0, the functions that complete
// requests look for nothing. A nonblocking request counts until MPI frees it, also after its result
// was copied, because MPI then uses the handle again. A persistent one counts while it runs.
void set_started(StagedRequest& one, bool started) {
  if (one.started == started) return;
  one.started = started;
  count_fibers(started ? 1 : -1, &enter_fibers);
}

// Removes a request whose copies MPI does not use any more.
void remove(StagedRequest* gone) {
  set_started(*gone, false);
  (void)requests().take([&](const StagedRequest& one) { return &one == gone; });
}

}  // namespace

int begin_staged(const Request& request, void* handle, bool persistent,
                 const std::function<int(const Request&)>& next) {
  Runtime* const runtime = Runtime::started();
  if (runtime == nullptr || runtime->finished.load(std::memory_order_relaxed)) return next(request);
  std::list<StagedRequest> list;
  StagedRequest* made = nullptr;
  const Status status = caught([&] {
    made = &list.emplace_back(*runtime, request, persistent);
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
  made->number = ++g_last_number;
  requests().add(list);
  set_started(*made, !persistent);
  return code;
}

std::uint64_t staged_number(mpi::Request handle) {
  if (handle == mpi::abi.request_null) return 0;
  const StagedRequest* const found =
      requests().find([&](const StagedRequest& one) { return one.handle == handle; });
  return found == nullptr ? 0 : found->number;
}

// MPI uses the copies of a request that runs already, and refuses to start it.
int start_staged(std::uint64_t number, bool* started) {
  StagedRequest* const found = find(number);
  if (found == nullptr || found->started) return mpi::kSuccess;
  const Status status = found->call.bring_in();
  *started = status == Status::ok;
  set_started(*found, *started);
  return status == Status::ok ? mpi::kSuccess
                              : Runtime::started()->errors.raise(found->comm, status);
}

void take_back_staged(std::uint64_t number) {
  if (StagedRequest* const found = find(number); found != nullptr) set_started(*found, false);
}

int finish_staged(std::uint64_t number, Finish how) {
  StagedRequest* const found = find(number);
  if (found == nullptr || (how == Finish::kept && !found->persistent)) return mpi::kSuccess;
  const mpi::Comm comm = found->comm;
  Status status = Status::ok;
  if (found->started && !found->copied) {
    status = found->call.bring_back();
    found->call.count();
  }
  if (found->persistent) {
    set_started(*found, false);
  } else if (how == Finish::ends) {
    remove(found);
  } else {
    found->copied = true;
  }
  return status == Status::ok ? mpi::kSuccess : Runtime::started()->errors.raise(comm, status);
}

// Drops a request. If a program frees the request of a nonblocking sum, that is an error, and MPI
// may still use the copies. So these copies are kept.
void free_staged(std::uint64_t number) {
  if (StagedRequest* const found = find(number); found != nullptr && found->persistent)
    remove(found);
  else if (found != nullptr)
    found->handle = mpi::abi.request_null;
}

void abandon_staged() {
  requests().for_each([](StagedRequest& one) { one.handle = mpi::abi.request_null; });
}

}  // namespace slimpi::call
