// SPDX-License-Identifier: BSD-3-Clause
// The requests of the program that slimpi has work for: nonblocking sums (begin_nonblocking.cpp),
// persistent sums (persistent.cpp), and calls that MPI runs on copies of buffers that it cannot
// access (held_copy.cpp). HeldRequests is the one table of them. A request is shared by its owners:
// the table, until MPI frees the request; the queue, while its sum runs; and the function that
// completes it. When the program starts, completes, cancels or frees requests, src/intercept uses
// Completing and the functions of held.cpp in entry.h.
#pragma once
#include <array>
#include <atomic>
#include <cstdint>
#include <list>
#include <memory>
#include <mutex>
#include <vector>

#include "base/status.h"
#include "call/raise_error.h"
#include "mpi/abi.h"

namespace slimpi::call {

class Runtime;

// The failure of a request, which the function that completes the request raises as an error.
struct Failure {
  Failure() { text[0] = '\0'; }
  bool none() const { return status == Status::ok && code == mpi::kSuccess; }
  void clear() {
    status = Status::ok;
    code = mpi::kSuccess;
  }

  int code = mpi::kSuccess;  // MPI's code, if MPI made the sum
  Status status = Status::ok;
  Logging logging = Logging::here;
  char text[FailureScope::kMost];
};

// One request of the program. As MPI demands, only one thread at a time starts or completes it.
class Held : public std::enable_shared_from_this<Held> {
 public:
  Held(Runtime& its_runtime, mpi::Comm its_comm, std::uint64_t comm_id, bool is_persistent)
      : runtime(its_runtime), comm(its_comm), of_comm(comm_id), persistent(is_persistent) {}
  virtual ~Held();
  Held(const Held&) = delete;
  Held& operator=(const Held&) = delete;

  // Returns the communicator to raise an error on: the program's or, if the program has freed that,
  // MPI_COMM_WORLD. The program has freed it if the state of `comm` says so, if slimpi no longer
  // has state for the handle, or if the state's id is not `of_comm` because MPI has reused the
  // handle.
  mpi::Comm comm_for_errors() const;

  // Counts the request as in flight, or no longer. Intercepted functions that complete requests,
  // such as MPI_Wait, look for slimpi's requests only while some are in flight (sums_in_flight()).
  void set_in_flight(bool in_flight);

  // Returns whether slimpi makes the sum of the request; if not, MPI makes the call on copies.
  virtual bool is_sum() const { return true; }
  // Returns whether a sum of the request is running. An intercepted function that waits for the
  // request first lets this sum finish.
  virtual bool runs() const { return false; }
  // Returns whether the last sum has failed and no function has raised that error yet.
  virtual bool failed() const { return false; }

  // Called when the program starts a persistent request. before_start() does everything that may
  // fail, before MPI starts the request, and returns the code for the program. *begins says whether
  // slimpi has work in this start; if so, started() follows, or taken_back() if MPI has not started
  // the request.
  virtual int before_start(bool* begins) = 0;
  virtual void started() {}
  virtual void taken_back() = 0;

  // Called when a function of MPI has completed the request. `ends` says that MPI has freed it or
  // made it inactive. Returns whether to raise `failure`.
  virtual bool completed(bool ends) = 0;

  // Called when the program frees the request, before and after MPI does. freed() returns whether
  // MPI no longer uses anything of this object.
  virtual void before_free() {}
  virtual bool freed() { return true; }

  // Notes that this rank has called MPI_Finalize and will start no persistent request any more.
  virtual void end_starts() {}
  // Keeps the destructor from calling MPI, because MPI has ended or is about to.
  virtual void abandon() {}

  Runtime& runtime;
  const mpi::Comm comm;
  std::uint64_t of_comm;  // the id of slimpi's state of `comm`; 0 if it has none
  const bool persistent;
  mpi::Request handle = mpi::abi.request_null;
  Failure failure;

 private:
  std::atomic<bool> in_flight_{false};
};

// The table of the requests, by their handles.
class HeldRequests {
 public:
  using Entry = std::list<std::shared_ptr<Held>>;  // with one element

