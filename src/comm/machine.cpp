// SPDX-License-Identifier: BSD-3-Clause
#include "comm/machine.h"

#include <algorithm>

#include "base/environment.h"

namespace slimpi::comm {

// One split and one all-gather for everything that the ranks of a machine have to know. With more
// ranks than cores, a blocking call of MPI costs a time slice for each rank.
Status Machine::find(const mpi::Api& api, mpi::Comm comm, const LocalProcess& mine) {
  const auto failed = [&](int code) {
    return fail(Status::mpi, "finding the ranks of this machine: " + mpi::error_text(api, code));
  };
  mpi::Comm here = mpi::abi.comm_null;
  // The key: the split keeps the order of ranks.
  int code =
      api.Comm_split_type(comm, mpi::abi.comm_type_shared, mine.rank, mpi::abi.info_null, &here);
  if (code != mpi::kSuccess) return failed(code);
  api.Comm_size(here, &size_);
  code = api.Allgather(&mine, int(sizeof mine), mpi::abi.type_char, processes_.data(),
                       int(sizeof mine), mpi::abi.type_char, here);
  api.Comm_free(&here);
  return code == mpi::kSuccess ? Status::ok : failed(code);
}

bool Machine::core_each() {
  for (int i = 0; i < size_; ++i) cores_[std::size_t(i)] = processes_[std::size_t(i)].cores;
  return topology::enough_cores(std::span(cores_).first(std::size_t(size_)),
                                std::max(size_, launched_ranks_here()), topology::core_quota());
}

}  // namespace slimpi::comm
