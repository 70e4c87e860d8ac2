// SPDX-License-Identifier: BSD-3-Clause
// Persistent sums. Ranks may start those of one communicator in different orders, so each has an
// internal communicator and a state of its own, made together at MPI_Allreduce_init. The program
// holds a persistent receive of an empty message, which this process sends to itself when the sum
// is complete. So MPI completes the request, in every function that completes any.
#include <algorithm>
#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "base/activity.h"
#include "base/float_environment.h"
#include "call/element_type.h"
#include "call/estimate.h"
#include "call/nonblocking.h"
#include "call/prepared_calls.h"

namespace slimpi::call {

namespace {

struct Persistent {
  Persistent(Runtime& its_runtime, comm::Communicator& its_comm, const Allreduce& its_call,
             std::optional<DescribedTensor> its_tensor)
      : runtime(its_runtime),
        of_comm(&its_comm),
        communicator(its_runtime.api, its_runtime.statistics, its_comm.config(), its_call.comm),
        call(its_call),
        tensor(std::move(its_tensor)) {}
  Runtime& runtime;
  const comm::Communicator* const of_comm;  // of the program's; may be gone
  comm::Communicator communicator;
  const Allreduce call;
  const std::optional<DescribedTensor> tensor;
  mpi::Request request = mpi::abi.request_null;
};

// Those of the process. There are few.
struct All {
  std::mutex mutex;
  std::vector<std::unique_ptr<Persistent>> list;
};
All& all() {
  static auto* const everything = new All;
  return *everything;
}
std::atomic<int> g_count{0};

Persistent* find(mpi::Request request) {
  if (g_count.load(std::memory_order_acquire) == 0) [[likely]]
    return nullptr;
  All& known = all();
  const std::lock_guard lock(known.mutex);
  for (const auto& one : known.list)
    if (one->request == request) return one.get();
  return nullptr;
}

// The receive that the program holds matches it.
void send_to_itself(Sum& sum) {
  keep_failure(sum);
  mpi::Request sent = mpi::abi.request_null;
  const mpi::Api& api = sum.runtime.api;
  api.Isend(nullptr, 0, mpi::abi.type_char, sum.communicator.rank(), int(comm::Tag::completion),
            sum.communicator.exchange().comm(), &sent);
  api.Request_free(&sent);
}

int start(Persistent& persistent) {
  auto sum = std::make_unique<Sum>(persistent.runtime, persistent.communicator, persistent.call,
                                   persistent.tensor);
  forget_failure(persistent.request);  // of a sum whose completion slimpi did not see
  if (!Runtime::on) sum->bypass = BypassReason::off;
  if (sum->bypass)
    persistent.runtime.count_bypass(persistent.communicator, *sum->bypass, sum->call);
  sum->of_comm = persistent.of_comm;
  sum->request = persistent.request;
  sum->ended = &send_to_itself;
  return start_sum(std::move(sum), [](Sum&) { return mpi::kSuccess; });
}

}  // namespace

Outcome init_persistent(const Allreduce& request, void* handle) {
  Runtime* const runtime = Runtime::get(request.comm);
  if (runtime == nullptr || runtime->finished || Fiber::inside() || !is_float_sum(request) ||
      CallEstimate::running() != nullptr || !runtime->option_error.empty() || is_invalid(request))
    return {};
  std::optional<int> raised;
  comm::Communicator* const known = runtime->find(request.comm, &raised);
  if (raised) return Outcome::finished(*raised);
  if (known == nullptr || !has_peers(*known) || bytes_of(request) < known->config().min_size)
    return {};
  // Else the ranks find it out together, below.
  if (known->agreed() && !known->threaded()) return {};
  const OwnFloats environment;
  std::optional<DescribedTensor> tensor;
  if (takes_description(request)) tensor = DescribedTensor::take_next();
  auto made = std::make_unique<Persistent>(*runtime, *known, request, std::move(tensor));
  comm::Communicator& communicator = made->communicator;
  const Status status = meet(*runtime, communicator, request);
  if (communicator.unusable() || (status == Status::ok && !communicator.threaded())) return {};
  if (status != Status::ok) return Outcome::finished(fail_call(*runtime, communicator, status));
  if (!communicator.attachment<PreparedCalls>().find(request).decision.take) return {};
  const int code = runtime->api.Recv_init(nullptr, 0, mpi::abi.type_char, communicator.rank(),
                                          int(comm::Tag::completion),
                                          communicator.exchange().comm(), &made->request);
  if (code != mpi::kSuccess) return Outcome::finished(code);
  mpi::write(handle, made->request);
  All& others = all();
  const std::lock_guard lock(others.mutex);
  others.list.push_back(std::move(made));
  ++g_count;
  return Outcome::finished(mpi::kSuccess);
}

int start_persistent(int count, const void* requests) {
  if (g_count.load(std::memory_order_acquire) == 0) [[likely]]
    return mpi::kSuccess;
  int code = mpi::kSuccess;
  for (int i = 0; i < count && code == mpi::kSuccess; ++i)
    if (Persistent* const one = find(mpi::read_at<mpi::Request>(requests, i)); one != nullptr)
      code = start(*one);
  return code;
}

int refuse_to_cancel(const void* request) {
  Persistent* const one = find(mpi::read<mpi::Request>(request));
  if (one == nullptr) return mpi::kSuccess;
  const Status status =
      fail(Status::unsupported, "MPI_Cancel: a persistent sum cannot be cancelled");
  Runtime& runtime = one->runtime;
  return runtime.raise(comm_for_errors(runtime, one->call.comm, one->of_comm), status);
}

PersistentEnd::PersistentEnd(const void* request) {
  if (g_count.load(std::memory_order_acquire) == 0) [[likely]]
    return;
  one_ = find(mpi::read<mpi::Request>(request));
  if (one_ != nullptr) wait_for_sums(static_cast<Persistent*>(one_)->communicator);
}

PersistentEnd::~PersistentEnd() {
  if (one_ == nullptr) return;
  std::unique_ptr<Persistent> ended;
  All& others = all();
  const std::lock_guard lock(others.mutex);
  const auto found = std::find_if(others.list.begin(), others.list.end(),
                                  [&](const auto& one) { return one.get() == one_; });
  if (found == others.list.end()) return;
  ended = std::move(*found);
  others.list.erase(found);
  --g_count;
}

void abandon_persistent() {
  All& known = all();
  const std::lock_guard lock(known.mutex);
  for (const auto& one : known.list) one->communicator.abandon();
  g_count = 0;
  known.list.clear();
}

}  // namespace slimpi::call
