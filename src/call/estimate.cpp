// SPDX-License-Identifier: BSD-3-Clause
#include "call/estimate.h"

#include <algorithm>
#include <new>
#include <tuple>

#include "call/admission.h"
#include "call/arguments.h"
#include "call/candidates.h"
#include "call/element_type.h"
#include "call/entry.h"
#include "call/runtime.h"
#include "mpi/internal_comm.h"
#include "observe/log.h"

namespace slimpi::call {

namespace {

const char* type_name(mpi::Datatype type) {
  const mpi::Abi& abi = mpi::abi;
  if (const std::optional<ElementType> summed = element_type(type)) return row_of(*summed).name;
  if (type == abi.type_int) return "int";
  if (type == abi.type_int64_t) return "int64";
  if (type == abi.type_uint64_t) return "uint64";
  return type == abi.type_char || type == abi.type_byte ? "byte" : "other";
}

const char* op_name(mpi::Op op) {
  const mpi::Abi& abi = mpi::abi;
  if (op == abi.op_sum) return "sum";
  return op == abi.op_max ? "max" : op == abi.op_min ? "min" : "other";
}

}  // namespace

void CallEstimate::start(const mpi::Api& api, const Config& config) {
  if (running() != nullptr) return;
  // The object is never destroyed, because exit handlers may still call MPI after static
  // destruction.
  running_.store(new CallEstimate(api, config), std::memory_order_release);
}

void CallEstimate::add(const Request& request, Key key, std::uint64_t nanoseconds) noexcept {
  mpi::Count size = 0;
  api_.Type_size_x(request.datatype, &size);
  api_.Comm_size(request.comm, &key.ranks);
  Request measured = request;
  if (request.collective != Collective::allreduce)
    count_blocks(measured, 0, ranks_with_blocks(api_, request));
  const std::uint64_t bytes =
      measured.count > 0 && size > 0 ? std::uint64_t(measured.count) * std::uint64_t(size) : 0;
  key.empty = bytes == 0;
  key.size_class = size_class_of(bytes);
  key.collective = request.collective;
  // Equal handles are equal keys, because the handles of a Request went through cut() (mpi/abi.h).
  key.type = request.datatype;
  key.op = request.op;
  try {
    const std::lock_guard lock(mutex_);
    Record& record = records_[key];
    ++record.calls;
    record.bytes += bytes;
    record.nanoseconds += nanoseconds;
  } catch (const std::bad_alloc&) {
    log_once(LogLevel::warn, "SLIMPI_ESTIMATE: no memory to count a call");
  }
}

void CallEstimate::left(const Request& request, BypassReason reason, bool blocking,
                        std::uint64_t nanoseconds) noexcept {
  if (request.comm == mpi::abi.comm_null || request.datatype == mpi::abi.datatype_null) return;
  Key key;
  key.reason = reason;
  key.blocking = blocking;
  add(request, key, nanoseconds);
}

void CallEstimate::begun(const Request& request, int nodes) noexcept {
  Key key;
  key.nodes = nodes;
  key.blocking = false;
  add(request, key, 0);
}

Estimate CallEstimate::result(const Report& job) const {
  const std::lock_guard lock(mutex_);
  Estimate estimate;
  estimate.job = job;
  estimate.bucket = bucket_;
  estimate.min_size = min_size_;
  for (const auto& [key, record] : records_) {
    CountedCalls calls;
    calls.size_class = key.size_class;
    calls.empty = key.empty;
    calls.ranks = key.ranks;
    calls.collective = key.collective;
    calls.type = type_name(key.type);
    calls.op = op_name(key.op);
    calls.blocking = key.blocking;
    calls.reason = key.reason;
    calls.calls = record.calls;
    calls.bytes = record.bytes;
    calls.nanoseconds = record.nanoseconds;
    if (const auto summed = element_type(key.type); summed && key.op == mpi::abi.op_sum)
      calls.values = record.bytes / row_of(*summed).bytes;
    const int nodes = key.nodes != 0 ? key.nodes : std::min(job.nodes, key.ranks);
    if (!calls.reason && nodes < 2)
      calls.reason = key.nodes == 0 ? BypassReason::nonblocking : BypassReason::single_node;
    calls.plain_bytes =
        double(row_of(key.collective).phases) * std::max(nodes - 1, 0) * double(record.bytes);
    estimate.counted.push_back(std::move(calls));
  }
  std::stable_sort(estimate.counted.begin(), estimate.counted.end(),
                   [](const auto& a, const auto& b) {
                     return std::tuple(a.reason.has_value(), b.size_class, a.reason) <
                            std::tuple(b.reason.has_value(), a.size_class, b.reason);
                   });
  return estimate;
}

Outcome estimate_begun(Runtime& runtime, comm::Communicator& communicator, const Request& request) {
  const bool threads = mpi::can_help(runtime.api);
  if (threads && !communicator.agreed()) prepare_calls(runtime, communicator);
  const algorithm::Decision* const decision =
      threads ? &communicator.attachment<Decisions>().find(request) : nullptr;
  if (decision == nullptr || !decision->take)
    return bypass(runtime, decision == nullptr ? BypassReason::nonblocking : decision->reason,
                  communicator, request);
  count_bypass(runtime, BypassReason::off, communicator, request);
  int nodes = communicator.layout().nodes();
  if (nodes == 0) nodes = comm::nodes_by_options(communicator.config(), communicator.size());
  CallEstimate::running()->begun(request, nodes);
  return {};  // no reason, because the call is counted already
}

void estimate_nonblocking(const Request& request, BypassReason reason) {
  if (CallEstimate* const estimate = CallEstimate::running(); estimate != nullptr)
    estimate->left(request, reason, false, 0);
}

}  // namespace slimpi::call
