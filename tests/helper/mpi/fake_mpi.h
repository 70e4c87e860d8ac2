// SPDX-License-Identifier: BSD-3-Clause
// An MPI without processes, with as much of MPI as the decisions of src/call need. It is a shared
// library, so that slimpi finds it like any MPI. It has an MPI_COMM_WORLD of two ranks, of which
// this process is the first, MPI_COMM_SELF, and the communicators below. Functions that need the
// other rank fail.
#pragma once
#include <mpi.h>

#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace slimpi::test {

constexpr MPI_Comm kIntercommunicator = MPI_Comm(0x44000010);
constexpr MPI_Comm kInvalidComm = MPI_Comm(0x44000020);
constexpr int kErrorOfHandler = 77;  // what a call on kInvalidComm returns

struct FakeMpi {
  bool initialized = false;
  bool agrees = false;  // messages arrive: the other rank has the same values
  int allreduces = 0;   // calls that reached MPI_Allreduce
  // The program's; called for kInvalidComm, and because there is no room for an error class.
  std::function<void()> error_handler;
  std::vector<std::pair<std::string, std::string>> info;  // the keys of every info object
};
FakeMpi& fake_mpi();

}  // namespace slimpi::test
