// SPDX-License-Identifier: BSD-3-Clause
// Follows the program's communicators: slimpi keeps its state of a communicator in an attribute of
// the communicator. When the communicator is freed, MPI calls the attribute's delete callback,
// which drops the state. The keyval of the attribute exists only while some communicator is
// followed, because MPI forgets keyvals when it ends, and a program with sessions may start MPI
// again.
#pragma once
#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <set>

#include "comm/communicator.h"
#include "mpi/abi.h"
#include "options/option_types.h"

namespace slimpi::call {

class Runtime;

class Registry {
 public:
  explicit Registry(Runtime& runtime) : runtime_(runtime) {}

  // Returns slimpi's state for the user's communicator, which the first call creates. Returns null
  // if there can be none: for MPI_COMM_NULL, a communicator that is being freed, a thread
  // communicator (whose ranks would share one state), or one that MPI cannot attach the state to.
  // If MPI does not know the communicator, the error handler has run, and *raised, unless null, is
  // the code for the program.
  comm::Communicator* find_or_follow(mpi::Comm comm, std::optional<int>* raised = nullptr);

  // Returns slimpi's state if there is one already, otherwise null. Calls no MPI function. For
  // threads that know that no other thread frees the communicator; others call use().
  comm::Communicator* find(mpi::Comm comm);

  // Calls use(communicator) if `comm` still is the communicator whose state has this id, and the
  // program has not freed it. A thread that frees the communicator waits until use() returns, so
  // use() must not call MPI. May be called with HoldFibers (queue.h), as fibers do.
  template <typename Use>
  void use(mpi::Comm comm, std::uint64_t id, const Use& use) {
    const std::lock_guard lock(mutex_);
    for (comm::Communicator* const known : followed_)
      if (known->user() == comm && known->id == id && !known->freed()) use(*known);
  }

  // Returns the largest communicator that slimpi follows and that the program has not freed, or
  // null.
  mpi::Comm largest();

  // Drops the states of communicators that MPI freed late, after the program's free had returned
  // (see forget()). Must not be called in a callback of MPI, where no MPI function may be called.
  void drop_late();

  // Waits until all ranks have called MPI_Finalize. Meanwhile this rank answers ranks that wait for
  // it in a sum, which would otherwise hang instead of failing. Repeatedly calls `meet`, unless it
  // is empty, and returns its last result: true once all ranks are there, false if this rank gives
  // up waiting for them.
  bool wait_for_finalize(const std::function<std::optional<bool>()>& meet);

  // Makes all communicators abandon their handles, so that they call no MPI function afterwards. If
  // MPI still works (`mpi_works`), messages of roll calls (a stalled rank's questions) are received
  // first.
  void abandon(bool mpi_works);

  // Drops all states, even those of communicators that were never freed. Called after MPI has
  // ended, when every handle is invalid.
  void mpi_ended();

  // For each type that SLIMPI_TYPES does not name, the communicator on which this rank last left a
  // sum of the type to MPI. Communicator::refuse_type() has told the other ranks of that
  // communicator, so its later sums of the type go to MPI at once.
  std::array<std::atomic<mpi::Comm>, kElementTypes> refused_types{};

 private:
  class Pin;
  comm::Communicator* follow(mpi::Comm comm, std::optional<int>* raised);
  bool make_keyval(int* keyval);
  void handles_end();
  void unpin();
  void drop(comm::Communicator* communicator);
  static int forget(mpi::Comm comm, int keyval, void* value, void* registry);

  Runtime& runtime_;
  std::atomic<bool> has_late_{false};
  std::atomic<bool> abandoned_{false};
  std::atomic<std::uint64_t> generation_{1};  // incremented when a communicator is freed
  std::mutex mutex_;                          // protects all members below
  std::set<comm::Communicator*> followed_;
  std::set<comm::Communicator*> late_;    // freed by MPI, to be dropped
  int keyval_ = mpi::abi.keyval_invalid;  // valid while a communicator is followed or pins_ > 0
  int pins_ = 0;                          // threads that use keyval_
};

// Says, for its lifetime, that this thread is freeing `comm`. MPI then calls the program's delete
// callbacks, and float sums that these run on `comm` go to MPI.
class Freeing {
 public:
  explicit Freeing(mpi::Comm comm);
  ~Freeing();
  Freeing(const Freeing&) = delete;
  Freeing& operator=(const Freeing&) = delete;

  // Returns whether this thread is freeing `comm`. A relaxed load is enough, because a thread sees
  // its own increment at once, and the increments of other threads do not matter.
  static bool is_freeing(mpi::Comm comm) {
    return alive_.load(std::memory_order_relaxed) != 0 && frees(comm);
  }

 private:
  static bool frees(mpi::Comm comm);
  static inline std::atomic<int> alive_{0};  // objects of all threads

  const mpi::Comm comm_;
  const Freeing* const outer_;
};

// Says, for its lifetime, that MPI_Finalize is running. All sums then go to MPI, because delete
// callbacks of the program may call MPI_Allreduce on communicators that are about to be freed.
class Finalizing {
 public:
  Finalizing();
  ~Finalizing();
  Finalizing(const Finalizing&) = delete;
  Finalizing& operator=(const Finalizing&) = delete;

  // Returns whether the process is inside MPI_Finalize.
  static bool is_finalizing() { return now_.load(std::memory_order_relaxed); }

 private:
  static inline std::atomic<bool> now_{false};
};

// Count the open MPI sessions. If MPI ends with the last of them, slimpi forgets all handles.
void session_opened();
void session_closed();

// Called after MPI_Finalize: forgets the program's requests, unless a session still uses MPI.
void world_closed();

// Returns how many sessions this process has opened so far.
int sessions_seen();

}  // namespace slimpi::call
