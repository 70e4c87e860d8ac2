// SPDX-License-Identifier: BSD-3-Clause
// A program whose error handler and operation throw exceptions. These must pass through slimpi,
// whether MPI or slimpi has called the function, and afterwards slimpi's own exceptions must become
// MPI errors, as before. Usage: throwing_handler
#include "tests/helper/base/program.h"

#include <stdexcept>

namespace {

constexpr int kCount = 20000, kMost = kCount + 8;

void handler(MPI_Comm*, int*, ...) {
  throw std::runtime_error("the handler's own");
}

void operation(void*, void*, int*, MPI_Datatype*) {
  throw std::runtime_error("the operation's own");
}

// Returns "" if the call returns MPI_SUCCESS, "an error" if it returns another code, or the text of
// the exception that it throws.
std::string result_of(const auto& call) {
  try {
    return call() == MPI_SUCCESS ? "" : "an error";
  } catch (const std::exception& thrown) {
    return thrown.what();
  }
}

std::string sum(MPI_Comm comm, int count = kCount) {
  std::vector<float> in(kMost, 1), out(kMost);
  return result_of(
      [&] { return MPI_Allreduce(in.data(), out.data(), count, MPI_FLOAT, MPI_SUM, comm); });
}

std::string reduce(MPI_Comm comm, MPI_Op op) {
  int in = 1, out = 0;
  return result_of([&] { return MPI_Allreduce(&in, &out, 1, MPI_INT, op, comm); });
}

MPI_Comm duplicate(MPI_Errhandler errors) {
  MPI_Comm comm = MPI_COMM_NULL;
  PMPI_Comm_dup(MPI_COMM_WORLD, &comm);
  PMPI_Comm_set_errhandler(comm, errors);
  return comm;
}

// Makes the first sum on a new communicator with different counts on the ranks, which slimpi
// reports as an error. `failed`: the expected result.
void run_with_other_counts(MPI_Errhandler errors, const std::string& failed,
                           const std::string& when) {
  MPI_Comm comm = duplicate(errors);
  const std::string result = sum(comm, kCount + g_rank);
  check(result == failed, ("other counts, " + when + ": " + result).c_str());
  PMPI_Comm_free(&comm);
}

}  // namespace

int main() {
  begin_mpi();
  MPI_Errhandler throws = MPI_ERRHANDLER_NULL;
  MPI_Comm_create_errhandler(handler, &throws);
  MPI_Op op = MPI_OP_NULL;
  MPI_Op_create(operation, 1, &op);

  check(sum(MPI_COMM_WORLD).empty(), "the first sum, which starts slimpi");
  run_with_other_counts(MPI_ERRORS_RETURN, "an error", "before any exception");
  MPI_Comm comm = duplicate(throws);
  check(sum(comm).empty(), "a sum");
  check(reduce(comm, op) == "the operation's own", "MPI calls the operation");
  run_with_other_counts(MPI_ERRORS_RETURN, "an error", "after the operation's exception");
  run_with_other_counts(throws, "the handler's own", "slimpi calls the handler");
  run_with_other_counts(MPI_ERRORS_RETURN, "an error", "after the handler's exception");
  check(sum(comm).empty(), "a sum at the end");
  PMPI_Comm_free(&comm);
  MPI_Errhandler_free(&throws);
  MPI_Op_free(&op);
  if (g_failures == 0 && g_rank == 0) std::puts("right");
  return end_mpi();
}
