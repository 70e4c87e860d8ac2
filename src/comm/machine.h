// SPDX-License-Identifier: BSD-3-Clause
// Which ranks of a communicator run on the machine of this rank, and on which cores.
#pragma once
#include <span>
#include <vector>

#include "base/status.h"
#include "mpi/api.h"
#include "topology/cores.h"

namespace slimpi::comm {

// What a rank tells the others of its machine. Sent as bytes.
struct LocalProcess {
  int rank = 0;           // in the communicator
  topology::Cores cores;  // that it may run on
};

class Machine {
 public:
  // Allocates all memory that find() and core_each() need, for `size` ranks.
  explicit Machine(int size) : processes_(std::size_t(size)), cores_(std::size_t(size)) {}

  // MPI_Comm_split_type decides which ranks share a machine. SLIMPI_RANKS_PER_NODE does not count
  // here: emulated nodes share a machine and its cores. Collective over `comm`; allocates nothing
  // unless MPI fails.
  Status find(const mpi::Api& api, mpi::Comm comm, const LocalProcess& mine);

  // Equal on the ranks of one machine and nowhere else.
  int lowest_rank() const { return processes_.front().rank; }

  // Whether these ranks, and those that the launcher reports, have a core each. Machines may have
  // different results: only speed depends on them.
  bool core_each();

 private:
  std::vector<LocalProcess> processes_;  // the first size_ are the ranks of the machine, ascending
  std::vector<topology::Cores> cores_;
  int size_ = 0;
};

}  // namespace slimpi::comm
