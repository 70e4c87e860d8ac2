// SPDX-License-Identifier: BSD-3-Clause
// What src/intercept may call.
#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/fiber.h"
#include "base/status.h"
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
  std::size_t bytes(int ranks) const {
    return array == nullptr ? 0 : std::size_t(ranks) * (wide ? sizeof(std::int64_t) : sizeof(int));
  }
};

// A call of the program: of MPI_Allreduce or another collective that sums. The handles are cut: see
// mpi/abi.h.
struct Allreduce {
  const void* in;
  void* out;
  std::int64_t count;  // of the input's elements: of a reduce-scatter all blocks, once counted
  mpi::Datatype datatype;
  mpi::Op op;
  mpi::Comm comm;
  bool large = false;    // the call came through a function for large counts, such as ..._c
  bool fortran = false;  // the call came through a PMPI_ name: see intercept/names.h
  // From slimpi_describe_next; null where the program has said nothing. Its owner is who began the
  // sum (dispatch), until the sum has ended.
  const DescribedTensor* tensor = nullptr;
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

// What became of a call. Two registers hold it: every call of the program returns one.
struct Outcome {
  bool done = false;                   // else MPI has to do the call
  int code = 0;                        // for the program; of a call that is done
  std::optional<BypassReason> reason;  // why MPI does it; empty where slimpi does not count it

  static Outcome finished(int code) { return {true, code, {}}; }
  static Outcome bypassed(BypassReason reason) { return {false, 0, reason}; }
};

// For such calls MPI reports its own errors, if they are any.
inline bool is_invalid(const Allreduce& call) {
  const bool writes = call.result_count() != 0 || call.in == mpi::abi.in_place;
  return call.count <= 0 || call.in == nullptr || call.out == mpi::abi.in_place ||
         (writes && (call.out == nullptr || call.in == call.out));
}

// Finds the counts of a reduce-scatter of so many ranks; the count is negative where a block is.
void count_blocks(Allreduce& call, int rank, int ranks);

// Does the call, or leaves it to MPI. All three ways to begin a call count the blocks of a
// reduce-scatter, unless it is left to MPI at sight.
Outcome dispatch(Allreduce& call);

// After an exception in dispatch(), begin() or init_persistent(), which became `status`: ends the
// job with one line, where it has begun.
void end_for(mpi::Comm comm, Status status);

// After another exception: raises an MPI error on the communicator and returns the code for the
// program.
int fail_on(mpi::Comm comm, Status status);

// Whether slimpi may take the call: a sum of a type in SLIMPI_TYPES, and some elements.
bool is_float_sum(const Allreduce& call);

// Whether the call is a float sum, maybe of no elements: it takes the description of
// slimpi_describe_next.
bool takes_description(const Allreduce& call);

// Calls the next definition: another tool's, or MPI's. Buffers that MPI cannot take are staged. The
// reason is for the trace and for SLIMPI_ESTIMATE, which records no call without one.
int call_mpi(const Allreduce& call, std::optional<BypassReason> reason);

// The same in the program's floating-point environment, called from inside slimpi's own.
int call_mpi_from_inside(const Allreduce& call, std::optional<BypassReason> reason);

// Counts the bytes of a call that MPI made because of its type, for the share of the report. A sum
// may also be an operation of the program's.
void count_bytes_of(const Allreduce& call);
inline void count_other_bytes(const Allreduce& call, int code) {
  if (code == mpi::kSuccess && call.op != mpi::abi.op_max && call.op != mpi::abi.op_min)
    count_bytes_of(call);
}

// The same as call_mpi, without staging, trace and estimate. src/intercept defines it.
int call_mpi_unstaged(const Allreduce& call);

// Where device::some_need_copies(): has MPI begin a nonblocking call, or make a persistent one, on
// copies of buffers that it cannot take. `next` calls the next definition, which writes MPI's
// request to `request`.
int begin_staged(const Allreduce& call, void* request, bool persistent,
                 const std::function<int(const Allreduce&)>& next);

// Tells SLIMPI_ESTIMATE, where it runs, of a nonblocking or persistent call that is left to MPI.
void estimate_nonblocking(const Allreduce& call, BypassReason reason);

// Begins a nonblocking call in the background, or leaves it to MPI. A call that was begun has
// written a request of MPI's to `request`, where the program's is.
Outcome begin(Allreduce& call, void* request);

// MPI_Allreduce_init: makes a persistent sum with its request, or leaves it to MPI. May wait for
// the other ranks.
Outcome init_persistent(Allreduce& call, void* request);

// Starts those of the program's requests that are persistent sums. MPI has to start the requests,
// too.
int start_persistent(int count, const void* requests);

// Raises an error if the request is a sum in flight, and returns its code; else MPI's success.
int refuse_to_cancel(const void* request);

// While this object lives, MPI frees the program's request. If it is a persistent sum, that ends.
class PersistentEnd {
 public:
  explicit PersistentEnd(const void* request);
  ~PersistentEnd();
  PersistentEnd(const PersistentEnd&) = delete;
  PersistentEnd& operator=(const PersistentEnd&) = delete;

