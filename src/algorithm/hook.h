// SPDX-License-Identifier: BSD-3-Clause
// A hook is a user's algorithm in a shared object (SLIMPI_ALGORITHM=hook:PATH), with the ABI of
// slimpi.h: either a codec, which encodes the messages of the pairwise schedule between nodes, or a
// strategy, which computes the whole sum.
//
// If a hook cannot be used, or a function of it fails, every rank of the communicator returns
// Status::hook with the error text of the lowest rank that failed.
#pragma once
#include <atomic>
#include <string>

#include "algorithm/algorithm.h"
#include "base/call_locals.h"
#include "mpi/api.h"
#include "slimpi.h"

namespace slimpi::algorithm {

// Returns a string that equals `text` and lives until the process ends. Equal texts give the same
// string, and plans (comm::Plan) hold only its address, so two plans have the same hook if the
// addresses of their paths are equal. Any thread may call this function.
const std::string& kept_text(const std::string& text);

// Fails with the text "OPTION cannot be used: WHY". `option` is comm::Plan::hook_option.
Status refuse_hook(const std::string& option, const std::string& why);

// A user's shared object, opened for one communicator.
class Hook {
 public:
  // `file` and `option` are those of comm::Plan.
  Hook(const mpi::Api& api, const std::string& file, const std::string& option)
      : api_(api), file_(file), option_(option) {}
  ~Hook();
  Hook(const Hook&) = delete;
  Hook& operator=(const Hook&) = delete;

  // Loads the file, which then stays loaded until the process ends, finds the table of functions
  // (slimpi_hook_t of slimpi.h), and checks the table. Neither calls a function of the hook nor
  // communicates.
  Status load();

  // Gives a strategy its own duplicate of `comm`, while a codec needs none. Collective.
  Status give_comm(mpi::Comm comm, int channel);

  // Calls the hook's open function, if it has one.
  Status open(const comm::Call& call);

  // Forgets the communicator without freeing it, because MPI is about to end.
  void abandon() { comm_ = mpi::abi.comm_null; }

  const std::string& file() const { return file_; }
  bool is_codec() const { return table_->kind == SLIMPI_HOOK_CODEC; }
  bool takes_device_memory() const { return (table_->flags & SLIMPI_HOOK_DEVICE_MEMORY) != 0; }
  std::uint64_t identity() const;  // the same on ranks that loaded the same hook

  // Return the length of the codec's longest segment, in floats, and the largest number of payload
  // bytes that a segment can have.
  std::uint64_t piece() const { return piece_; }
  std::uint64_t most_bytes() const { return most_bytes_; }

  // A segment that starts at element `first` of the vector. With `total`, its values are the
  // finished sum; otherwise they are the sum of one node.
  struct Piece {
    std::uint64_t first, count;
    bool total;
  };

  // Encode and decode a segment. `out` of encode() must have room for most_bytes() + kGuardBytes
  // bytes; encode() uses those beyond the bound of this piece to detect an overrun. It sets *bytes
  // to the number of bytes that the hook wrote.
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
  const std::string &file_, &option_;
  const slimpi_hook_t* table_ = nullptr;
  void* context_ = nullptr;
  bool open_ = false;
  mpi::Comm comm_ = mpi::abi.comm_null;
  std::uint64_t piece_ = 0, most_bytes_ = 0;
};

// The number of hook functions running in all threads; t_locals.inside_hook counts those of this
// thread. A hook calls MPI by the names that slimpi exports, where no argument tells that the
// caller is a hook.
inline std::atomic<int> g_all_inside{0};

// Returns the error text of the hook function that this thread has just called, "" if its result
// `status` is ok. The caller must keep the text, because this rank continues with its messages
// before the ranks agree on the failure.
inline std::string failure_of(Status status) {
  return status == Status::ok ? "" : failure_text();
}

// Returns whether the calling thread is inside a hook function, whose MPI calls go straight to MPI.
// A relaxed load of g_all_inside is enough: a thread always sees its own increment, and those of
// other threads do not matter, because t_locals decides.
inline bool inside_hook() {
  return g_all_inside.load(std::memory_order_relaxed) != 0 && t_locals.inside_hook != 0;
}

}  // namespace slimpi::algorithm
