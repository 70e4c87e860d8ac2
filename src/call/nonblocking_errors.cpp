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

// Sums that failed, until their requests are completed or freed.
std::mutex g_mutex;
std::unique_ptr<Sum> g_failed;
std::atomic<int> g_failures{0};  // how many; changes with the mutex

std::unique_ptr<Sum> take_failed(mpi::Request request) {
  if (g_failures.load(std::memory_order_acquire) == 0) return nullptr;
  const std::lock_guard lock(g_mutex);
  for (std::unique_ptr<Sum>* link = &g_failed; *link != nullptr; link = &(*link)->next_failed) {
    if ((*link)->request != request) continue;
    std::unique_ptr<Sum> found = std::move(*link);
    *link = std::move(found->next_failed);
    --g_failures;
    count_fibers(-1, &enter_fibers);
    return found;
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

void keep_failure(std::unique_ptr<Sum> sum) {
  const std::lock_guard lock(g_mutex);
  sum->next_failed = std::move(g_failed);
  g_failed = std::move(sum);
  ++g_failures;
}

void forget_failure(mpi::Request request) {
  (void)take_failed(request);
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

bool is_completing() {
  return t_completing != 0;
}

Completing::Completing(int count, const void* requests) {
  ++t_completing;
  requests_.reserve(std::size_t(count));
  for (int i = 0; i < count; ++i) requests_.push_back(mpi::read_at<mpi::Request>(requests, i));
}

Completing::~Completing() {
  --t_completing;
}

bool Completing::has_sums() const {
  return are_in_flight(requests_);
}

int Completing::raise(int code, const Completed& completed) {
  const auto index_of = [&](int i) {
    return completed.indices == nullptr ? i : completed.indices[i] - completed.base;
  };
  std::unique_ptr<Sum> failed;
  for (int i = 0; i < completed.count; ++i)
    if (const int index = index_of(i); index >= 0 && std::size_t(index) < requests_.size())
      if (std::unique_ptr<Sum> sum = take_failed(requests_[std::size_t(index)]); sum != nullptr) {
        sum->next_failed = std::move(failed);
        failed = std::move(sum);
      }
  if (failed == nullptr) return code;
  // MPI has no error, so it has not set those of the statuses.
  const bool has_statuses = completed.several && completed.statuses != nullptr &&
                            completed.statuses != mpi::abi.status_ignore;
  for (int i = 0; i < completed.count && has_statuses && code == mpi::kSuccess; ++i)
    mpi::set_error(completed.statuses, i, mpi::kSuccess);
  for (; failed != nullptr; failed = std::move(failed->next_failed)) {
    const mpi::Request request = failed->request;
    const int raised = raise_failure(*failed);
    for (int i = 0; i < completed.count && has_statuses; ++i)
      if (const int index = index_of(i); index >= 0 && std::size_t(index) < requests_.size() &&
                                         requests_[std::size_t(index)] == request)
        mpi::set_error(completed.statuses, i, raised);
    if (code == mpi::kSuccess) code = completed.several ? mpi::abi.err_in_status : raised;
  }
  return code;
}

}  // namespace slimpi::call