 private:
  std::uint64_t staged_ = 0;
  void* one_ = nullptr;
};

// Whether nonblocking sums are in flight. All that follows is for then.
inline bool sums_in_flight() {
  return g_fibers.load(std::memory_order_acquire) != 0;
}

// While slimpi calls a function of MPI as the program does, to see whether it comes back here: set
// to true by slimpi's definition, which does nothing else then. Null: no such call. Sums count as
// in flight meanwhile.
inline constinit thread_local bool* t_probe = nullptr;
inline bool is_probe() {
  if (t_probe != nullptr) *t_probe = true;
  return t_probe != nullptr;
}

// Lets them make progress.
void progress();

// Waits, while they make progress, until poll(argument) is true.
void wait_until(bool (*poll)(void*), void* argument);

// Waits for those of the communicator; for all.
void wait_for_sums_on(mpi::Comm comm);

// Before a communicator is freed: waits for its nonblocking sums, which use its state, and for
// slimpi's requests on it. MPI keeps a communicator that has one, and MPI_Comm_disconnect waits.
void finish_on(mpi::Comm comm);
void wait_for_all_sums();

// Writes MPI_REQUEST_NULL and a complete request to requests[0] and [1]. False: MPI fails.
bool make_complete_request(int (&requests)[2]);

// The program frees a request, so nobody completes it.
void drop_request(const void* request);

// While this object lives, the thread is in an intercepted function that completes requests.
class Completing {
 public:
  // The requests of the program, before MPI changes them.
  Completing(int count, const void* requests);
  ~Completing();
  Completing(const Completing&) = delete;
  Completing& operator=(const Completing&) = delete;

  // Whether sums are among them that are not complete.
  bool has_sums() const;

  // What the function has completed.
  struct Completed {
    int count = 0;
    const int* indices = nullptr;  // of the requests; null: the first ones
    int base = 0;                  // of the indices
    void* statuses = nullptr;      // where the function has an array of them, of so many
    bool several = false;          // the function has an array
  };

  // Gives the program the results of staged calls among them, and raises the errors of the sums.
  // Returns the code for the program, where MPI's own is `code`. ends: MPI has freed the requests.
  int raise(int code, const Completed& completed, bool ends = true);

 private:
  const void* const array_;  // the program's
  std::vector<mpi::Request> requests_;
  std::vector<std::uint64_t> staged_;
};

// The same for the call that runs in this fiber, on slimpi's own communicator: on the program's,
// other collectives may have begun since. begin() calls MPI's nonblocking function of the call's
// form, because another form may add in another order. Returns MPI's code.
int sum_by_mpi(const Allreduce& call, int (*begin)(const Allreduce& call, mpi::Request* request));

// MPI_Pcontrol: 0 off, 1 on, 2 writes the report.
void control(int level);

// Reads the slimpi_ keys of `info` as options of a communicator that was just made or changed.
// Returns the code that the program gets.
int take_info(mpi::Comm comm, mpi::Info info);

// "", or the line that says why a communicator's option cannot have this value.
std::string check_option(const char* name, const char* value);

// The process's value of an option, "" where it is unset; empty where there is no such option.
std::optional<std::string> option_value(const char* name);

// The state of a named tensor as bytes. Empty where the communicator has no such state. Waits for
// device memory.
std::optional<std::vector<std::byte>> save_state(mpi::Comm comm, const std::string& name);

// Local. False where the bytes are not what this rank of a communicator of this size saved.
bool restore_state(mpi::Comm comm, const std::string& name, std::span<const std::byte> bytes);

// Local. The next sum of that name begins without a state. True, also where there is none.
bool drop_state(mpi::Comm comm, const std::string& name);

// While this object lives, the thread frees `comm`. The program's delete callbacks run; float sums
// that they make on `comm` go to MPI.
class Freeing {
 public:
  explicit Freeing(mpi::Comm comm);
  ~Freeing();
  Freeing(const Freeing&) = delete;
  Freeing& operator=(const Freeing&) = delete;

  // Whether this thread is freeing `comm`. A thread sees its own increment at once, and needs no
  // other's.
  static bool is_freeing(mpi::Comm comm) {
    return alive_.load(std::memory_order_relaxed) != 0 && frees(comm);
  }

 private:
  static bool frees(mpi::Comm comm);
  static inline std::atomic<int> alive_{0};  // of all threads

  const mpi::Comm comm_;
  const Freeing* const outer_;
};

// While this object lives, MPI_Finalize runs. Delete callbacks of the program may call
// MPI_Allreduce on communicators that are about to be freed.
class Finalizing {
 public:
  Finalizing();
  ~Finalizing();
  Finalizing(const Finalizing&) = delete;
  Finalizing& operator=(const Finalizing&) = delete;

  // Whether the process is inside MPI_Finalize.
  static bool is_finalizing() { return now_.load(std::memory_order_relaxed); }

 private:
  static inline std::atomic<bool> now_{false};
};

// A session was opened; a session was closed.
void session_opened();
void session_closed();

// How many sessions were opened in this process so far.
int sessions_seen();

// For a count that only a missing function could take: logs an error and returns an MPI error code.
int refuse_count(const char* name, std::int64_t count);

}  // namespace slimpi::call
