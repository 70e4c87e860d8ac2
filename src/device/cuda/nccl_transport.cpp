// SPDX-License-Identifier: BSD-3-Clause
#include "device/cuda/functions.h"

#include <sched.h>

#include <chrono>
#include <cstring>
#include <new>

#include "device/cuda/nccl.h"
#include "device/cuda/stream.h"

namespace slimpi::device::cuda {

namespace {

// How long close() waits for the other processes to finalize the communicator.
constexpr auto kPatience = std::chrono::seconds(5);

struct CudaCommunicator {
  Context* context = nullptr;
  NcclTypes::Comm comm = nullptr;

  static CudaCommunicator& of(NcclCommunicator* communicator) {
    return *reinterpret_cast<CudaCommunicator*>(communicator);
  }
};

// NCCL's own threads work in the primary context of the GPU, whichever context the program uses.
Status in_primary_context(const Location& location) {
  const Current current(location);
  SLIMPI_TRY(current.status());
  CUdevice device = 0;
  unsigned flags = 0;
  int active = 0;
  CUcontext primary = nullptr;
  SLIMPI_TRY(check(driver().cuCtxGetDevice(&device), "asking for a context's GPU"));
  SLIMPI_TRY(check(driver().cuDevicePrimaryCtxGetState(device, &flags, &active),
                   "asking for a GPU's primary context"));
  if (active != 0)
    SLIMPI_TRY(check(driver().cuDevicePrimaryCtxRetain(&primary, device),
                     "opening a GPU's primary context"));
  if (primary != nullptr) (void)driver().cuDevicePrimaryCtxRelease_v2(device);
  return primary == current.context().handle
             ? Status::ok
             : failed(Status::unsupported, "a buffer is not in its GPU's primary context");
}

Status usable(const Location& location) {
  if (nccl() == nullptr) return failed(Status::unsupported, nccl_missing());
  return in_primary_context(location);
}

Status make_unique_id(const Location& location, NcclTransport::UniqueId* id) {
  const Current current(location);
  SLIMPI_TRY(current.status());
  NcclTypes::Id made{};
  static_assert(sizeof made == sizeof *id);
  SLIMPI_TRY(check_nccl(nccl()->ncclGetUniqueId(&made), nullptr, "getting NCCL's unique id"));
  std::memcpy(id, &made, sizeof made);
  return Status::ok;
}

Status create_communicator(const Location& location, const NcclTransport::UniqueId& id, int rank,
                           int size, NcclCommunicator** communicator) {
  const Current current(location);
  SLIMPI_TRY(current.status());
  auto* const made = new (std::nothrow) CudaCommunicator;
  if (made == nullptr)
    return failed(Status::no_memory, "no memory for a communicator between GPUs");
  made->context = &current.context();
  NcclTypes::Id nccl_id;
  std::memcpy(&nccl_id, &id, sizeof nccl_id);
  NcclTypes::Config config;
  const int result = nccl()->ncclCommInitRankConfig(&made->comm, size, nccl_id, rank, &config);
  if (const Status status = check_nccl(result, made->comm, "creating the NCCL communicator");
      status != Status::ok) {
    if (made->comm != nullptr) (void)nccl()->ncclCommAbort(made->comm);
    delete made;
    return status;
  }
  *communicator = reinterpret_cast<NcclCommunicator*>(made);
  return Status::ok;
}

Status queue(CudaCommunicator& communicator, const NcclTransport::Transfer* transfers, int count,
             CUstream stream) {
  for (int i = 0; i < count; ++i) {
    const NcclTransport::Transfer& transfer = transfers[i];
    const int result = transfer.out != nullptr
                           ? nccl()->ncclSend(transfer.out, transfer.bytes, kNcclBytes,
                                              transfer.peer, communicator.comm, stream)
                           : nccl()->ncclRecv(transfer.in, transfer.bytes, kNcclBytes,
                                              transfer.peer, communicator.comm, stream);
    SLIMPI_TRY(check_nccl(result, communicator.comm, "sending between GPUs"));
  }
  return Status::ok;
}

Status exchange(NcclCommunicator* communicator, const NcclTransport::Transfer* transfers, int count,
                Stream* stream) {
  CudaCommunicator& c = CudaCommunicator::of(communicator);
  CudaStream& s = CudaStream::of(stream);
  if (count == 0) return Status::ok;
  const Current current(c.context->handle);
  SLIMPI_TRY(current.status());
  begin_work(s);
  SLIMPI_TRY(check_nccl(nccl()->ncclGroupStart(), c.comm, "sending between GPUs"));
  const Status queued = queue(c, transfers, count, s.handle);
  const int ended = nccl()->ncclGroupEnd();  // also if the group is incomplete
  SLIMPI_TRY(queued);
  return check_nccl(ended, c.comm, "sending between GPUs");
}

Status ready(NcclCommunicator* communicator, bool* ready) {
  CudaCommunicator& c = CudaCommunicator::of(communicator);
  const Current current(c.context->handle);
  SLIMPI_TRY(current.status());
  int state = kNcclSuccess;
  SLIMPI_TRY(check_nccl(nccl()->ncclCommGetAsyncError(c.comm, &state), c.comm,
                        "asking for querying the NCCL communicator"));
  SLIMPI_TRY(check_nccl(state, c.comm, "the NCCL communicator"));
  *ready = state == kNcclSuccess;
  return Status::ok;
}

// NCCL frees memory that others may still read only when all processes have finalized.
bool finalize(CudaCommunicator& communicator) {
  int state = nccl()->ncclCommFinalize(communicator.comm);
  const auto end = std::chrono::steady_clock::now() + kPatience;
  while (state == kNcclInProgress && std::chrono::steady_clock::now() < end) {
    sched_yield();
    if (nccl()->ncclCommGetAsyncError(communicator.comm, &state) != kNcclSuccess) return false;
  }
  return state == kNcclSuccess;
}

// There is no caller to report a failure to.
void close(NcclCommunicator* communicator, bool in_order) {
  CudaCommunicator& c = CudaCommunicator::of(communicator);
  if (exists(*c.context)) {
    const Current current(c.context->handle);
    if (current.status() == Status::ok && in_order && finalize(c))
      (void)nccl()->ncclCommDestroy(c.comm);
    else if (current.status() == Status::ok)
      (void)nccl()->ncclCommAbort(c.comm);
  }
  delete &c;
}

}  // namespace

const NcclTransport kNcclTransport = {"NCCL",   usable, make_unique_id, create_communicator,
                                      exchange, ready,  close};

}  // namespace slimpi::device::cuda
