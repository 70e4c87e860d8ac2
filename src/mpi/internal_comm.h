// SPDX-License-Identifier: BSD-3-Clause
// Internal communicators, which are slimpi's own and carry its messages. Only this file makes them
// from a communicator of the program.
//
// The rules for internal communicators and attributes:
//  - slimpi's own work calls no callback of the program and copies none of its attributes. Internal
//    communicators come from MPI_Comm_create, or, for nonblocking sums, from MPI_Comm_create_group,
//    which copy no attributes; never from MPI_Comm_dup. If an MPI sends messages in
//    MPI_Comm_create_group that the program could receive, slimpi calls it on a communicator of
//    slimpi's own (make_hidden_world). comm/communicator_nodes.cpp uses MPI_Comm_split_type, on an
//    internal communicator. If slimpi cannot get a communicator, no error handler of the program
//    runs, except in the case that make_internal() in internal_comm.cpp names. slimpi sets no
//    attribute on a communicator that is being freed.
// - No object of slimpi outlives the MPI that it came from. A process that uses sessions may end
//   MPI and start it again, after which the old handles are invalid. So slimpi frees what it makes
//   with MPI together with the communicator that it serves, or forgets it when MPI ends.
// - MPICH has 2048 context ids, one for each communicator or window. slimpi takes one for each
//   communicator that it serves, and serves at most kMostServed at a time. The id of a communicator
//   that failed is never given back. The first kMostLost of them do not count, so that a program
//   which survives failures is still served. A program can therefore make almost as many
//   communicators as without slimpi.
#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>

#include "base/status.h"
#include "mpi/api.h"

namespace slimpi::mpi {

constexpr int kMostServed = 32;  // communicators of the program with an internal one, at a time
constexpr int kMostLost = 256;   // internal communicators that failed and do not count as served

// WaitFor is the caller's function that waits until poll(&done) sets `done`. `arrivals` has one
// word per rank, which is negative until a message from that rank has arrived; it is empty if
// arrivals are not known. A `limited` wait fails with Status::absent after SLIMPI_TIMEOUT.
using Poll = std::function<Status(bool* done)>;
using WaitFor =
    std::function<Status(const Poll& poll, std::span<const int> arrivals, bool limited)>;

// Why a rank does not take part in an internal communicator. If ranks differ, the largest value
// wins.
enum class Refusal {
  none,
  no_more,          // the process serves kMostServed communicators
  no_room,          // MPI has hardly any context ids left
  single_threaded,  // the process leaves nonblocking sums to MPI
  other_types,      // SLIMPI_TYPES of the rank does not name the type of the sum
  gave_up,          // the rank has waited for SLIMPI_TIMEOUT
};

// Returns the failure for a refusal, or ok if there is none. The Status is one of
//   unsupported   a limit is reached, so calls go to MPI without a warning
//   absent        a rank gave up
//   disagreement  the ranks that refused are in MPI's own sum, where no message reaches them, so
//                 the caller must log the failure
Status refuse(Refusal why);

// An exchange between the ranks of a communicator of the program, on that communicator. Each rank
// passes a refusal, and a number (0 to 2^24 - 1) that it proposes for the internal communicator;
// all ranks get the largest of each. With up to kShownRanks ranks, every rank sends both to every
// other rank in one word, so each rank sees which ranks have arrived. MPI uses the object until the
// request is complete, which is why it is owned by a FirstExchange::Owner.
class FirstExchange {
 public:
  // Begins the exchange. Nonblocking; collective.
  Status begin(const Api& api, mpi::Comm comm, int number, Refusal refusal);
  // Waits until the request is complete.
  Status wait(const WaitFor& wait_for, bool limited);
  // Returns one word per rank, which is negative until the rank's message has arrived. With more
  // than kShownRanks ranks, returns an empty list.
  std::span<const int> arrivals() const { return {words_, shown_}; }
  // Return the results after wait(), the same on all ranks. proposer() is a rank that proposed
  // number().
  int number() const;
  int proposer() const;
  Refusal refusal() const;

  mpi::Request request = mpi::abi.request_null;

  // Frees the exchange. If the request is not complete, MPI keeps the memory until the process
  // ends.
  struct Leave {
    void operator()(FirstExchange* exchange) const;
  };
  using Owner = std::unique_ptr<FirstExchange, Leave>;
  static Owner make() { return Owner(new FirstExchange); }

