// SPDX-License-Identifier: BSD-3-Clause
// The requests of the program that slimpi has work for: nonblocking sums (begin_nonblocking.cpp)
// and persistent sums (persistent.cpp). HeldRequests is the one table of them. Whoever works with a
// request shares it: the table, until MPI frees the request; the queue, while its sum runs; and the
// function that completes it.
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

// The failure of a request, an error that the function that completes the request raises.
struct Failure {
  bool none() const { return status == Status::ok && code == mpi::kSuccess; }
  void clear() {
    status = Status::ok;
    code = mpi::kSuccess;
  }

  int code = mpi::kSuccess;  // MPI's code, if MPI made the sum
  Status status = Status::ok;
  Logging logging = Logging::here;
  char text[FailureScope::kMost] = "";
};

// One request of the program. MPI demands that one thread at a time starts or completes it.
class Held : public std::enable_shared_from_this<Held> {
 public:
  Held(Runtime& its_runtime, mpi::Comm its_comm, std::uint64_t comm_id, bool is_persistent)
      : runtime(its_runtime), comm(its_comm), of_comm(comm_id), persistent(is_persistent) {}
  virtual ~Held();
  Held(const Held&) = delete;
  Held& operator=(const Held&) = delete;

  // Returns the communicator on which to raise an error: the program's, or MPI_COMM_WORLD if the
  // program has freed its own. That is so if slimpi has no state of `comm` any more, or a state
  // whose id is not `of_comm`, because MPI has used the handle again.
  mpi::Comm comm_for_errors() const;

  // Counts the request among those in flight, or no longer. The functions of MPI that complete
  // requests look for this request only while it counts (sums_in_flight).
  void set_in_flight(bool in_flight);

  // Returns whether a sum of the request runs. A function of MPI that waits for the request first
  // lets the sum end.
  virtual bool runs() const = 0;
  // Returns whether the last sum has failed and no function has raised that error yet.
  virtual bool failed() const = 0;
  // Called when a function of MPI has completed the request. Returns whether to raise `failure`.
  virtual bool completed() = 0;

  Runtime& runtime;
  const mpi::Comm comm;
  const std::uint64_t of_comm;  // the id of slimpi's state of `comm`
  const bool persistent;
  mpi::Request handle = mpi::abi.request_null;
  Failure failure;

 private:
  std::atomic<bool> in_flight_{false};
};

// The table of the requests, by their handles.
class HeldRequests {
 public:
  using Entry = std::list<std::shared_ptr<Held>>;  // of one element

  // Returns the only table, which is never destroyed: exit handlers may still call MPI.
  static HeldRequests& instance();

  bool empty() const { return all_.load(std::memory_order_acquire) == 0; }

  // Adds the one element of `entry`, whose handle is known now. Allocates nothing: a failure here
  // would lose MPI's request.
  void add(Entry& entry) noexcept;

  // Returns the request with this handle; null if slimpi has no work for it. The test of nearly all
  // other requests takes no lock.
  std::shared_ptr<Held> find(mpi::Request handle);

  // Removes the request, because MPI may use its handle again.
  void remove(const Held& held) noexcept;

  // Returns the requests that is() accepts. No lock is held when this returns, so the caller
  // may call MPI.
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

  std::mutex mutex_;  // guards the lists. Callbacks of MPI lock it, so its owner calls no MPI
  std::array<Bucket, std::size_t(1) << kBucketBits> buckets_;
  std::atomic<int> all_{0};
};

}  // namespace slimpi::call
