// SPDX-License-Identifier: BSD-3-Clause
// A call of the program, and its outcome.
#pragma once
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>

#include "mpi/abi.h"
#include "observe/statistics.h"
#include "options/option_types.h"

namespace slimpi {
struct DescribedTensor;
}

namespace slimpi::call {

using mpi::Word;

// The number of elements of a reduce-scatter that each rank gets.
struct BlockCounts {
  std::int64_t each = 0;        // the count of every rank, if there is no array
  const void* array = nullptr;  // recvcounts: of int, or of MPI_Count
  bool wide = false;            // the array is of MPI_Count
  bool agreed = false;          // the ranks have compared the counts

  std::int64_t of(int rank) const {
    if (array == nullptr) return each;
    return wide ? static_cast<const std::int64_t*>(array)[rank]
                : static_cast<const int*>(array)[rank];
  }
  // Copies the array, because the program may free the array before the sum runs. Copies of a
  // Request share the copied array.
  void keep(int ranks) {
    if (array == nullptr || kept != nullptr) return;
    const std::size_t bytes = std::size_t(ranks) * (wide ? sizeof(std::int64_t) : sizeof(int));
    kept = std::make_shared<std::int64_t[]>(bytes / sizeof(std::int64_t) + 1);
    array = std::memcpy(kept.get(), array, bytes);
  }

  std::shared_ptr<std::int64_t[]> kept = nullptr;
};

// The arguments of a call of the program to MPI_Allreduce or to another collective that sums. The
// handles are made by cut() of mpi/abi.h. A request owns its tensor and, after keep(), its counts.
struct Request {
  const void* in;
  void* out;
  std::int64_t count;  // elements of the input; of a reduce-scatter: set by count_blocks()
  mpi::Datatype datatype;
  mpi::Op op;
  mpi::Comm comm;
  bool large = false;    // the call came through a function for large counts, such as ..._c
  bool fortran = false;  // the call came through a PMPI_ name: see intercept/names.h
  // The description by slimpi_describe_next; null if the program has made none.
  std::shared_ptr<const DescribedTensor> tensor = nullptr;
  Collective collective = Collective::allreduce;
  BlockCounts blocks = {};     // counts of a reduce-scatter; valid as long as the call needs them
  std::int64_t own_count = 0;  // elements of this rank's block; negative: not counted yet

  // Returns the number of elements of `out`.
  std::int64_t result_count() const {
    return collective == Collective::allreduce ? count : own_count;
  }
  // Returns the buffer by whose address and memory slimpi finds the tensor's state and the device:
  // `out`, or the input if this rank's block is empty, because `out` may then have any address.
  const void* buffer() const { return result_count() == 0 && in != mpi::abi.in_place ? in : out; }
};

enum class Way { blocking, nonblocking, persistent };

// The result of a call. It fits into two registers, because every call of the program returns one.
struct Outcome {
  bool done = false;                   // false: MPI has to do the call
  int code = 0;                        // the code for the program, if done
  std::optional<BypassReason> reason;  // why MPI does the call; empty: it is not counted

  static Outcome finished(int code) { return {true, code, {}}; }
  static Outcome bypassed(BypassReason reason) { return {false, 0, reason}; }
};

// Returns whether the call has no elements or wrong arguments. MPI then makes the call, and reports
// its own errors if there are any.
inline bool is_invalid(const Request& request) {
  const bool writes = request.result_count() != 0 || request.in == mpi::abi.in_place;
  return request.count <= 0 || request.in == nullptr || request.out == mpi::abi.in_place ||
         (writes && (request.out == nullptr || request.in == request.out));
}

}  // namespace slimpi::call
