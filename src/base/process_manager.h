// SPDX-License-Identifier: BSD-3-Clause
// The connection to the process manager: to MPICH's launcher Hydra, or to the server of the Python
// package that stands in for Hydra under torchrun. MPICH speaks PMI-1 there, line by line, and
// reads only the answers to its own questions. If a rank ends without MPI_Finalize, Hydra ends the
// job. The server cannot, so it tells the other ranks in a line that they did not ask for.
#pragma once
#include <optional>
#include <string>

namespace slimpi {

// Notes the connection, in MPI_Init: the Python package then removes the variables that name it, so
// that children do not use the connection.
void note_process_manager();

// A rank of MPI_COMM_WORLD that has ended without MPI_Finalize, -1 if the whole job has ended; and
// a text that says so.
struct LostRank {
  int rank = -1;
  std::string text;
};

// Returns the rank that the server has named, if it has. Looks at the connection at most ten times
// a second until then.
std::optional<LostRank> lost_rank();

// Tells the process manager that this process ends without MPI_Finalize, and that this is not a
// failure. Safe in a signal handler.
void leave_process_manager();

}  // namespace slimpi
