// SPDX-License-Identifier: BSD-3-Clause
// Nonblocking and persistent calls that MPI runs on copies of buffers that it cannot access. The
// program holds MPI's own request. The input is copied when the call begins or, for a persistent
// call, at each start. The function that completes the request copies the result back.
#include <functional>
#include <memory>
#include <utility>

#include "base/exceptions.h"
#include "call/entry.h"
#include "call/held.h"
#include "call/staging.h"

namespace slimpi::call {

namespace {

// A call that MPI runs on copies. A nonblocking call counts as in flight until MPI frees its
// request, even if MPI_Request_get_status has already copied the result back: slimpi must see MPI
// free the request, to remove it from the table before MPI reuses the handle. A persistent call
// counts while it is active.
class HeldCopy final : public Held {
 public:
  HeldCopy(Runtime& its_runtime, StagedCall its_call, bool is_persistent)
      : Held(its_runtime, its_call.copy().comm, 0, is_persistent), call(std::move(its_call)) {}

  // From now on MPI uses the copies.
  void started() override { set_in_flight(true); }

  bool is_sum() const override { return false; }
  int before_start(bool* begins) override;
  void taken_back() override { active_ = false; }
  bool completed(bool ends) override;
  bool freed() override;

  StagedCall call;

 private:
  bool active_ = !persistent;  // the program does not have the result yet
};

// Copies the input of a persistent call before MPI starts it. Does nothing if the request is
// already active: MPI is using the copies, and will refuse to start it again.
int HeldCopy::before_start(bool* begins) {
  if (!persistent || active_) return mpi::kSuccess;
  const Status status = call.bring_in();
  *begins = active_ = status == Status::ok;
  return *begins ? mpi::kSuccess : runtime.errors.raise(comm_for_errors(), status);
}

bool HeldCopy::completed(bool ends) {
  bool fails = false;
  if (active_) {
    active_ = false;
    failure.status = call.bring_back();
    call.count();
    fails = !failure.none();
    if (fails) copy_failure_text(failure.text);
  }
  if (persistent || ends) set_in_flight(false);
  return fails;
}

// A program that frees the request of a nonblocking call is in error, but MPI may still use the
// copies. So this object stays in the table, without a handle.
bool HeldCopy::freed() {
  if (!persistent) handle = mpi::abi.request_null;
  return persistent;
}

}  // namespace

int begin_staged(const Request& request, void* handle, bool persistent,
                 const std::function<int(const Request&)>& next) {
  Runtime* const runtime = Runtime::started();
  if (runtime == nullptr || runtime->finished.load(std::memory_order_relaxed)) return next(request);
  std::shared_ptr<HeldCopy> made;
  HeldRequests::Entry entry;
  const Status status = caught([&] {
    StagedCall call(*runtime, request);
    if (!call.needed()) return Status::ok;
    made = std::make_shared<HeldCopy>(*runtime, std::move(call), persistent);
    entry.push_back(made);
    SLIMPI_TRY(made->call.open());
    return persistent ? Status::ok : made->call.bring_in();
  });
  if (status != Status::ok) return runtime->errors.raise(request.comm, status);
  if (made == nullptr) return next(request);
  const int code = programs_code([&] { return next(made->call.copy()); });
  if (code != mpi::kSuccess) return code;
  made->call.accepted();
  made->handle = mpi::read<mpi::Request>(handle);
  // A call that is complete at once is finished here, because its handle does not identify it: MPI
  // may use one handle for all these calls.
  int done = 0;
  if (!persistent) runtime->api.Request_get_status(made->handle, &done, mpi::abi.status_ignore);
  if (done != 0) {
    made->call.count();
    const Status brought = made->call.bring_back();
    return brought == Status::ok ? code : runtime->errors.raise(request.comm, brought);
  }
  // MPI would call the error handler of a communicator that the program frees before the request is
  // complete by a handle that is no longer valid. A state of the communicator tells of that.
  (void)caught([&] {
    if (const auto* const known = runtime->communicators.find_or_follow(request.comm))
      made->of_comm = known->id;
  });
  HeldRequests::instance().add(entry);
  if (!persistent) made->started();
  return code;
}

}  // namespace slimpi::call
