// SPDX-License-Identifier: BSD-3-Clause
// What the functions that complete requests do with those of sums: they raise the errors.
#include <atomic>
#include <mutex>
#include <utility>

#include "base/exceptions.h"
#include "call/nonblocking.h"

namespace slimpi::call {

namespace {

thread_local int t_completing = 0;  // intercepted functions that this thread is in

// Sums that failed, until their requests are completed or freed. They are found by the requests:
// MPI may call the functions of a request in another thread than the one that completes it.
std::mutex g_mutex;
std::atomic<Sum*> g_failed{nullptr};  // changes with the mutex

Sum* take_failed(mpi::Request request) {
  if (g_failed.load(std::memory_order_acquire) == nullptr) return nullptr;
  const std::lock_guard lock(g_mutex);
  Sum* before = nullptr;
  for (Sum* sum = g_failed; sum != nullptr; before = std::exchange(sum, sum->next_failed)) {
    if (sum->request != request) continue;
    if (before == nullptr)
      g_failed = sum->next_failed;
    else
      before->next_failed = sum->next_failed;
    count_fibers(-1, &enter_fibers);
    return sum;
  }
  return nullptr;
}

int raise_failure(Sum& sum) {
  const mpi::Comm comm = comm_for_errors(sum.runtime, sum.comm, sum.of_comm);
  if (sum.failure == Status::ok)
    return programs_code([&] {
      sum.runtime.api.Comm_call_errhandler(comm, sum.code);
      return sum.code;
    });
  (void)fail(sum.failure, sum.text);
  return sum.runtime.raise(comm, sum.failure, sum.logs);
}

}  // namespace

mpi::Comm comm_for_errors(Runtime& runtime, mpi::Comm comm, const comm::Communicator* of_comm) {
  return runtime.find_made(comm) == of_comm ? comm : mpi::abi.comm_world;
}

void release(Sum* sum) {
  if (--sum->holders == 0) delete sum;
}

bool is_completing() {
  return t_completing != 0;
}

void keep_failure(Sum& sum) {
  if (!sum.failed()) return;
  if (sum.dropped) {
    count_fibers(-1, &enter_fibers);
    return;
  }
  ++sum.holders;
  const std::lock_guard lock(g_mutex);
  sum.next_failed = g_failed;
  g_failed = &sum;
}

void forget_failure(mpi::Request request) {
  if (Sum* const sum = take_failed(request); sum != nullptr) release(sum);
}

// MPI_Test would complete them.
bool are_complete(int count, const void* requests, int* complete) {
  const mpi::Api& api = Runtime::started()->api;
  for (; *complete < count; ++*complete) {
    int done = 0;
    mpi::MessageStatus status;
    const int code =
        api.Request_get_status(mpi::read_at<mpi::Request>(requests, *complete), &done, &status);
    if (code == mpi::kSuccess && done == 0) return false;
  }
  return true;
}

bool make_complete_request(int (&requests)[2]) {
  const mpi::Api& api = Runtime::started()->api;
  mpi::Request request = mpi::abi.request_null;
  if (api.Grequest_start([](void*, mpi::MessageStatus*) { return mpi::kSuccess; },
                         [](void*) { return mpi::kSuccess; },
                         [](void*, int) { return mpi::kSuccess; }, nullptr,
                         &request) != mpi::kSuccess)
    return false;
  requests[0] = int(mpi::Word(mpi::abi.request_null));
  requests[1] = int(mpi::Word(request));
  return api.Grequest_complete(request) == mpi::kSuccess;
}

// Without memory for the handles, errors are raised, but are in no status.
Completing::Completing(int count, const void* requests) {
  ++t_completing;
  (void)caught([&] {
    requests_.reserve(std::size_t(count));
    for (int i = 0; i < count; ++i) requests_.push_back(mpi::read_at<mpi::Request>(requests, i));
  });
}

Completing::~Completing() {
  --t_completing;
}

int Completing::raise(int code, const Completed& completed) {
  const auto index_of = [&](int i) {
    return completed.indices == nullptr ? i : completed.indices[i] - completed.base;
  };
  Sum* failed = nullptr;
  for (int i = 0; i < completed.count; ++i)
    if (const int index = index_of(i); index >= 0 && std::size_t(index) < requests_.size())
      if (Sum* const sum = take_failed(requests_[std::size_t(index)]); sum != nullptr)
        sum->next_failed = std::exchange(failed, sum);
  if (failed == nullptr) return code;
  // MPI has no error, so it has not set those of the statuses.
  const bool has_statuses = completed.several && completed.statuses != nullptr &&
                            completed.statuses != mpi::abi.status_ignore;
  for (int i = 0; i < completed.count && has_statuses && code == mpi::kSuccess; ++i)
    mpi::set_error(completed.statuses, i, mpi::kSuccess);
  while (failed != nullptr) {
    Sum* const sum = std::exchange(failed, failed->next_failed);
    const mpi::Request request = sum->request;
    const int raised = raise_failure(*sum);
    release(sum);
    for (int i = 0; i < completed.count && has_statuses; ++i)
      if (const int index = index_of(i); index >= 0 && std::size_t(index) < requests_.size() &&
                                         requests_[std::size_t(index)] == request)
        mpi::set_error(completed.statuses, i, raised);
    if (code == mpi::kSuccess) code = completed.several ? mpi::abi.err_in_status : raised;
  }
  return code;
}

}  // namespace slimpi::call
