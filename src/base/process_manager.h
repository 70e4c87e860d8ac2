// SPDX-License-Identifier: BSD-3-Clause
// The connection to the process manager, which is MPICH's launcher Hydra or, under torchrun, the
// server of the Python package that replaces Hydra. MPICH speaks PMI-1 there, line by line, and
// reads only the answers to its own questions. If a rank ends without MPI_Finalize, Hydra ends the
// job. The server cannot do that, so it sends the other ranks a line that they did not ask for.
#pragma once
#include <optional>
#include <string>

namespace slimpi {

// Called in MPI_Init to remember the connection. The Python package then removes the variables that
// name it, so that child processes do not use it.
void note_process_manager();

// A rank of MPI_COMM_WORLD that has ended without MPI_Finalize, or -1 if the whole job has ended,
// and a text that says so.
struct LostRank {
  int rank = -1;
  std::string text;
};

// Returns the rank that the server has named, if any. Until the server names one, looks at the
// connection at most ten times a second.
std::optional<LostRank> lost_rank();

// Tells the process manager that this process ends without MPI_Finalize and that this is no
// failure. May be called in a signal handler.
void leave_process_manager();

}  // namespace slimpi
