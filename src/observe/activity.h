// SPDX-License-Identifier: BSD-3-Clause
// Records the current calls of this process for other processes to read (`slimpi-info --attach`).
// The records are in a file in memory, which a process of the same user can open through
// /proc/PID/fd. Each call that slimpi takes has a record; a bypassed call has none. While MPI makes
// a call as a candidate of the autotuner or as a fallback, the record's state is in_mpi.
#pragma once
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "observe/trace.h"
#include "options/option_types.h"

namespace slimpi {

// The stage of a call that a wait belongs to.
enum class WaitStage : std::uint32_t {
  none,
  new_communicator,
  agreement,
  reduce_scatter,
  all_gather,
  node_reduce_scatter,
  node_all_gather,
  node_barrier,
  neighbor_exchange,
  device,
  mpi_finalize,  // not a wait: the rank has called MPI_Finalize
};
const char* to_string(WaitStage stage);

// The MPI function of a call, and the type of its elements. Nonblocking calls and starts of
// persistent requests are recorded as the blocking function.
struct Function {
  Collective collective = Collective::allreduce;
  bool equal_blocks = false;  // MPI_Reduce_scatter_block, MPI_Allgather
  bool init = false;          // makes a persistent request
  ElementType type = ElementType::float32;

  static constexpr int kBits = 6;
  std::uint32_t word() const {
    return std::uint32_t(type) << 4 | std::uint32_t(init) << 3 | std::uint32_t(equal_blocks) << 2 |
           std::uint32_t(collective);
  }
  static Function of(std::uint32_t word) {
    return {Collective(word & 3), (word & 4) != 0, (word & 8) != 0, ElementType(word >> 4 & 3)};
  }
  std::string text() const;  // "MPI_Reduce_scatter_block of doubles"
};

// The record of one call. Times are nanoseconds of CLOCK_MONOTONIC, which all processes of a
// machine share.
struct Activity {
  enum class State : std::uint32_t { works, waits, in_mpi };

  std::uint32_t version = 0;  // odd while the record is being written
  std::uint32_t in_use = 0;
  State state = State::works;
  WaitStage stage = WaitStage::none;
  std::int32_t rank = 0, size = 0;  // this rank, and the ranks in the communicator
  std::uint64_t communicator = 0;   // the number, the same on all its ranks; 0: not agreed yet
  std::uint64_t call = 0, count = 0;
  std::uint32_t function = 0;  // Function::word()
  std::int64_t since = 0, waits_since = 0;
  char name[48] = "";
  char tensor[64] = "";   // the name (slimpi_describe_next), cut to this length, or ""
  char report[256] = "";  // whom the call waits for, in the words of SLIMPI_STALL's warning, or ""
};

struct ActivityFile {
  static constexpr std::uint64_t kMagic = 0x3576746361706c73;  // "slpactv5" in memory
  static constexpr const char* kName = "slimpi-activity";
  static constexpr std::size_t kRecords = 16;

  std::uint64_t magic = kMagic;
  std::int32_t pid = 0, rank = -1, size = 0;  // rank and size in MPI_COMM_WORLD
  std::int32_t stall = 0;                     // SLIMPI_STALL, in seconds
  std::array<Activity, kRecords> records;
};

// Makes the file. If the kernel refuses, each call has its record in its own memory.
void start_activity();
void set_activity_rank(int rank, int size);

// Set and return SLIMPI_STALL, where 0 means that waits are not reported. May be called before
// start_activity().
void set_stall_limit(std::chrono::seconds limit);
std::chrono::seconds stall_limit();

// While an ActiveCall exists, the calling thread's call has a record.
class ActiveCall {
 public:
  struct Subject {
    std::uint64_t communicator;
    std::string_view name;
    int rank, size;
    std::uint64_t call, count;
    int first = -1;  // rank in MPI_COMM_WORLD of the communicator's first rank, or -1
    std::string_view tensor = {};
    Function function = {};
  };
  explicit ActiveCall(const Subject& subject);
  ~ActiveCall();
  ActiveCall(const ActiveCall&) = delete;
  ActiveCall& operator=(const ActiveCall&) = delete;

  // Returns the innermost ActiveCall of the calling thread, or null outside a call that slimpi
  // takes.
  static ActiveCall* current();

  const Activity& record() const { return *record_; }
  std::uint64_t call() const { return record_->call; }
  std::uint64_t count() const { return record_->count; }
  int first() const { return first_; }
  Function function() const { return Function::of(record_->function); }
  // Returns a word of `bits` bits that describes the sum. Ranks compare their words to find out
  // that their sums differ. The word has the function and the low bits of the count or, for a
  // tensor with a name, a hash of function, count and name with the highest bit set.
  std::uint64_t sum_word(int bits) const;
  void works();
  void in_mpi();
  void waits(WaitStage stage, std::chrono::steady_clock::time_point since);
  void reported(std::string_view report);

  // Values for slices of the trace, used only by the thread of the call.
  struct Traced {
    Trace::Message message;  // the message that the thread has waited for since its last slice
    std::uint8_t bits = 0;   // bits of a value between nodes; 0: unknown
  };
  Traced traced;

 private:
  template <typename Change>
  void write(Change change);

  Activity own_;  // for a call that finds all records of the file in use
  Activity* const record_;
  const int first_;
  const std::uint64_t tensor_;  // hash of the name; 0: none
  ActiveCall* const outer_;
};

// Returns a text such as "16384 floats".
std::string describe_count(std::uint64_t count, Function function);

// Returns a text such as "call 7 on MPI_COMM_WORLD (communicator 1, rank 0 of 4), 16384 floats,
// tensor layer1.weight".
std::string describe_call(const Activity& record);

// Returns a text such as "rank 1 calls MPI_Allreduce of doubles, and this rank MPI_Allreduce of
// floats, in call 7 ...".
std::string describe_other_function(int rank, Function theirs);

// Returns the error text for a `rank` whose sum, identified by its sum_word() `word`, differs from
// that of this thread's call. The text has the difference (function and type, named tensor, or
// count), such as "rank 1 passes 100 floats in call 7 on ...; all ranks must pass the same count".
std::string describe_other_sum(int rank, std::uint64_t word, int bits);

// Returns a text such as "rank 3" or "ranks 1, 2 and 5". Of many ranks, it names the first 16.
std::string describe_ranks(std::span<const int> ranks);

}  // namespace slimpi
