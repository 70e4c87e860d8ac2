// SPDX-License-Identifier: BSD-3-Clause
// The process's own MPI, found at run time: slimpi is not linked to one. slimpi calls MPI only
// through this table of PMPI_ functions, so neither slimpi nor another tool intercepts these calls.
#pragma once
#include <string>
#include <string_view>

#include "mpi/abi.h"

namespace slimpi::mpi {

struct Api {
#define SLIMPI_MPI(name, ...) int (*name)(__VA_ARGS__);
#include "mpi/functions.def"
#undef SLIMPI_MPI
};

// unclear: there are several, and none is known to be the one that the calls are for.
enum class Found { yes, no_mpi, unknown, unclear };

// Fills `api` when the process has an MPI that slimpi knows. `description` gets the MPI's own
// version line; where it is unclear, those of all.
Found find(Api& api, std::string& description);

// Whether a library of MPI's name was loaded from this directory.
bool has_loaded_from(std::string_view directory);

// The next definition of an intercepted function after this library: another tool's, or MPI's own.
// null if there is none. `name` is the full name ("MPI_Allreduce").
void* next_definition(const char* name);

// Whether this MPI reports that it takes pointers to GPU memory. False where it has no such query.
// May be called only after MPI was initialized.
bool takes_gpu_memory();

// Whether MPI_COMM_WORLD can be used: MPI_Init was called and MPI_Finalize was not.
bool has_world(const Api& api);

// Whether ranks of this communicator are in another MPI_COMM_WORLD than this process: processes
// that were spawned or connected to. If so, every rank of the communicator gets true. MPI has to be
// initialized, and not by sessions alone.
bool spans_other_world(const Api& api, mpi::Comm comm);

// The number in `other` of the first rank of `comm`; returns MPI's code.
int first_rank_in(const Api& api, Comm comm, Comm other, int* rank);

// For attributes that are not copied with their communicator: MPI_COMM_NULL_COPY_FN of every MPI.
CopyAttribute copy_no_attribute;

std::string error_text(const Api& api, int code);

}  // namespace slimpi::mpi
