// SPDX-License-Identifier: BSD-3-Clause
// A job that calls the library's own parts instead of MPI_Allreduce.
#pragma once
#include <mpi.h>

#include <cstddef>
#include <cstdio>
#include <cstring>
#include <string>

#include "base/status.h"
#include "device/device.h"
#include "mpi/api.h"

namespace slimpi::test {

struct Job {
  int rank = 0, size = 0;
  mpi::Api api{};
  device::Device staged = device::host();  // host memory that wants its messages staged

  Job(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    std::string version;
    if (mpi::find(api, version) != mpi::Found::yes) MPI_Abort(MPI_COMM_WORLD, 2);
    staged.staged = true;
  }

  void must(Status status, const char* what) const {
    if (status == Status::ok) return;
    std::fprintf(stderr, "rank %d: %s: %s\n", rank, what, failure_text().c_str());
    MPI_Abort(MPI_COMM_WORLD, 1);
  }

  // The exit status: 0 where no rank saw a failure.
  int end(int failures) const {
    int failed = 0;
    MPI_Allreduce(&failures, &failed, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    MPI_Finalize();
    return failed == 0 ? 0 : 1;
  }
};

}  // namespace slimpi::test
