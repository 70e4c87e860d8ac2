// SPDX-License-Identifier: BSD-3-Clause
// Communicators of slimpi's own: the only place that makes them from a communicator of the program.
//
// The rule for internal communicators and attributes:
//  - Nothing of the program's is called, copied or counted by slimpi's own work. Internal
//    communicators come from MPI_Comm_create or MPI_Comm_split, which copy no attributes, never
//    from MPI_Comm_dup. No error handler of the program runs because slimpi could not get one. No
//    attribute is set on a communicator that is being freed.
//  - Nothing of slimpi's outlives the MPI it came from. A process that uses MPI by sessions may end
//    MPI and start it anew: handles of the first do not hold in the second. So what slimpi makes
//    with MPI goes with the communicator that it serves, or is forgotten when MPI ends.
//  - MPICH has 2048 context ids for communicators and windows together. slimpi takes one for each
//    communicator it serves, for at most kMostServed of them, so that a program finds room for as
//    many communicators as without slimpi, but for a handful.
#pragma once
#include "base/status.h"
#include "mpi/api.h"

namespace slimpi::mpi {

constexpr int kMostServed = 32;

// How many communicators of the program this process has an internal one for.
int served();

// Makes an internal communicator with the ranks of `user`, an intracommunicator of the program, in
// their order. Collective over it. Fails on all ranks alike, with *made MPI_COMM_NULL, where a rank
// serves as many as it may or MPI has no room left. Errors on *made return.
Status make_internal(const Api& api, MPI_Comm user, MPI_Comm* made);

// The same from an internal communicator; it does not count as served.
Status copy_internal(const Api& api, MPI_Comm internal, MPI_Comm* made);

// Gives back what make_internal made.
void free_internal(const Api& api, MPI_Comm* comm);

// MPI ended and took all communicators along, those too that were never given back.
void forget_internal();

}  // namespace slimpi::mpi
