// SPDX-License-Identifier: BSD-3-Clause
// MPI's types for any MPI that the process may have, because slimpi is built without one. A handle
// is a machine word here, while it is an int in MPICH and a pointer in other MPIs. What differs
// among MPIs (values of constants, the size of a handle, the layout of MPI_Status) is data, known
// once the process's MPI is found.
#pragma once
#include <atomic>
#include <cstdint>
#include <cstring>

namespace slimpi::mpi {

using Word = std::uintptr_t;

// The handles. A 32-bit handle is in the lower half of its word, and the upper half is 0; cut()
// clears it in handles from the program. MPI writes only the lower half through a pointer, so each
// word must be initialized first, for example with the null handle.
enum class Comm : Word {};
enum class Datatype : Word {};
enum class Errhandler : Word {};
enum class Group : Word {};
enum class Info : Word {};
enum class Op : Word {};
enum class Request : Word {};

using Aint = std::intptr_t;
using Count = std::int64_t;

// The callbacks of MPI_Comm_create_keyval. MPICH passes the communicator as an int, so its word
// needs cut().
using CopyAttribute = int(Comm, int keyval, void* extra, void* value, void* copy, int* copies);
using DeleteAttribute = int(Comm, int keyval, void* value, void* extra);

// Constants that are the same in every MPI.
constexpr int kSuccess = 0, kErrCount = 2, kUndefined = -32766;

// The room for the longest texts of any MPI (MPI_MAX_ERROR_STRING and so on), with the final zero
// byte.
constexpr int kErrorText = 1025, kLibraryVersion = 8193, kObjectName = 129, kInfoKey = 257,
              kInfoValue = 1025;

class MessageStatus;

// A constant that is a pointer, such as MPI_IN_PLACE.
template <typename Target>
struct Address {
  Word word;
  operator Target*() const { return reinterpret_cast<Target*>(word); }
};

struct alignas(64) Abi {
  const char* name;
  Word handle_bits;  // which bits of a word are the handle
  Address<const void> in_place;

#define SLIMPI_HANDLE(type, name, ...) type name;
#define SLIMPI_NUMBER(name, ...) int name;
#include "mpi/constants.def"

  // The handles of the predefined datatypes: from `first` up to, but not including, `end`.
  struct {
    Word first, end;
  } predefined[2];

  Address<MessageStatus> status_ignore;

  // Whether the MPI's Fortran functions, and the callbacks that they run, call only PMPI_ names. If
  // not, they call C's MPI_ names, except for the functions of mpi_f08 without a buffer argument,
  // which slimpi intercepts by their own names, mpi_..._f08_.
  bool fortran_calls_pmpi;

  // Whether messages of MPI_Comm_create_group can match receives of the program on the parent
  // communicator.
  bool create_group_is_seen;

  // The layout of MPI_Status: the positions of MPI_SOURCE, MPI_TAG and MPI_ERROR, in ints from the
  // start, and its size in bytes.
  struct {
    int source, tag, error, bytes;
  } status;
};

// The MPIs that slimpi knows.
extern const Abi kMpich;     // MPICH since 3.2, and MPIs with its ABI: Intel MPI, MVAPICH
extern const Abi kStandard;  // MPI 5.0, chapter 20
// Returns the ABI of Open MPI 4 and 5, whose handles are the addresses of objects. `symbol` returns
// the address of an object, or null.
Abi open_mpi(const void* (*symbol)(const char* name));

// The ABI of the process's MPI, or MPICH's until an MPI is known.
extern Abi abi;

// Whether an MPI was found, so that `abi` is its ABI.
extern std::atomic<bool> g_known;

// Finds out which MPI the process has, if it has one by now.
void detect();

inline void find_abi() {
  if (!g_known.load(std::memory_order_acquire)) [[unlikely]]
    detect();
}

// Returns the same as cut(), without looking for the ABI. Call it only after find_abi().
template <typename Handle>
Handle cut_known(Word word) {
  return Handle(word & abi.handle_bits);
}

// Returns the handle in a word that came from the program. An MPICH handle is an int, so the upper
// half of the register in which it was passed is undefined; cut() sets that half to 0.
template <typename Handle>
Handle cut(Word word) {
  find_abi();
  return cut_known<Handle>(word);
}

// Returns the size of a handle in the program's memory.
inline std::size_t handle_bytes() {
  return abi.handle_bits == ~Word(0) ? sizeof(Word) : sizeof(int);
}

// Reads a handle from the program's memory. Returns 0 if the pointer is null.
template <typename Handle>
Handle read(const void* pointer) {
  find_abi();
  Word word = 0;
  if (pointer != nullptr) std::memcpy(&word, pointer, handle_bytes());
  return Handle(word);
}

// Returns the address of a handle in an array of the program.
inline void* place_at(void* handles, int index) {
  return static_cast<std::byte*>(handles) + handle_bytes() * std::size_t(index);
}

template <typename Handle>
Handle read_at(const void* handles, int index) {
  return read<Handle>(static_cast<const std::byte*>(handles) + handle_bytes() * std::size_t(index));
}

template <typename Handle>
void write(void* pointer, Handle handle) {
  std::memcpy(pointer, &handle, handle_bytes());
}

// Returns whether the handle shows that the datatype is predefined, so that its elements begin at
// the buffer's address. A false result means unknown.
inline bool is_predefined(Datatype type) {
  for (const auto& [first, end] : abi.predefined)
    if (Word(type) - first < end - first) return true;
  return false;
}

// Storage for the MPI_Status of any MPI.
class MessageStatus {
 public:
  int source() const { return words_[abi.status.source]; }
  int tag() const { return words_[abi.status.tag]; }

 private:
  alignas(8) int words_[8];
};

// Sets, or returns, MPI_ERROR in one of the program's statuses.
inline void set_error(void* statuses, int index, int code) {
  std::byte* const status =
      static_cast<std::byte*>(statuses) + std::size_t(index) * std::size_t(abi.status.bytes);
  std::memcpy(status + std::size_t(abi.status.error) * sizeof code, &code, sizeof code);
}
inline int error_of(const void* statuses, int index) {
  int code = 0;
  const std::byte* const status =
      static_cast<const std::byte*>(statuses) + std::size_t(index) * std::size_t(abi.status.bytes);
  std::memcpy(&code, status + std::size_t(abi.status.error) * sizeof code, sizeof code);
  return code;
}

}  // namespace slimpi::mpi
