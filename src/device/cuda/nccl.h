// SPDX-License-Identifier: BSD-3-Clause
// The functions of NCCL that slimpi uses, found by name in the library that the process has loaded
// or can load. The declarations are slimpi's own, so that slimpi can be built without NCCL's header
// and library. Where the header is installed, nccl.cpp compares the declarations with it.
#pragma once
#include <cuda.h>

#include <climits>
#include <cstddef>

#include "device/cuda/driver.h"

namespace slimpi::device::cuda {

// The types of the functions below, by NCCL's ABI.
struct NcclTypes {
  using Result = int;
  using DataType = int;
  using Comm = struct NcclComm*;
  struct Id {
    char bytes[128];
  };
  // The configuration of NCCL 2.14, the first version with a configuration. It contains its size
  // and version, so later versions accept it and fill in the rest.
  struct Config {
    std::size_t size = sizeof(Config);
    unsigned magic = 0xcafebeef;
    unsigned version = 21400;
    int blocking = 0;
    int unused = INT_MIN;
  };
};

constexpr int kNcclSuccess = 0, kNcclInProgress = 7;  // of ncclResult_t
constexpr int kNcclBytes = 1;                         // ncclUint8

// Each function as X(name, result, arguments...), with the types of NcclFunctions.
#define SLIMPI_NCCL_FUNCTIONS(X)                                               \
  X(ncclGetVersion, Result, int*)                                              \
  X(ncclGetUniqueId, Result, Id*)                                              \
  X(ncclCommInitRankConfig, Result, Comm*, int, Id, int, Config*)              \
  X(ncclCommGetAsyncError, Result, Comm, Result*)                              \
  X(ncclCommFinalize, Result, Comm)                                            \
  X(ncclCommDestroy, Result, Comm)                                             \
  X(ncclCommAbort, Result, Comm)                                               \
  X(ncclGroupStart, Result)                                                    \
  X(ncclGroupEnd, Result)                                                      \
  X(ncclSend, Result, const void*, std::size_t, DataType, int, Comm, CUstream) \
  X(ncclRecv, Result, void*, std::size_t, DataType, int, Comm, CUstream)       \
  X(ncclGetErrorString, const char*, Result)                                   \
  X(ncclGetLastError, const char*, Comm)

template <typename Types>
struct NcclFunctions {
  using Result = typename Types::Result;
  using DataType = typename Types::DataType;
  using Comm = typename Types::Comm;
  using Id = typename Types::Id;
  using Config = typename Types::Config;
#define SLIMPI_NCCL_MEMBER(name, result, ...) result (*name)(__VA_ARGS__) = nullptr;
  SLIMPI_NCCL_FUNCTIONS(SLIMPI_NCCL_MEMBER)
#undef SLIMPI_NCCL_MEMBER
};

using Nccl = NcclFunctions<NcclTypes>;

}  // namespace slimpi::device::cuda
