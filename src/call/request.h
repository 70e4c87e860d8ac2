// SPDX-License-Identifier: BSD-3-Clause
// A call of the program, with its arguments as data, and its outcome.
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

// The block sizes of the ranks: how many elements each rank receives in a reduce-scatter, or
// contributes to an all-gather.
struct BlockCounts {
  std::int64_t each = 0;        // the count of every rank if there is no array
  const void* array = nullptr;  // recvcounts, of int or of MPI_Count
  bool wide = false;            // the arrays are of MPI_Count and MPI_Aint
  bool agreed = false;          // the ranks have compared the counts
  // The displacements of MPI_Allgatherv, an array of int or of MPI_Aint: where in this rank's
  // receive buffer each block begins, in elements. This is null if the blocks are contiguous and in
  // rank order.
  const void* places = nullptr;

  std::int64_t of(int rank) const { return array == nullptr ? each : element(array, rank); }
  // Returns where a rank's block begins in the receive buffer of an all-gather.
  std::int64_t place_of(int rank) const {
    return places == nullptr ? each * rank : element(places, rank);
  }
  // Copies the arrays, because the program may free them before the call runs. Copies of a Request
  // share them.
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

// The block that this rank sends in an all-gather. Ignored if the call uses MPI_IN_PLACE.
struct SentBlock {
  std::int64_t count = 0;
  mpi::Datatype datatype{};
};

// The arguments of a call to one of the functions that SLIMPI_CALLS can name. Handles have already
// been through cut() (mpi/abi.h). Owns the tensor's description and, after keep(), the counts. In
// an all-gather `op` is MPI_SUM, since the result equals a sum of vectors each of which has the
// block of one rank and zeros elsewhere.
struct Request {
  const void* in;
  void* out;
  std::int64_t count;  // of the whole vector; set by count_blocks() if the call has blocks
  mpi::Datatype datatype;
  mpi::Op op;
  mpi::Comm comm;
  bool large = false;    // called through a function for large counts, such as ..._c
  bool fortran = false;  // called through a PMPI_ name: see intercept/names.h
  Collective collective = Collective::allreduce;
  // The description that slimpi_describe_next() has left, or null.
  std::shared_ptr<const DescribedTensor> tensor = nullptr;
  BlockCounts blocks = {};      // valid as long as the call needs them; unused in an allreduce
  std::int64_t own_count = -1;  // elements of this rank's block; negative: not counted
  SentBlock sent = {};          // only in an all-gather

  bool gathers() const { return collective == Collective::allgather; }
  // Returns how many elements this rank receives.
  std::int64_t result_count() const {
    return collective == Collective::reduce_scatter ? own_count : count;
  }
  // Returns how many elements this rank passes to the call.
  std::int64_t input_count() const { return gathers() ? own_count : count; }
  // Returns the buffer that identifies this tensor: its address is the key of the tensor state, and
  // its memory selects the device. This is `out`, unless the rank's block is empty, because `out`
  // may then have any address.
  const void* buffer() const { return result_count() == 0 && in != mpi::abi.in_place ? in : out; }
};

enum class Way { blocking, nonblocking, persistent };

// The result of a call. It fits into two registers, because every call of the program returns one.
struct Outcome {
  bool done = false;                   // false: MPI must make the call
  int code = 0;                        // for the program, if done
  std::optional<BypassReason> reason;  // why MPI makes the call; empty: it is not counted

  static Outcome finished(int code) { return {true, code, {}}; }
  static Outcome bypassed(BypassReason reason) { return {false, 0, reason}; }
};

// Returns whether the call has no elements or wrong arguments. It is then left to MPI, which
// reports any error.
inline bool is_invalid(const Request& request) {
  if (request.count <= 0 || request.out == mpi::abi.in_place) return true;
  // A rank whose block is empty must stay in the call, because other ranks may send theirs.
  if (request.gathers())
    return request.out == nullptr || (request.in == nullptr && request.own_count != 0);
  const bool writes = request.result_count() != 0 || request.in == mpi::abi.in_place;
  return request.in == nullptr || (writes && (request.out == nullptr || request.in == request.out));
}

}  // namespace slimpi::call
