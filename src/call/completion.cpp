// SPDX-License-Identifier: BSD-3-Clause
#include "call/completion.h"

#include <atomic>
#include <mutex>
#include <utility>

#include "base/exceptions.h"
#include "base/fiber.h"
#include "call/nonblocking.h"
#include "call/staged_requests.h"

namespace slimpi::call {

namespace {

thread_local int t_completing = 0;  // number of Completing objects of this thread

// The sums that failed, until their requests are completed or freed.
std::mutex g_mutex;
std::unique_ptr<Pending> g_failed;
std::atomic<int> g_failures{0};  // number of failed sums; changes with the mutex locked

// Returns the link to the failed sum with this request; null if there is none. The caller holds the
// mutex.
std::unique_ptr<Pending>* find_failed(mpi::Request handle) {
  for (std::unique_ptr<Pending>* link = &g_failed; *link != nullptr; link = &(*link)->next_failed)
    if ((*link)->handle == handle) return link;
  return nullptr;
}

// Takes the failed sum with this request; null if there is none.
std::unique_ptr<Pending> take_failed(mpi::Request handle) {
  if (g_failures.load(std::memory_order_acquire) == 0) return nullptr;
  const std::lock_guard lock(g_mutex);
  std::unique_ptr<Pending>* const link = find_failed(handle);
  if (link == nullptr) return nullptr;
  std::unique_ptr<Pending> found = std::move(*link);
  *link = std::move(found->next_failed);
  --g_failures;
  count_fibers(-1, &enter_fibers);
  return found;
}

// Says which kind of sum with this request has failed.
enum class FailedKind { none, nonblocking, persistent };
FailedKind failed_kind(mpi::Request handle) {
  if (g_failures.load(std::memory_order_acquire) == 0) return FailedKind::none;
  const std::lock_guard lock(g_mutex);
  const std::unique_ptr<Pending>* const link = find_failed(handle);
  if (link == nullptr) return FailedKind::none;
  return (*link)->decision == nullptr ? FailedKind::nonblocking : FailedKind::persistent;
}

bool has_statuses(const Completing::Completed& completed) {
  return completed.several && completed.statuses != nullptr &&
         completed.statuses != mpi::abi.status_ignore;
}

int raise_failure(Pending& sum) {
  const mpi::Comm comm = comm_for_errors(sum);
  if (sum.failure == Status::ok)
    return programs_code([&] {
      sum.runtime.api.Comm_call_errhandler(comm, sum.code);
      return sum.code;
    });
  (void)fail(sum.failure, sum.text);
  return sum.runtime.errors.raise(comm, sum.failure, sum.logging);
}

// Sets MPI_SUCCESS in the statuses: MPI sets their errors only if it returns an error.
void clear_errors(const Completing::Completed& completed) {
  for (int i = 0; i < completed.count; ++i) mpi::set_error(completed.statuses, i, mpi::kSuccess);
}

}  // namespace

mpi::Comm comm_for_errors(Runtime& runtime, mpi::Comm comm, std::uint64_t of_comm) {
  const comm::Communicator* const known = runtime.communicators.find(comm);
  return known != nullptr && known->id == of_comm ? comm : mpi::abi.comm_world;
}

mpi::Comm comm_for_errors(const Pending& sum) {
  return comm_for_errors(sum.runtime, sum.comm, sum.of_comm);
}

void keep_failure(std::unique_ptr<Pending> sum) {
  const std::lock_guard lock(g_mutex);
  sum->next_failed = std::move(g_failed);
  g_failed = std::move(sum);
  ++g_failures;
}

void forget_failure(mpi::Request handle) {
  (void)take_failed(handle);
}

bool is_completing() {
  return t_completing != 0;
}

Completing::Completing(int count, const void* handles) : array_(handles) {
  handles_.reserve(std::size_t(count));
  staged_.reserve(std::size_t(count));
  for (int i = 0; i < count; ++i) {
    handles_.push_back(mpi::read_at<mpi::Request>(handles, i));
    staged_.push_back(staged_number(handles_.back()));
  }
  ++t_completing;  // last: after an exception above, no destructor would decrement it
}

Completing::~Completing() {
  --t_completing;
}

bool Completing::has_sums() const {
  return are_in_flight(handles_);
}

// Returns the index of a completed request in handles_; -1 if it is not among them.
int Completing::index_of(const Completed& completed, int i) const {
  const int index = completed.indices == nullptr ? i : completed.indices[i] - completed.base;
  return index >= 0 && std::size_t(index) < handles_.size() ? index : -1;
}

// MPI has returned an error, maybe of another request, and has kept this one. Returns whether it is
// a persistent request that is complete. MPICH 5 may also keep a nonblocking sum that is complete:
// then its status must not say success if slimpi knows that the sum has failed.
bool Completing::completed_beside_error(int index, int code, const Completed& completed) const {
  const mpi::Request handle = handles_[std::size_t(index)];
  const FailedKind failed = failed_kind(handle);
  if (staged_[std::size_t(index)] == 0 && failed == FailedKind::none) return false;
  const bool success = code == mpi::abi.err_in_status && has_statuses(completed) &&
                       mpi::error_of(completed.statuses, index) == mpi::kSuccess;
  if (failed == FailedKind::nonblocking) {
    if (success) mpi::set_error(completed.statuses, index, mpi::abi.err_pending);
    return false;
  }
  int done = success ? 1 : 0;
  if (!success) Runtime::started()->api.Request_get_status(handle, &done, mpi::abi.status_ignore);
  return done != 0;
}

// Finishes the staged calls among the completed requests. If one of them fails, and *code is
// MPI_SUCCESS, *code becomes its error. Returns the failed sums among the requests.
std::unique_ptr<Pending> Completing::finish_completed(int* code, const Completed& completed,
                                                      bool ends) {
  std::unique_ptr<Pending> failed;
  const int mpis = *code;
  for (int i = 0; i < completed.count; ++i) {
    const int index = index_of(completed, i);
    if (index < 0) continue;
    const mpi::Request handle = handles_[std::size_t(index)];
    // After an error MPI may have completed only some of all requests.
    const bool kept = ends && mpis != mpi::kSuccess && completed.indices == nullptr &&
                      handle != mpi::abi.request_null &&
                      mpi::read_at<mpi::Request>(array_, index) == handle;
    if (kept && !completed_beside_error(index, mpis, completed)) continue;
    const Finish how = !ends ? Finish::stays : kept ? Finish::kept : Finish::ends;
    const int staged = finish_staged(staged_[std::size_t(index)], how);
    if (*code == mpi::kSuccess) *code = staged;
    if (!ends) continue;
    if (std::unique_ptr<Pending> sum = take_failed(handle); sum != nullptr) {
      sum->next_failed = std::move(failed);
      failed = std::move(sum);
    }
  }
  return failed;
}

int Completing::raise(int code, const Completed& completed, bool ends) {
  std::unique_ptr<Pending> failed = finish_completed(&code, completed, ends);
  if (failed == nullptr) return code;
  const bool statuses = has_statuses(completed);
  if (statuses && code == mpi::kSuccess) clear_errors(completed);
  for (; failed != nullptr; failed = std::move(failed->next_failed)) {
    const mpi::Request handle = failed->handle;
    const int raised = raise_failure(*failed);
    for (int i = 0; i < completed.count && statuses; ++i)
      if (const int index = index_of(completed, i);
          index >= 0 && handles_[std::size_t(index)] == handle)
        mpi::set_error(completed.statuses, i, raised);
    if (code == mpi::kSuccess) code = completed.several ? mpi::abi.err_in_status : raised;
  }
  return code;
}

}  // namespace slimpi::call
