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

// The blocks of the ranks: the number of elements of a reduce-scatter that each rank gets, or of an
// all-gather that each rank sends.
struct BlockCounts {
  std::int64_t each = 0;        // the count of every rank, if there is no array
  const void* array = nullptr;  // recvcounts: of int, or of MPI_Count
  bool wide = false;            // the arrays are of MPI_Count and MPI_Aint
  bool agreed = false;          // the ranks have compared the counts
  // The displacements of MPI_Allgatherv, an array of int or MPI_Aint: where each block begins in
  // this rank's receive buffer, in elements. Null if the blocks are contiguous and in rank order.
  const void* places = nullptr;

  std::int64_t of(int rank) const { return array == nullptr ? each : element(array, rank); }
  // Returns where the block of a rank begins in the receive buffer of an all-gather.
  std::int64_t place_of(int rank) const {
    return places == nullptr ? each * rank : element(places, rank);
  }
  // Copies the arrays, because the program may free them before the call runs. Copies of a Request
  // share the copied arrays.
  void keep(int ranks) {
    if (array == nullptr || kept != nullptr) return;
    const std::size_t bytes = std::size_t(ranks) * (wide ? sizeof(std::int64_t) : sizeof(int));
    const std::size_t words = bytes / sizeof(std::int64_t) + 1;
    kept = std::make_shared<std::int64_t[]>(2 * words);
    array = std::memcpy(kept.get(), array, bytes);
    if (places != nullptr) places = std::memcpy(kept.get() + words, places, bytes);
  }
  std::int64_t element(const void* of, int rank) const {
    return wide ? static_cast<const std::int64_t*>(of)[rank] : static_cast<const int*>(of)[rank];
  }

  std::shared_ptr<std::int64_t[]> kept = nullptr;
};

// The block that this rank sends in an all-gather; with MPI_IN_PLACE it has no meaning.
struct SentBlock {
  std::int64_t count = 0;
  mpi::Datatype datatype{};
};

// The arguments of the program's call to a function of SLIMPI_CALLS. The handles were made by cut()
// of mpi/abi.h. A request owns its tensor and, after keep(), its counts. An all-gather has the
// operation MPI_SUM: its result is the sum of vectors in which each rank has only its block.
struct Request {
  const void* in;
  void* out;
  std::int64_t count;  // elements of the whole vector; with blocks: set by count_blocks()
  mpi::Datatype datatype;
  mpi::Op op;
  mpi::Comm comm;
  bool large = false;    // the call came through a function for large counts, such as ..._c
  bool fortran = false;  // the call came through a PMPI_ name: see intercept/names.h
  // The description by slimpi_describe_next; null if the program has made none.
  std::shared_ptr<const DescribedTensor> tensor = nullptr;
  Collective collective = Collective::allreduce;
  BlockCounts blocks = {};     // valid as long as the call needs them; unused in an allreduce
  std::int64_t own_count = 0;  // elements of this rank's block; negative: not counted yet
  SentBlock sent = {};         // only in an all-gather

  bool gathers() const { return collective == Collective::allgather; }
  // Returns the number of elements that this rank gets.
  std::int64_t result_count() const {
    return collective == Collective::reduce_scatter ? own_count : count;
  }
  // Returns the number of elements that this rank passes.
  std::int64_t input_count() const { return gathers() ? own_count : count; }
  // Returns the buffer whose address and memory identify the tensor's state and the device:
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
  if (request.count <= 0 || request.out == mpi::abi.in_place) return true;
  // A rank with an empty block must stay in the call, because other ranks may send theirs.
  if (request.gathers())
    return request.out == nullptr || (request.in == nullptr && request.own_count != 0);
  const bool writes = request.result_count() != 0 || request.in == mpi::abi.in_place;
  return request.in == nullptr || (writes && (request.out == nullptr || request.in == request.out));
}

}  // namespace slimpi::call
