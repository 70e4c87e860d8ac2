// SPDX-License-Identifier: BSD-3-Clause
// The process's own MPI, found at run time, because slimpi is not linked to one. slimpi calls MPI
// only through this table of PMPI_ functions, so neither slimpi nor another tool intercepts these
// calls.
#pragma once
#include <cstddef>
#include <string>
#include <string_view>

#include "base/fiber.h"
#include "base/status.h"
#include "mpi/abi.h"

namespace slimpi::mpi {

// A function of MPI. A call inside a fiber runs on the thread's own stack. While MPI makes progress
// it may run functions of the program, such as an MPI_Op of another request, and how much stack
// these need is unknown.
template <typename... Arguments>
class Function {
 public:
  using Pointer = int (*)(Arguments...);
  Function() = default;
  Function& operator=(Pointer pointer) {
    pointer_ = pointer;
    return *this;
  }
  bool operator==(std::nullptr_t) const { return pointer_ == nullptr; }

  int operator()(Arguments... arguments) const {
    int code = kSuccess;
    on_threads_stack([&] { code = pointer_(arguments...); });
    return code;
  }

 private:
  Pointer pointer_ = nullptr;
};

struct Api {
#define SLIMPI_MPI(name, ...) Function<__VA_ARGS__> name;
#include "mpi/functions.def"
};

// The result of find(). `unknown` means that slimpi does not know the process's MPI, or that this
// MPI lacks functions; `unclear`, that there are several MPIs, and slimpi cannot tell which of them
// the program calls.
enum class Found { yes, no_mpi, unknown, unclear };

// Fills `api` if the process has an MPI that slimpi knows. Sets `description` to the MPI's version
// line or, if the MPI is unclear, to the version lines of all.
Found find(Api& api, std::string& description);

// Returns whether a library whose name begins with libmpi was loaded from this directory.
bool has_loaded_from(std::string_view directory);

// Returns the next definition of an intercepted function after slimpi's, another tool's or MPI's,
// or null. `name` is the full name ("MPI_Allreduce").
void* next_definition(const char* name);

// Returns whether this MPI reports that it takes pointers to GPU memory; false if it cannot be
// asked. MPI must be initialized.
bool takes_gpu_memory();

// Returns whether MPI_COMM_WORLD can be used: whether MPI_Init was called and MPI_Finalize was not.
bool has_world(const Api& api);

// Returns whether the ranks of this communicator are in different MPI_COMM_WORLDs, because
// processes were spawned or connected. All ranks of the communicator get the same answer. MPI must
// be initialized, and not only by sessions.
bool spans_other_world(const Api& api, mpi::Comm comm);

// Returns whether this is a thread communicator of MPICH, where each thread is a rank.
bool is_thread_comm(Comm comm);

// Sets *rank to the rank in `other` that rank 0 of `comm` has. Returns MPI's code.
int first_rank_in(const Api& api, Comm comm, Comm other, int* rank);

// A copy callback for attributes that are not copied with their communicator, like
// MPI_COMM_NULL_COPY_FN, but for every MPI.
CopyAttribute copy_no_attribute;

std::string error_text(const Api& api, int code);

// Fails with `what`, followed by MPI's text for an error code. The status is rank_failed or revoked
// if the code is of one of these error classes of ULFM, because the program must get that class;
// otherwise it is Status::mpi.
Status fail_by(const Api& api, const char* what, int code);

// Return ok with an MPI that lacks ULFM. Otherwise check_revoked() fails if the program has revoked
// the communicator, and check_failed() if MPI knows that the process of a rank has failed. Neither
// function communicates.
Status check_revoked(Comm comm);
Status check_failed(const Api& api, Comm comm);

}  // namespace slimpi::mpi
