// SPDX-License-Identifier: BSD-3-Clause
// A call of the program, and what became of it.
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

// How many elements of a reduce-scatter each rank gets.
struct BlockCounts {
  std::int64_t each = 0;        // where there is no array
  const void* array = nullptr;  // recvcounts: of int, or of MPI_Count
  bool wide = false;            // of MPI_Count
  bool agreed = false;          // the ranks have compared them

  std::int64_t of(int rank) const {
    if (array == nullptr) return each;
    return wide ? static_cast<const std::int64_t*>(array)[rank]
                : static_cast<const int*>(array)[rank];
  }
  // Copies the array, which the program may free before the sum runs. Copies of a call share it.
  void keep(int ranks) {
    if (array == nullptr || kept != nullptr) return;
    const std::size_t bytes = std::size_t(ranks) * (wide ? sizeof(std::int64_t) : sizeof(int));
    kept = std::make_shared<std::int64_t[]>(bytes / sizeof(std::int64_t) + 1);
    array = std::memcpy(kept.get(), array, bytes);
  }

  std::shared_ptr<std::int64_t[]> kept = nullptr;
};

// A call of the program, of MPI_Allreduce or of another collective that sums: what it asked for.
// The handles are cut: see mpi/abi.h. A request owns its tensor and, after keep(), its counts.
struct Request {
  const void* in;
  void* out;
  std::int64_t count;  // of the input's elements: of a reduce-scatter all blocks, once counted
  mpi::Datatype datatype;
  mpi::Op op;
  mpi::Comm comm;
  bool large = false;    // the call came through a function for large counts, such as ..._c
  bool fortran = false;  // the call came through a PMPI_ name: see intercept/names.h
  // From slimpi_describe_next; null where the program has said nothing.
  std::shared_ptr<const DescribedTensor> tensor = nullptr;
  Collective collective = Collective::allreduce;
  BlockCounts blocks = {};     // of a reduce-scatter; as long as the call needs them
  std::int64_t own_count = 0;  // elements of this rank's block; negative: not counted yet

  // Elements of `out`.
  std::int64_t result_count() const {
    return collective == Collective::allreduce ? count : own_count;
  }
  // By which the memory of the call is known: an empty block may be anywhere.
  const void* buffer() const { return result_count() == 0 && in != mpi::abi.in_place ? in : out; }
};

enum class Way { blocking, nonblocking, persistent };

// The result of a call. Two registers hold it: every call of the program returns one.
struct Outcome {
  bool done = false;                   // else MPI has to do the call
  int code = 0;                        // for the program; of a call that is done
  std::optional<BypassReason> reason;  // why MPI does it; empty where slimpi does not count it

  static Outcome finished(int code) { return {true, code, {}}; }
  static Outcome bypassed(BypassReason reason) { return {false, 0, reason}; }
};

// For such calls MPI reports its own errors, if they are any.
inline bool is_invalid(const Request& call) {
  const bool writes = call.result_count() != 0 || call.in == mpi::abi.in_place;
  return call.count <= 0 || call.in == nullptr || call.out == mpi::abi.in_place ||
         (writes && (call.out == nullptr || call.in == call.out));
}

}  // namespace slimpi::call
