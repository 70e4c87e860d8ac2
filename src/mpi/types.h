// SPDX-License-Identifier: BSD-3-Clause
// MPI's types, of whatever MPI the process has: slimpi is built without one. A handle is a machine
// word, an int of MPICH's as well as a pointer of the others'. What else differs is in mpi/abi.h.
#pragma once
#include <cstdint>

namespace slimpi::mpi {

using Word = std::uintptr_t;

// In a word, a 32-bit handle has an upper half of zeros. Handles from the program: see cut() in
// mpi/abi.h. MPI writes only the lower half of a word that it gets the address of, so every word
// has to have a value before, for example that of the null handle.
enum class Comm : Word {};
enum class Datatype : Word {};
enum class Errhandler : Word {};
enum class Group : Word {};
enum class Info : Word {};
enum class Op : Word {};
enum class Request : Word {};

using Aint = std::intptr_t;
using Count = std::int64_t;

// The callbacks of MPI_Comm_create_keyval. MPI passes the communicator as its own handle, uncut.
using CopyAttribute = int(Comm, int keyval, void* extra, void* value, void* copy, int* copies);
using DeleteAttribute = int(Comm, int keyval, void* value, void* extra);

// The same in every MPI.
constexpr int kSuccess = 0, kErrCount = 2, kUndefined = -32766;

// Room for the longest text of any MPI: MPI_MAX_ERROR_STRING and so on, with the final zero byte.
constexpr int kErrorText = 1025, kLibraryVersion = 8193, kObjectName = 129, kInfoKey = 257,
              kInfoValue = 1025;

}  // namespace slimpi::mpi
