// SPDX-License-Identifier: BSD-3-Clause
// MPI's types, of whatever MPI the process has: slimpi is built without one. A handle is a machine
// word, an int of MPICH's as well as a pointer of the others'. And what differs among MPIs: values
// of constants, the size of a handle, the layout of MPI_Status. All of it is data, known once the
// process's MPI is found.
#pragma once
#include <atomic>
#include <cstdint>
#include <cstring>

namespace slimpi::mpi {

using Word = std::uintptr_t;

// In a word, a 32-bit handle has an upper half of zeros. Handles from the program: see cut(). MPI
// writes only the lower half of a word that it gets the address of, so every word has to have a
// value before, for example that of the null handle.
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

class MessageStatus;

// A pointer with a value that stands for something else.
template <typename Target>
struct Address {
  Word word;
  operator Target*() const { return reinterpret_cast<Target*>(word); }
};

struct alignas(64) Abi {
  const char* name;
  Word handle_bits;  // the bits of a word that are the handle
  Address<const void> in_place;

#define SLIMPI_HANDLE(type, name, ...) type name;
#define SLIMPI_NUMBER(name, ...) int name;
#include "mpi/constants.def"
#undef SLIMPI_HANDLE
#undef SLIMPI_NUMBER

  // The handles of predefined datatypes, and of no other: from each first up to its end.
  struct {
    Word first, end;
  } predefined[2];

  Address<MessageStatus> status_ignore;

  // Whether Fortran's calls, and the callbacks in them, reach PMPI_ names only. Else they reach the
  // names of C, but for those of mpi_f08 that have no buffer, which are mpi_..._f08_.
  bool fortran_calls_pmpi;

  // Whether messages of MPI_Comm_create_group can match receives of the program on the parent.
  bool create_group_is_seen;

  // Where MPI_SOURCE, MPI_TAG and MPI_ERROR stand, in ints from the start, and the size of all, in
  // bytes.
  struct {
    int source, tag, error, bytes;
  } status;
};

// The MPIs that slimpi knows.
extern const Abi kMpich;     // MPICH 3.2 and later, and what has its ABI: Intel MPI, MVAPICH
extern const Abi kStandard;  // MPI 5.0, chapter 20
// Open MPI 4 and 5. Handles are the addresses of objects. `symbol` finds one, or null.
Abi open_mpi(const void* (*symbol)(const char* name));

// The ABI of the process's MPI; MPICH's as long as none is known.
extern Abi abi;

// Whether `abi` is that of an MPI which was found.
extern std::atomic<bool> g_known;

// Finds out which MPI the process has, if it has one by now.
void detect();

inline void find_abi() {
  if (!g_known.load(std::memory_order_acquire)) [[unlikely]]
    detect();
}

// cut(), after find_abi().
template <typename Handle>
Handle cut_known(Word word) {
  return Handle(word & abi.handle_bits);
}

// The handle in a word that came from the program. MPICH's is an int, which leaves the upper half
// of an argument's register undefined.
template <typename Handle>
Handle cut(Word word) {
  find_abi();
  return cut_known<Handle>(word);
}

// The size of a handle in the program's memory.
inline std::size_t handle_bytes() {
  return abi.handle_bits == ~Word(0) ? sizeof(Word) : sizeof(int);
}

// As cut(), of a handle that the program's pointer leads to.
template <typename Handle>
Handle read(const void* pointer) {
  find_abi();
  Word word = 0;
  if (pointer != nullptr) std::memcpy(&word, pointer, handle_bytes());
  return Handle(word);
}

template <typename Handle>
Handle read_at(const void* handles, int index) {
  return read<Handle>(static_cast<const std::byte*>(handles) + handle_bytes() * std::size_t(index));
}

template <typename Handle>
void write(void* pointer, Handle handle) {
  std::memcpy(pointer, &handle, handle_bytes());
}

// Whether a datatype is predefined, so that the elements lie at the buffer's address. Looks at the
// handle only. False means unknown.
inline bool is_predefined(Datatype type) {
  for (const auto& [first, end] : abi.predefined)
    if (Word(type) - first < end - first) return true;
  return false;
}

// MPI_Status: storage for that of any MPI.
class MessageStatus {
 public:
  int source() const { return words_[abi.status.source]; }
  int tag() const { return words_[abi.status.tag]; }

 private:
  alignas(8) int words_[8];
};

// MPI_ERROR of one of the program's statuses.
inline void set_error(void* statuses, int index, int code) {
  std::byte* const status =
      static_cast<std::byte*>(statuses) + std::size_t(index) * std::size_t(abi.status.bytes);
  std::memcpy(status + std::size_t(abi.status.error) * sizeof code, &code, sizeof code);
}

}  // namespace slimpi::mpi
