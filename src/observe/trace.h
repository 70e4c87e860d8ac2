// SPDX-License-Identifier: BSD-3-Clause
// The trace of SLIMPI_TRACE: the actions of a rank with their times, in the format of
// chrome://tracing and Perfetto. There, each rank has a track. A call is a slice of this track, and
// so is each stage of each segment (a part of a vector). A message is a flow arrow.
#pragma once
#include <array>
#include <atomic>
#include <bitset>
#include <chrono>
#include <cstdint>
#include <mutex>

namespace slimpi {

class Trace {
 public:
  using Clock = std::chrono::steady_clock;

  // The message that the calling thread has just waited for, which the thread's next slice shows as
  // an argument. If the thread has waited for several messages since its last slice, the slice
  // shows none. `phase` is a string literal, or null for a barrier.
  struct Message {
    std::int32_t peer = -1;  // in the communicator; in a barrier the first rank of the node
    std::uint32_t step = 0;  // number of the message between the two ranks in this phase, from 0;
                             // in a barrier its number on the node and the communicator
    const char* phase = nullptr;
    std::uint32_t count = 0;  // how many messages since the last slice
  };

  // One event: a slice, or one end of a flow arrow. `name` must be a string literal.
  enum class Kind : std::uint8_t { slice, flow_start, flow_end };
  struct Event {
    const char* name;
    Clock::time_point begin, end;
    std::uint64_t bytes;
    std::uint64_t flow;  // both ranks compute the same number for a message
    std::uint64_t call;  // the number on the communicator; 0: no call that slimpi took
    std::uint64_t communicator;
    Message message;
    std::uint32_t thread;
    Kind kind;
    std::uint8_t bits;       // bits of a value between nodes; 0: unknown
    std::int32_t first = 0;  // rank in MPI_COMM_WORLD of the communicator's first rank
  };

  Trace();

  // Rows of the track for the work of a device, which runs at the same time as the threads. kThread
  // is the row of the calling thread, whichever it is.
  static constexpr std::uint32_t kThread = 0, kDevice = 1001, kCopiesOut = 1002, kCopiesIn = 1003;

  // Adds a slice to the row of the calling thread, or to another row. Once kMost events are kept or
  // memory is lacking, warns once and from then on only counts the events. Thread-safe; does not
  // throw.
  void add(const char* name, Clock::time_point begin, Clock::time_point end, std::uint64_t bytes,
           std::uint32_t row = kThread);

  // Adds a slice for a wait of the calling thread in a barrier of its node. `node` becomes
  // Message::peer, and `number` Message::step.
  void add_barrier(Clock::time_point begin, Clock::time_point end, std::int32_t node,
                   std::uint32_t number);

  // Adds the start or the end of a flow arrow, at the present time, on the row of the calling
  // thread.
  void add_flow(Kind kind, std::uint64_t flow, std::uint64_t bytes);

  // Notes in the thread's ActiveCall which message the calling thread has waited for. The thread's
  // next slice shows it as an argument.
  static void waited_for(std::int32_t peer, std::uint32_t step, const char* phase);

  // Writes all events to a file. Returns 0, or the errno of the first failure, after which a
  // regular file is removed. Does not allocate, because the process may have no memory left. Called
  // only by the thread that ends MPI. Times are relative to the start of this rank's trace, whose
  // wall-clock time is in the first event: viewers keep microseconds in a double, where times since
  // 1970 would lose so many bits that slices overlap.
  int write(const char* path, int rank) const;

  // Returns the running trace, or null while SLIMPI_TRACE is unset.
  static Trace* running() { return running_.load(std::memory_order_acquire); }
  static void start();

  static constexpr std::size_t kMost = 4u << 20;

 private:
  static std::atomic<Trace*> running_;
  // Events are stored in chunks that never move. The pages of a chunk are mapped before it is used.
  static constexpr std::size_t kChunk = 1 << 13;
  static constexpr std::size_t kRows = 1024;  // rows whose names are written
  bool grow();
  void store(Event event);

  mutable std::mutex mutex_;
  std::array<Event*, kMost / kChunk> chunks_{};
  std::size_t held_ = 0, events_ = 0;  // the numbers of chunks and of events
  std::uint64_t left_out_ = 0;         // events not kept; once there is one, none is kept
  std::bitset<kRows> rows_;            // rows that have slices
  // The start of the trace on the clock of the slices (steady_) and on the wall clock, which all
  // hosts have in common (wall_).
  Clock::time_point steady_;
  std::chrono::system_clock::time_point wall_;
};

// Adds a slice to the running trace, if there is one and `bytes` is not 0. The slice lasts as long
// as this object exists.
class Slice {
 public:
  // `name` must be a string literal.
  Slice(const char* name, std::uint64_t bytes)
      : trace_(bytes == 0 ? nullptr : Trace::running()), name_(name), bytes_(bytes) {
    if (trace_ != nullptr) begin_ = Trace::Clock::now();
  }
  ~Slice() {
    if (trace_ != nullptr) trace_->add(name_, begin_, Trace::Clock::now(), bytes_);
  }
  Slice(const Slice&) = delete;
  Slice& operator=(const Slice&) = delete;

 private:
  Trace* const trace_;
  const char* const name_;
  const std::uint64_t bytes_;
  Trace::Clock::time_point begin_{};
};

}  // namespace slimpi
