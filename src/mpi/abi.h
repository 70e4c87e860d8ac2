// SPDX-License-Identifier: BSD-3-Clause
// What differs among MPIs: values of constants, the size of a handle, the layout of MPI_Status. All
// of it is data, known once the process's MPI is found; each MPI has a file of it.
#pragma once
#include <atomic>
#include <cstring>

#include "mpi/types.h"

namespace slimpi::mpi {

class MessageStatus;

// A pointer with a value that stands for something else.
template <typename Target>
struct Address {
  Word word;
  operator Target*() const { return reinterpret_cast<Target*>(word); }
};

// By the names of the standard: comm_null is MPI_COMM_NULL, type_float is MPI_FLOAT, op_sum is
// MPI_SUM. A constant that an MPI lacks is 0, which no handle equals.
struct alignas(64) Abi {
  const char* name;
  Word handle_bits;  // the bits of a word that are the handle

  // What a call that is left to MPI reads, side by side.
  Address<const void> in_place;
  Op op_sum;
  Comm comm_null, comm_self;
  Datatype type_float, type_real, type_real4, type_double, type_double_precision, type_real8;
  // Where the MPI can sum them; for MPICH and its descendants find_short_floats() sets them.
  Datatype type_float16{}, type_real2{}, type_bfloat16{};
  // The handles of predefined datatypes, and of no other: from each first up to its end.
  struct {
    Word first, end;
  } predefined[2];

  Comm comm_world;
  Errhandler errhandler_null, errors_are_fatal, errors_return;
  Group group_null;
  Info info_null;
  Request request_null;

  Datatype datatype_null, type_byte, type_char, type_int, type_int64_t, type_uint32_t,
      type_uint64_t;
  Op op_null, op_max, op_min;

  Address<MessageStatus> status_ignore;
  int any_source, any_tag, comm_type_shared, err_in_status, err_other, keyval_invalid, tag_ub,
      thread_multiple;
  int max_error_string, max_info_val;  // with the final zero byte

  // Whether Fortran's calls, and the callbacks in them, reach PMPI_ names only. Else they reach the
  // names of C, but for those of mpi_f08 that have no buffer, which are mpi_..._f08_.
  bool fortran_calls_pmpi;

  // Where MPI_SOURCE, MPI_TAG and MPI_ERROR stand, in ints from the start, and the size of all, in
  // bytes.
  struct {
    int source, tag, error, bytes;
  } status;
};

// Of the process's MPI. MPICH's as long as none is known.
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

// Of a handle in the program's memory.
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

// One of an array of handles.
template <typename Handle>
Handle read_at(const void* handles, int index) {
  return read<Handle>(static_cast<const std::byte*>(handles) + handle_bytes() * std::size_t(index));
}

template <typename Handle>
void write(void* pointer, Handle handle) {
  std::memcpy(pointer, &handle, handle_bytes());
}

// Whether a datatype is predefined, so that the elements lie at the buffer's address. Looks at the
// handle only. False is no answer.
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
