// SPDX-License-Identifier: BSD-3-Clause
#include "device/cuda/nccl.h"

#include <dlfcn.h>

#include <string>
#include <type_traits>

#include "base/plugin.h"

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
#define SLIMPI_NCCL_SAME(name)                                                                 \
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

// dlopen returns a library that the process has already loaded under this name, as PyTorch does.
bool load(Library& library) {
  void* const handle = dlopen("libnccl.so.2", RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) {
    const char* const reason = dlerror();
    library.missing = reason != nullptr ? reason : "libnccl.so.2 cannot be loaded";
    return false;
  }
#define SLIMPI_NCCL_FIND(name) \
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

// Never destroyed: its functions may be called after static objects are destroyed.
const Library& library() {
  static const Library* const once = [] {
    auto* const made = new Library;
    made->usable = load(*made);
    return made;
  }();
  return *once;
}

}  // namespace

const Nccl* nccl() {
  return library().usable ? &library().functions : nullptr;
}

const char* nccl_missing() {
  return library().missing.c_str();
}

Status check_nccl(int result, NcclTypes::Comm comm, const char* what) {
  if (result == kNcclSuccess || result == kNcclInProgress) return Status::ok;
  std::string text = std::string(what) + ": NCCL error " + std::to_string(result) + ": " +
                     library().functions.ncclGetErrorString(result);
  const char* const last = library().functions.ncclGetLastError(comm);
  if (last != nullptr && *last != '\0') text += std::string("; ") + last;
  return failed(Status::device, text);
}

}  // namespace slimpi::device::cuda