 private:
  // With at most this many ranks, words_ shows which ranks have arrived.
  static constexpr int kShownRanks = 64;
  const Api* api_ = nullptr;
  int own_ = 0;
  int words_[kShownRanks] = {};
  int ones_[kShownRanks], zeros_[kShownRanks], places_[kShownRanks];
  std::size_t shown_ = 0;  // ranks in words_; if 0, maxima_ has the results
  // Reduced with MPI_MAX. maxima_[0] has the number in its upper 32 bits, and the rank that
  // proposed it in the lower ones; maxima_[1] has the refusal. The highest bit is never set,
  // because Debian's MPICH 4.0.2 compares unsigned integers as signed ones.
  std::uint64_t maxima_[2] = {};
};

// Makes an internal communicator with the ranks of `user`, an intracommunicator of the program, in
// their order and with MPI_ERRORS_RETURN. Collective over `user`. Fails on all ranks together, with
// *made MPI_COMM_NULL and the reason in *refusal, if a rank already serves kMostServed
// communicators or MPI has no free context id. *number is the same on all ranks; two communicators
// have the same number only if ranks made them at the same time in different orders.
//
// `in_fiber` says that the caller runs in a fiber, which needs MPI_THREAD_MULTIPLE on all ranks; if
// a rank lacks it, the call fails on the ranks that have it. All that is collective over `user`
// begins before the first wait, because afterwards the program may begin collectives on `user`. In
// a fiber, sums have already begun and need a communicator. So even if a rank already serves
// kMostServed communicators, all ranks get one, with *refusal no_more, and free it after these
// sums.
//
// A rank that gives up after SLIMPI_TIMEOUT must not leave the other ranks waiting in
// MPI_Comm_create, so the ranks make two exchanges before that call. A rank gives up only in the
// first exchange, and says so in the second. All ranks that have completed the first exchange wait
// for the second. In a fiber there is only the first exchange, and MPI_Comm_create_group runs in a
// thread, which is abandoned if the wait for the thread fails.
Status make_internal(const Api& api, mpi::Comm user, const WaitFor& wait, bool in_fiber,
                     mpi::Comm* made, int* number, Refusal* refusal);

// Makes another communicator with the ranks of an internal communicator. The copy does not count
// towards kMostServed. Calls that run at the same time must have different `tag`s, from 0 to 4096.
// Collective; may run in a fiber.
Status copy_internal(const Api& api, mpi::Comm internal, int tag, mpi::Comm* made);

// Makes a communicator, hidden from the program, of all processes of MPI_COMM_WORLD. If
// MPI_Comm_create_group sends messages that the program could receive (Abi::create_group_is_seen),
// slimpi calls it on this communicator. Also makes the communicators that the first sum over
// MPI_COMM_WORLD needs in a fiber, so that make_internal() and copy_internal() then make none.
// Collective over MPI_COMM_WORLD.
void make_hidden_world(const Api& api);
// Returns whether make_internal() can be called in a fiber. All ranks get the same answer, unless
// they initialized MPI differently, or only some of them know that a process has failed (ULFM).
bool can_make_internal_in_fiber(const Api& api);

// Returns whether MPI has context ids for another communicator, besides those being made. Does not
// communicate.
bool has_room_in_fiber(const Api& api, mpi::Comm comm);

// Returns whether a thread of slimpi can advance nonblocking and persistent sums: whether MPI has
// MPI_THREAD_MULTIPLE, and no tool hides the functions that complete requests. Otherwise slimpi
// takes no such sum, because other ranks may wait for this rank while the program blocks, in MPI or
// elsewhere.
bool can_help(const Api& api);

// Set when slimpi starts, if slimpi does not see the program's calls of functions that start
// (g_starts_hidden) or complete (g_completions_hidden) requests, because a tool in front of slimpi
// calls these functions by their PMPI_ names.
inline std::atomic<bool> g_starts_hidden{false}, g_completions_hidden{false};

// Returns a number that no communicator or channel of this process has.
int next_number();
// Makes next_number() return only numbers above `number`.
void use_number(int number);

// Frees a communicator that make_internal() made.
void free_internal(const Api& api, mpi::Comm* comm);
// Notes that a communicator that make_internal() made has failed and will never be freed.
void lose_internal();

// Forgets all internal communicators, even those never freed, because MPI has ended.
void forget_internal();

}  // namespace slimpi::mpi
