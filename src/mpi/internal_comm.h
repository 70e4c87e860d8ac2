// SPDX-License-Identifier: BSD-3-Clause
// Communicators of slimpi's own. Only this file makes them from a communicator of the program.
//
// The rules for internal communicators and attributes:
//  - Nothing of the program's is called, copied or counted by slimpi's own work. Internal
//    communicators come from MPI_Comm_create, or, for nonblocking sums, MPI_Comm_create_group,
//    which copy no attributes, never from MPI_Comm_dup. Messages of MPI_Comm_create_group that the
//    program could receive are sent on a communicator of slimpi's (make_hidden_world).
//    (comm/node_layout.cpp uses MPI_Comm_split_type for a moment, on an internal one.) No error
//    handler of the program runs because slimpi could not get one. No attribute is set on a
//    communicator that is being freed.
//  - Nothing of slimpi's outlives the MPI that it came from. A process that uses sessions may end
//    MPI and start it again; the old handles are then invalid. So what slimpi makes with MPI is
//    freed with the communicator that it serves, or is forgotten when MPI ends.
//  - MPICH has 2048 context ids for communicators and windows together. slimpi takes one for each
//    communicator that it serves, for at most kMostServed of them, so a program can make almost as
//    many communicators as without slimpi.
#pragma once
#include <atomic>
#include <cstddef>
#include <functional>
#include <memory>
#include <span>

#include "base/status.h"
#include "mpi/api.h"

namespace slimpi::mpi {

constexpr int kMostServed = 32;

// Waits until poll(&done) sets `done`. `arrivals`: a word of each rank, negative until something
// came from that rank; empty where MPI does not tell. `limited`: SLIMPI_TIMEOUT ends the wait, with
// Status::absent.
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

// The failure that a refusal is. unsupported: nothing is wrong, and the program's calls go to MPI
// without a warning. disagreement: not printed yet; the ranks that refuse are in MPI.
Status refuse(Refusal why);

// The first words that the ranks of a communicator exchange, on that communicator: of all ranks,
// the highest number, at least 0 and less than 2^24, and the last refusal. On few ranks every rank
// sends its words to every other, so that arrivals are seen one by one. Stays where it is; MPI uses
// it until the request is complete, so its owner is a FirstExchange::Owner.
class FirstExchange {
 public:
  // Nonblocking; collective.
  Status begin(const Api& api, mpi::Comm comm, int number, Refusal refusal);
  // Waits until the request is complete.
  Status wait(const WaitFor& wait_for, bool limited);
  // A word of each rank, negative until it came; empty where MPI does not tell.
  std::span<const int> arrivals() const { return {words_, shown_}; }
  // Once the request is complete.
  int number() const;
  Refusal refusal() const;

  mpi::Request request = mpi::abi.request_null;

  // Leaves it to MPI where the request is not complete.
  struct Leave {
    void operator()(FirstExchange* exchange) const;
  };
  using Owner = std::unique_ptr<FirstExchange, Leave>;
  static Owner make() { return Owner(new FirstExchange); }

 private:
  // Up to this many ranks, the words show which ranks have arrived.
  static constexpr int kShownRanks = 64;
  const Api* api_ = nullptr;
  int own_ = 0;
  int words_[kShownRanks] = {};
  int ones_[kShownRanks], zeros_[kShownRanks], places_[kShownRanks];
  std::size_t shown_ = 0;  // ranks; 0: words_ has the two maxima
};

// Makes an internal communicator with the ranks of `user`, an intracommunicator of the program, in
// their order. Collective over it. Fails on all ranks together, with *made MPI_COMM_NULL, where a
// rank already serves kMostServed communicators or MPI has no free context id. Errors on *made
// return. *number: the same on all ranks, and no other communicator of this process has it.
// *refusal: why it failed. `in_fiber`: all ranks have MPI_THREAD_MULTIPLE; else it fails on all
// that have. What is collective over `user` begins before the first wait then, and any number of
// communicators is served.
//
// A rank that has waited for SLIMPI_TIMEOUT must not leave the others in MPI_Comm_create. So there
// are two exchanges before that. A rank gives up in the first one only, and says so in the second
// one, which all that have completed the first one wait for. In a fiber nothing but the first one
// is collective over `user`; there MPI_Comm_create_group runs in a thread that is left behind.
Status make_internal(const Api& api, mpi::Comm user, const WaitFor& wait, bool in_fiber,
                     mpi::Comm* made, int* number, Refusal* refusal);

// A communicator with the ranks of an internal one; it does not count as served. Calls at the same
// time have different tags, from 0 to 4096. Collective, also in a fiber.
Status copy_internal(const Api& api, mpi::Comm internal, int tag, mpi::Comm* made);

// Where MPI_Comm_create_group on a communicator of the program is no way to make one, another
// communicator of all processes of MPI_COMM_WORLD takes its place. Collective over that.
void make_hidden_world(const Api& api);
// Whether make_internal() can be called in a fiber; the same on all ranks, unless they initialized
// MPI differently.
bool can_make_internal_in_fiber();

// Whether a thread of slimpi can help sums that the program does not wait for: it has
// MPI_THREAD_MULTIPLE, and no tool hides the functions that complete requests.
bool can_help(const Api& api);

// Functions that a tool in front of slimpi calls by PMPI names, so that slimpi does not see them.
// Set when slimpi starts.
inline std::atomic<bool> g_starts_hidden{false}, g_completions_hidden{false};

// A number that no communicator or channel of this process has.
int next_number();
// None gets a number up to this one any more.
void use_number(int number);

// Frees what make_internal made.
void free_internal(const Api& api, mpi::Comm* comm);

// MPI ended, and with it all communicators, also those that were never freed.
void forget_internal();

}  // namespace slimpi::mpi
