// SPDX-License-Identifier: BSD-3-Clause
// The functions of NCCL that slimpi uses, found by name in the library that the process has loaded
// or can load. The declarations are slimpi's own, so slimpi can be built without NCCL's header and
// library. Where the header is installed, nccl.cpp compares them with it.
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
  // The configuration of NCCL 2.14, the first version that has one. Later versions accept it: it
  // has its size and version, and they fill in the rest.
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

template <typename Types>
struct NcclFunctions {
  using Result = typename Types::Result;
  using Comm = typename Types::Comm;

  Result (*ncclGetVersion)(int*) = nullptr;
  Result (*ncclGetUniqueId)(typename Types::Id*) = nullptr;
  Result (*ncclCommInitRankConfig)(Comm*, int, typename Types::Id, int,
                                   typename Types::Config*) = nullptr;
  Result (*ncclCommGetAsyncError)(Comm, Result*) = nullptr;
  Result (*ncclCommFinalize)(Comm) = nullptr;
  Result (*ncclCommDestroy)(Comm) = nullptr;
  Result (*ncclCommAbort)(Comm) = nullptr;
  Result (*ncclGroupStart)() = nullptr;
  Result (*ncclGroupEnd)() = nullptr;
  Result (*ncclSend)(const void*, std::size_t, typename Types::DataType, int, Comm,
                     CUstream) = nullptr;
  Result (*ncclRecv)(void*, std::size_t, typename Types::DataType, int, Comm, CUstream) = nullptr;
  const char* (*ncclGetErrorString)(Result) = nullptr;
  const char* (*ncclGetLastError)(Comm) = nullptr;
};

// The members of NcclFunctions by name.
#define SLIMPI_NCCL_FUNCTIONS(X) \
  X(ncclGetVersion)              \
  X(ncclGetUniqueId)             \
  X(ncclCommInitRankConfig)      \
  X(ncclCommGetAsyncError)       \
  X(ncclCommFinalize)            \
  X(ncclCommDestroy)             \
  X(ncclCommAbort)               \
  X(ncclGroupStart)              \
  X(ncclGroupEnd)                \
  X(ncclSend)                    \
  X(ncclRecv)                    \
  X(ncclGetErrorString)          \
  X(ncclGetLastError)

using Nccl = NcclFunctions<NcclTypes>;

}  // namespace slimpi::device::cuda
