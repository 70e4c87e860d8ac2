// SPDX-License-Identifier: BSD-3-Clause
#include "call/completion.h"

#include <algorithm>
#include <functional>
#include <utility>

#include "base/exceptions.h"
#include "call/runtime.h"
#include "call/staged_requests.h"

namespace slimpi::call {

namespace {

thread_local int t_completing = 0;  // number of Completing objects of this thread

bool has_statuses(const Completing::Completed& completed) {
  return completed.several && completed.statuses != nullptr &&
         completed.statuses != mpi::abi.status_ignore;
}

int raise_failure(Held& held) {
  const mpi::Comm comm = held.comm_for_errors();
  const Failure& failure = held.failure;
  if (failure.status == Status::ok)
    return programs_code([&, code = failure.code] {
      held.runtime.api.Comm_call_errhandler(comm, code);
      return code;
    });
  return held.runtime.errors.raise(comm, fail(failure.status, failure.text), failure.logging);
}

// Sets MPI_SUCCESS in the statuses: MPI sets their errors only if it returns an error.
void clear_errors(const Completing::Completed& completed) {
  for (int i = 0; i < completed.count; ++i) mpi::set_error(completed.statuses, i, mpi::kSuccess);
}

}  // namespace

bool is_completing() {
  return t_completing != 0;
}

Completing::Completing(int count, const void* handles) : array_(handles) {
  noted_.reserve(std::size_t(count));
  for (int i = 0; i < count; ++i) {
    const auto handle = mpi::read_at<mpi::Request>(handles, i);
    noted_.push_back({handle, HeldRequests::instance().find(handle), staged_number(handle)});
  }
  ++t_completing;  // last: after an exception above, no destructor would decrement it
}

Completing::~Completing() {
  --t_completing;
}

bool Completing::has_sums() const {
  return std::any_of(noted_.begin(), noted_.end(), [](const Noted& noted) {
    return noted.held != nullptr && noted.held->runs();
  });
}

// Returns what was noted of a completed request; null if it is not among the requests.
Completing::Noted* Completing::find(const Completed& completed, int i) {
  const int index = completed.indices == nullptr ? i : completed.indices[i] - completed.base;
  return index >= 0 && std::size_t(index) < noted_.size() ? &noted_[std::size_t(index)] : nullptr;
}

// MPI has returned an error, maybe of another request, and has kept this one. Returns whether it is
// a persistent request that is complete. MPICH 5 may also keep a nonblocking sum that is complete:
// then its status must not say success if slimpi knows that the sum has failed.
bool Completing::completed_beside_error(const Noted& noted, int code,
                                        const Completed& completed) const {
  const bool failed = noted.held != nullptr && noted.held->failed();
  if (noted.staged == 0 && !failed) return false;
  const int index = int(&noted - noted_.data());
  const bool success = code == mpi::abi.err_in_status && has_statuses(completed) &&
                       mpi::error_of(completed.statuses, index) == mpi::kSuccess;
  if (failed && !noted.held->persistent) {
    if (success) mpi::set_error(completed.statuses, index, mpi::abi.err_pending);
    return false;
  }
  int done = success ? 1 : 0;
  if (!success)
    Runtime::started()->api.Request_get_status(noted.handle, &done, mpi::abi.status_ignore);
  return done != 0;
}

// Finishes the staged calls among the completed requests, and notes the sums that have failed. If
// a staged call fails, and *code is MPI_SUCCESS, *code becomes its error.
void Completing::finish_completed(int* code, const Completed& completed, bool ends) {
  const int mpis = *code;
  for (int i = 0; i < completed.count; ++i) {
    Noted* const noted = find(completed, i);
    if (noted == nullptr) continue;
    // After an error MPI may have completed only some of all requests.
    const bool kept = ends && mpis != mpi::kSuccess && completed.indices == nullptr &&
                      noted->handle != mpi::abi.request_null &&
                      mpi::read_at<mpi::Request>(array_, i) == noted->handle;
    if (kept && !completed_beside_error(*noted, mpis, completed)) continue;
    const Finish how = !ends ? Finish::stays : kept ? Finish::kept : Finish::ends;
    const int staged = finish_staged(noted->staged, how);
    if (*code == mpi::kSuccess) *code = staged;
    noted->fails = ends && noted->held != nullptr && noted->held->completed();
  }
}

int Completing::raise(int code, const Completed& completed, bool ends) {
  finish_completed(&code, completed, ends);
  if (std::none_of(noted_.begin(), noted_.end(), std::mem_fn(&Noted::fails))) return code;
  const bool statuses = has_statuses(completed);
  if (statuses && code == mpi::kSuccess) clear_errors(completed);
  for (int i = 0; i < completed.count; ++i) {
    Noted* const noted = find(completed, i);
    if (noted == nullptr || !std::exchange(noted->fails, false)) continue;
    const int raised = raise_failure(*noted->held);
    if (statuses) mpi::set_error(completed.statuses, i, raised);
    if (code == mpi::kSuccess) code = completed.several ? mpi::abi.err_in_status : raised;
  }
  return code;
}

}  // namespace slimpi::call