  // Returns the only table. It is never destroyed, because exit handlers may still call MPI.
  static HeldRequests& instance();

  // Adds the request in `entry`, which has its handle by now. Does not allocate, because a failure
  // here would lose MPI's request.
  void add(Entry& entry) noexcept;

  bool empty() const { return total_.load(std::memory_order_acquire) == 0; }

  // Returns the request with this handle, or null if slimpi has no work for it. For most requests
  // that slimpi has no work for, the lookup takes no lock.
  std::shared_ptr<Held> find(mpi::Request handle);

  // Removes the request from the table, because MPI may reuse its handle.
  Entry take(const Held& held) noexcept;

  // Returns the requests that is() accepts. No lock is held when this returns, so the caller may
  // call MPI.
  template <typename Is>
  std::vector<std::shared_ptr<Held>> find_all(const Is& is) {
    std::vector<std::shared_ptr<Held>> found;
    const std::lock_guard lock(mutex_);
    for (const Bucket& bucket : buckets_)
      for (const std::shared_ptr<Held>& one : bucket.list)
        if (is(*one)) found.push_back(one);
    return found;
  }

 private:
  struct Bucket {
    std::atomic<int> count{0};
    Entry list;
  };
  static constexpr int kBucketBits = 6;
  Bucket& bucket_of(mpi::Request handle) {
    const auto mixed = std::uint64_t(mpi::Word(handle)) * 0x9e3779b97f4a7c15u;
    return buckets_[std::size_t(mixed >> (64 - kBucketBits))];
  }

  std::atomic<int> total_{0};  // requests in all buckets
  std::mutex mutex_;  // guards the lists; MPI's callbacks lock it, so never call MPI under it
  std::array<Bucket, std::size_t(1) << kBucketBits> buckets_;
};

// Says, for its lifetime, that the thread is in an intercepted function that completes requests.
class Completing {
 public:
  // Notes the program's requests before MPI changes them.
  Completing(int count, const void* handles);
  ~Completing();
  Completing(const Completing&) = delete;
  Completing& operator=(const Completing&) = delete;

  // Returns whether a sum of one of these requests is running.
  bool has_sums() const;

  // Which requests the function has completed, and where its statuses are.
  struct Completed {
    int count = 0;
    const int* indices = nullptr;  // null: the first `count` requests
    int base = 0;                  // the first index: 0 in C, 1 in Fortran
    void* statuses = nullptr;      // the function's `count` statuses, if any
    bool several = false;          // whether the function takes an array
  };

  // Finishes the requests that a function has completed: copies the results of staged calls to the
  // program, takes the failures of completed sums, raises their errors, and sets the errors in the
  // statuses. `code` is the code that MPI returned. Returns the code for the program. `ends` says
  // that MPI has freed the completed requests, or made persistent ones inactive;
  // MPI_Request_get_status and its forms _all, _any and _some do neither.
  int raise(int code, const Completed& completed, bool ends = true);

 private:
  struct Noted {
    mpi::Request handle;
    std::shared_ptr<Held> held;
    HeldRequests::Entry taken = {};
    bool fails = false;  // raise() must raise an error
    // The error, or null if there was no memory for it. A copy, because an error handler that
    // raise() calls may start the request again.
    std::unique_ptr<Failure> failure = nullptr;
  };
  Noted* find(const Completed& completed, int i);
  bool completed_beside_error(const Noted& noted, int code, const Completed& completed) const;
  void finish_completed(int code, const Completed& completed, bool ends);
  void end();

  bool ended_ = false;
  const void* const array_;  // the program's handles
  std::vector<Noted> noted_;
};

// Returns whether this thread is in an intercepted function that completes requests.
bool is_completing();

// Notes that this rank starts no persistent sum any more, so that ranks that wait for it get an
// error.
void end_starts();

// Called when MPI_Finalize begins, with `mpi_has_ended` false: from now on, persistent sums free no
// MPI object, and MPI makes the sum at each start. Called again, with true, when MPI has ended:
// forgets all requests.
void abandon_requests(bool mpi_has_ended);

}  // namespace slimpi::call
