// SPDX-License-Identifier: BSD-3-Clause
// The process's own MPI, found at run time: slimpi is not linked to one. All of slimpi's calls to
// MPI go through this table of PMPI_ functions, so neither slimpi nor another tool sees them.
#pragma once
#include <mpi.h>

#include <string>

namespace slimpi::mpi {

struct Api {
#define SLIMPI_MPI(name) decltype(&::PMPI_##name) name;
#include "mpi/functions.def"
#undef SLIMPI_MPI
};

enum class Found { yes, no_mpi, other_abi };

// Looks for PMPI_ functions behind this library in the symbol order (programs linked to MPI), then
// in every loaded libmpi* (Python loads MPI without publishing its symbols). Fills `api` when the
// MPI has the ABI that slimpi was built for. `description` gets the MPI's own version line.
Found find(Api& api, std::string& description);

// The next definition of an intercepted function behind this library: another tool's, or MPI's own.
// null if there is none. `name` is spelled in full ("MPI_Allreduce").
void* next_definition(const char* name);

// Whether this MPI says that it takes pointers to a GPU's memory. No where it has no such question.
// To be asked after MPI was initialized.
bool takes_gpu_memory();

// Whether MPI_COMM_WORLD can be used: MPI_Init was called and MPI_Finalize was not.
bool has_world(const Api& api);

// Whether ranks of this communicator are in another MPI_COMM_WORLD than this process, which was
// spawned or connected to. Where ranks are, each of them finds some. MPI has to be initialized, and
// not by sessions alone.
bool spans_other_world(const Api& api, MPI_Comm comm);

// The text of an MPI error code.
std::string error_text(const Api& api, int code);

}  // namespace slimpi::mpi
