// SPDX-License-Identifier: BSD-3-Clause
// SLIMPI_ALGORITHM=hook:PATH, an algorithm of the user's own in a shared object; its ABI is in
// slimpi.h. A codec runs inside the schedule of hook_rounds.h, a strategy does the whole sum.
//
// A hook that cannot be used, or a function of it that fails, is Status::hook on every rank of the
// communicator, with the text of the lowest rank that failed.
#pragma once
#include <map>
#include <memory>
#include <string>

#include "algorithm/algorithm.h"
#include "mpi/api.h"
#include "slimpi.h"

namespace slimpi::algorithm {

// One shared object, opened for one communicator.
class Hook {
 public:
  Hook(const mpi::Api& api, std::string path) : api_(api), path_(std::move(path)) {}
  ~Hook();
  Hook(const Hook&) = delete;
  Hook& operator=(const Hook&) = delete;

  // Finds the symbol in the file and checks what it says. Not collective.
  Status load();

  // Gives a strategy a duplicate of `comm`; collective.
  Status give_comm(MPI_Comm comm);

  // Calls the hook's own open, if it has one.
  Status open(const comm::Call& call);

  // Forgets MPI's side, which is about to end.
  void abandon() { comm_ = MPI_COMM_NULL; }

  bool is_codec() const { return table_->kind == SLIMPI_HOOK_CODEC; }
  bool takes_device_memory() const { return (table_->flags & SLIMPI_HOOK_DEVICE_MEMORY) != 0; }
  std::uint64_t identity() const;  // alike on ranks that loaded the same hook

  // Codecs: floats of the longest piece, and the most bytes that any piece takes.
  std::uint64_t piece() const { return piece_; }
  std::uint64_t most_bytes() const { return most_bytes_; }

  // A piece that begins at element `first` of the call's buffer: of the finished sum, or of a
  // node's share of it.
  struct Piece {
    std::uint64_t first, count;
    bool total;
  };

  // `out` has room for most_bytes() and kGuardBytes more; *bytes is what the hook wrote.
  Status encode(const comm::Call& call, const Piece& piece, const float* in, std::byte* out,
                std::uint64_t* bytes) const;
  Status decode(const comm::Call& call, const Piece& piece, const std::byte* in,
                std::uint64_t bytes, float* out) const;
  static constexpr std::size_t kGuardBytes = 64;

  // Strategies.
  Status prepare(const comm::Call& call) const;
  Status allreduce(const comm::Call& call) const;

 private:
  struct Told;
  Status failed(const char* function, int code, const Told& told) const;

  const mpi::Api& api_;
  const std::string path_;
  const slimpi_hook_t* table_ = nullptr;
  void* context_ = nullptr;
  bool open_ = false;
  MPI_Comm comm_ = MPI_COMM_NULL;
  std::uint64_t piece_ = 0, most_bytes_ = 0;
};

using Hooks = std::map<std::string, std::unique_ptr<Hook>>;  // by path

Status open_hook(comm::Communicator& communicator, const comm::Plan& plan);
Status reserve_hook(comm::Communicator& communicator, const comm::Plan& plan, std::uint64_t count,
                    const device::Device& device, const void* like);
Status reserve_hook_state(comm::Call& call);
Status run_hook(comm::Call& call);

// Is the calling thread inside a function of a hook? What it calls then is MPI's own.
bool inside_hook();

}  // namespace slimpi::algorithm
