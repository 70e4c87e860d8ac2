// SPDX-License-Identifier: BSD-3-Clause
// Nonblocking and persistent calls that MPI makes on copies of buffers that it cannot take. The
// program holds MPI's own request. The input is copied when the call begins, for a persistent one
// at each start. The result is copied by the function that completes the request.
#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "base/exceptions.h"
#include "base/fiber.h"
#include "call/nonblocking.h"
#include "call/staging.h"

namespace slimpi::call {

namespace {

struct StagedRequest {
  StagedRequest(Runtime& runtime, const Allreduce& its_call, bool its_persistent)
      : call(runtime, its_call), comm(its_call.comm), persistent(its_persistent) {}

  StagedCall call;
  const mpi::Comm comm;
  const bool persistent;
  bool started = false;  // the result is to be copied when it is there
  mpi::Request request = mpi::abi.request_null;
};

// All of the process. Each counts as a sum in flight, so that slimpi sees its completion.
struct All {
  std::mutex mutex;
  std::vector<std::unique_ptr<StagedRequest>> list;
};
All& all() {
  static auto* const everything = new All;
  return *everything;
}
std::atomic<int> g_count{0};

// With the mutex.
StagedRequest* find(mpi::Request request) {
  if (request == mpi::abi.request_null) return nullptr;
  for (const auto& one : all().list)
    if (one->request == request) return one.get();
  return nullptr;
}

// With the mutex. MPI does not use the copies any more.
void remove(const StagedRequest* gone) {
  std::erase_if(all().list, [&](const auto& one) { return one.get() == gone; });
  --g_count;
  count_fibers(-1, &enter_fibers);
}

}  // namespace

int begin_staged(const Allreduce& call, void* handle, bool persistent,
                 const std::function<int(const Allreduce&)>& next) {
  Runtime* const runtime = Runtime::started();
  if (runtime == nullptr || runtime->finished.load(std::memory_order_relaxed)) return next(call);
  std::unique_ptr<StagedRequest> made;
  const Status status = caught([&] {
    made = std::make_unique<StagedRequest>(*runtime, call, persistent);
    if (!made->call.needed()) return Status::ok;
    SLIMPI_TRY(made->call.open());
    SLIMPI_TRY(persistent ? Status::ok : made->call.bring_in());
    const std::lock_guard lock(all().mutex);
    all().list.reserve(all().list.size() + 1);
    return Status::ok;
  });
  if (status != Status::ok) return runtime->raise(call.comm, status);
  if (!made->call.needed()) return next(call);
  const int code = programs_code([&] { return next(made->call.copy()); });
  if (code != mpi::kSuccess) return code;
  made->request = mpi::read<mpi::Request>(handle);
  made->started = !persistent;
  const std::lock_guard lock(all().mutex);
  all().list.push_back(std::move(made));
  ++g_count;
  count_fibers(1, &enter_fibers);
  return code;
}

Status start_staged(mpi::Request request) {
  if (g_count.load(std::memory_order_acquire) == 0) [[likely]]
    return Status::ok;
  const std::lock_guard lock(all().mutex);
  StagedRequest* const found = find(request);
  if (found == nullptr) return Status::ok;
  found->started = true;
  return found->call.bring_in();
}

int finish_staged(mpi::Request request, bool ends) {
  if (g_count.load(std::memory_order_acquire) == 0) [[likely]]
    return mpi::kSuccess;
  std::unique_lock lock(all().mutex);
  StagedRequest* const found = find(request);
  if (found == nullptr) return mpi::kSuccess;
  const mpi::Comm comm = found->comm;
  Status status = Status::ok;
  if (std::exchange(found->started, false)) {
    status = found->call.bring_back();
    found->call.count();
  }
  if (ends && !found->persistent) remove(found);
  lock.unlock();
  return status == Status::ok ? mpi::kSuccess : Runtime::started()->raise(comm, status);
}

// Of a nonblocking sum it is an error of the program's, and MPI may still use the copies.
void free_staged(mpi::Request request) {
  if (g_count.load(std::memory_order_acquire) == 0) [[likely]]
    return;
  const std::lock_guard lock(all().mutex);
  StagedRequest* const found = find(request);
  if (found == nullptr) return;
  if (found->persistent)
    remove(found);
  else
    found->request = mpi::abi.request_null;
}

}  // namespace slimpi::call
