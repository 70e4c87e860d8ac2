// SPDX-License-Identifier: BSD-3-Clause
#include "device/cuda/nccl.h"

#include <dlfcn.h>
#include <sched.h>

#include <chrono>
#include <cstring>
#include <string>
#include <type_traits>

#include "base/plugin.h"
#include "device/cuda/functions.h"
#include "device/cuda/stream.h"

#if __has_include(<nccl.h>)
#include <nccl.h>
#define SLIMPI_NCCL_HEADER
#endif

namespace slimpi::device::cuda {

namespace {

#ifdef SLIMPI_NCCL_HEADER
struct HeaderTypes {
  using Result = ncclResult_t;
  using DataType = ncclDataType_t;
  using Comm = ncclComm_t;
  using Id = ncclUniqueId;
  using Config = ncclConfig_t;
};
#define SLIMPI_NCCL_SAME(name, ...)                                                            \
  static_assert(std::is_same_v<decltype(&::name), decltype(NcclFunctions<HeaderTypes>::name)>, \
                #name " is declared otherwise by nccl.h");
SLIMPI_NCCL_FUNCTIONS(SLIMPI_NCCL_SAME)
#undef SLIMPI_NCCL_SAME
static_assert(sizeof(ncclResult_t) == sizeof(NcclTypes::Result));
static_assert(sizeof(ncclDataType_t) == sizeof(NcclTypes::DataType));
static_assert(sizeof(ncclUniqueId) == sizeof(NcclTypes::Id));
static_assert(int(ncclSuccess) == kNcclSuccess && int(ncclInProgress) == kNcclInProgress &&
              int(ncclUint8) == kNcclBytes);
static_assert(offsetof(ncclConfig_t, magic) == offsetof(NcclTypes::Config, magic) &&
              offsetof(ncclConfig_t, version) == offsetof(NcclTypes::Config, version) &&
              offsetof(ncclConfig_t, blocking) == offsetof(NcclTypes::Config, blocking) &&
              sizeof(ncclConfig_t) >= sizeof(NcclTypes::Config));
constexpr ncclConfig_t kHeaderConfig = NCCL_CONFIG_INITIALIZER;
static_assert(kHeaderConfig.magic == NcclTypes::Config().magic &&
              kHeaderConfig.version >= NcclTypes::Config().version);
#endif

struct Library {
  Nccl functions;
  bool usable = false;
  std::string missing;
};

template <typename Function>
bool find(void* handle, const char* name, Function*& function, std::string& missing) {
  if (find_function(handle, name, function)) return true;
  missing = std::string("libnccl.so.2 is too old, it has no ") + name;
  return false;
}

// Loads NCCL. If the process has already loaded a library of this name, as PyTorch does, dlopen()
// returns that one.
bool load(Library& library) {
  void* const handle = dlopen("libnccl.so.2", RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) {
    const char* const reason = dlerror();
    library.missing = reason != nullptr ? reason : "libnccl.so.2 cannot be loaded";
    return false;
  }
#define SLIMPI_NCCL_FIND(name, ...) \
  if (!find(handle, #name, library.functions.name, library.missing)) return false;
  SLIMPI_NCCL_FUNCTIONS(SLIMPI_NCCL_FIND)
#undef SLIMPI_NCCL_FIND
  int version = 0;
  if (library.functions.ncclGetVersion(&version) == kNcclSuccess)
    log_message(LogLevel::debug, "NCCL " + std::to_string(version / 10000) + "." +
                                     std::to_string(version / 100 % 100) + "." +
                                     std::to_string(version % 100) + " is loaded");
  return true;
}

// The Library is never destroyed, because NCCL's functions may be called after static destruction.
const Library& library() {
  static const Library* const once = [] {
    auto* const made = new Library;
    made->usable = load(*made);
    return made;
  }();
  return *once;
}

// Returns NCCL's functions, and loads NCCL at the first call. Null if no suitable NCCL is
// installed, for the reason in Library::missing.
const Nccl* nccl() {
  return library().usable ? &library().functions : nullptr;
}

// Returns ok for success and for operations in progress. The text of a failure has the operation
// `what` and NCCL's error text.
Status check_nccl(int result, NcclTypes::Comm comm, const char* what) {
  if (result == kNcclSuccess || result == kNcclInProgress) return Status::ok;
  std::string text = std::string(what) + ": NCCL error " + std::to_string(result) + ": " +
                     library().functions.ncclGetErrorString(result);
  const char* const last = library().functions.ncclGetLastError(comm);
  if (last != nullptr && *last != '\0') text += std::string("; ") + last;
  return failed(Status::device, text);
}

// How long close() waits for the other processes to finalize the communicator.
constexpr auto kPatience = std::chrono::seconds(5);

struct CudaCommunicator {
  Context* context = nullptr;
  NcclTypes::Comm comm = nullptr;

  static CudaCommunicator& of(NcclCommunicator* communicator) {
    return *reinterpret_cast<CudaCommunicator*>(communicator);
  }
};

// Fails if the location is not in the primary context of its GPU. NCCL's own threads work in the
// primary context, whichever context the program uses.
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
  if (nccl() == nullptr) return failed(Status::unsupported, library().missing);
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
  auto* const made = new CudaCommunicator;
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
  const int ended = nccl()->ncclGroupEnd();  // even if queue() has failed
  SLIMPI_TRY(queued);
  return check_nccl(ended, c.comm, "sending between GPUs");
}

Status ready(NcclCommunicator* communicator, bool* ready) {
  CudaCommunicator& c = CudaCommunicator::of(communicator);
  const Current current(c.context->handle);
  SLIMPI_TRY(current.status());
  int state = kNcclSuccess;
  SLIMPI_TRY(check_nccl(nccl()->ncclCommGetAsyncError(c.comm, &state), c.comm,
                        "querying the NCCL communicator"));
  SLIMPI_TRY(check_nccl(state, c.comm, "the NCCL communicator"));
  *ready = state == kNcclSuccess;
  return Status::ok;
}

// Finalizes the communicator and waits until all processes have done so, because only then does
// NCCL free memory that other processes may still read. Returns false after kPatience or a failure.
bool finalize(CudaCommunicator& communicator) {
  int state = nccl()->ncclCommFinalize(communicator.comm);
  const auto end = std::chrono::steady_clock::now() + kPatience;
  while (state == kNcclInProgress && std::chrono::steady_clock::now() < end) {
    sched_yield();
    if (nccl()->ncclCommGetAsyncError(communicator.comm, &state) != kNcclSuccess) return false;
  }
  return state == kNcclSuccess;
}

// Ignores failures, because there is no caller to report them to.
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
