// SPDX-License-Identifier: BSD-3-Clause
// A hook is a user's algorithm in a shared object (SLIMPI_ALGORITHM=hook:PATH). Its ABI is in
// slimpi.h. A hook is a codec or a strategy. A codec encodes the messages of the pairwise schedule
// between nodes; a strategy does the whole sum.
//
// If a hook cannot be used or one of its functions fails, every rank of the communicator returns
// Status::hook with the error text of the lowest rank that failed.
#pragma once
#include <atomic>
#include <string>

#include "algorithm/algorithm.h"
#include "base/call_locals.h"
#include "mpi/api.h"
#include "slimpi.h"

namespace slimpi::algorithm {

// Returns a string with this path, the same one for equal paths, which lives until the process
// ends. A plan (comm::Plan) holds only its address, so two plans have the same hook exactly if they
// hold the same address. Any thread may call this.
const std::string& hook_file(const std::string& path);

// Fails with "SLIMPI_ALGORITHM=hook:PATH cannot be used: " and the reason.
Status refuse_hook(const std::string& file, const std::string& why);

// A user's shared object, opened for one communicator.
class Hook {
 public:
  Hook(const mpi::Api& api, const std::string& file) : api_(api), file_(file) {}
  ~Hook();
  Hook(const Hook&) = delete;
  Hook& operator=(const Hook&) = delete;

  // Loads the file, finds the table of its functions (slimpi_hook_t of slimpi.h), and checks it.
  // The file stays loaded until the process ends. Calls no function of the hook. Not collective.
  Status load();

  // Gives a strategy its own duplicate of `comm`; does nothing for a codec. Collective.
  Status give_comm(mpi::Comm comm, int channel);

  // Calls the open function of the hook, if the hook has it.
  Status open(const comm::Call& call);

  // Drops the MPI communicator without freeing it, because MPI is about to end.
  void abandon() { comm_ = mpi::abi.comm_null; }

  const std::string& file() const { return file_; }
  bool is_codec() const { return table_->kind == SLIMPI_HOOK_CODEC; }
  bool takes_device_memory() const { return (table_->flags & SLIMPI_HOOK_DEVICE_MEMORY) != 0; }
  std::uint64_t identity() const;  // the same on ranks that loaded the same hook

  // For codecs. piece() returns the floats of the longest segment, most_bytes() the greatest number
  // of payload bytes of any segment.
  std::uint64_t piece() const { return piece_; }
  std::uint64_t most_bytes() const { return most_bytes_; }

  // A segment that starts at element `first` of the vector. `total`: its values are the finished
  // sum; otherwise they are the sum of one node.
  struct Piece {
    std::uint64_t first, count;
    bool total;
  };

  // Encode and decode a segment. The `out` of encode() has most_bytes() bytes and kGuardBytes more;
  // the bytes behind the bound of this piece show encode() an overrun. *bytes gets the number of
  // bytes that the hook wrote.
  Status encode(const comm::Call& call, const Piece& piece, const float* in, std::byte* out,
                std::uint64_t* bytes) const;
  Status decode(const comm::Call& call, const Piece& piece, const std::byte* in,
                std::uint64_t bytes, float* out) const;
  static constexpr std::size_t kGuardBytes = 64;

  // Call the functions of a strategy.
  Status prepare(const comm::Call& call) const;
  Status allreduce(const comm::Call& call) const;

 private:
  struct Arguments;
  template <typename Function>
  Status call_function(const char* name, Arguments& arguments, const Function& function) const;
  Status find_bound(Arguments& arguments, std::uint64_t count, std::uint64_t* bytes) const;

  const mpi::Api& api_;
  const std::string& file_;
  const slimpi_hook_t* table_ = nullptr;
  void* context_ = nullptr;
  bool open_ = false;
  mpi::Comm comm_ = mpi::abi.comm_null;
  std::uint64_t piece_ = 0, most_bytes_ = 0;
};

// The number of hook functions that are running, in all threads; t_locals.inside_hook counts those
// of this thread. Needed because a hook calls MPI through the names that slimpi exports, where no
// argument says that a hook is the caller.
inline std::atomic<int> g_all_inside{0};

// Returns the error text of the hook function that this thread has just called; "" if `status`, its
// result, is ok. The caller must keep the text, because this rank continues with its messages
// before the ranks agree on the failure.
inline std::string failure_of(Status status) {
  return status == Status::ok ? "" : failure_text();
}

// Returns whether the calling thread is inside a hook function; then its MPI calls go to MPI
// directly. A relaxed load of g_all_inside is enough: a thread always sees its own increment, and
// increments by other threads do not matter, because t_locals decides.
inline bool inside_hook() {
  return g_all_inside.load(std::memory_order_relaxed) != 0 && t_locals.inside_hook != 0;
}

}  // namespace slimpi::algorithm
