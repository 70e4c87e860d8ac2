// SPDX-License-Identifier: BSD-3-Clause
// The communicators of a run. All ranks make and free them in the same steps, so that number i of
// the table comes from the same call on every rank; it is MPI_COMM_NULL on ranks that the call left
// out, and may be another communicator on other ranks (MPI_Comm_split).
#pragma once
#include <mpi.h>

#include <functional>
#include <string>
#include <vector>

#include "tests/fuzz/draws.h"
#include "tests/fuzz/options.h"

namespace fuzz {

struct Communicator {
  MPI_Comm comm = MPI_COMM_NULL;
  bool inter = false;
  int rank = 0, size = 0;
  std::vector<int> world;  // rank in MPI_COMM_WORLD of each rank
  Options options;
  std::string made_by;
  double worst = 0;  // the largest error bound of an element so far: error feedback adds it later

  // Node of each rank, as SLIMPI_RANKS_PER_NODE cuts the world, from 0 on.
  std::vector<int> node_of() const;
};

class Communicators {
 public:
  explicit Communicators(MPI_Comm world);  // starts with it and MPI_COMM_SELF

  void make(Draws& draws);  // one more, of any kind, from any of those here
  // Frees a communicator that make() made, if there is one. `pending`: messages are in flight on
  // it, so that MPI_Comm_disconnect would wait for them.
  void free(Draws& draws, bool pending = false);
  void free_all();
  // Frees a communicator right after its use. Makes another for the next use, and MPI may give that
  // one the same handle.
  void renew(Draws& draws, const std::function<void(Communicator&)>& use);
  Communicator& any(Draws& draws);  // MPI_COMM_SELF, where little happens, less often
  void set_options(Draws& draws);   // info keys on one of them

 private:
  void add(MPI_Comm comm, const Options& options, const char* made_by);
  MPI_Comm make_from(const Communicator& parent, Draws& draws, const char** made_by);
  void release(std::size_t index, bool disconnect);

  std::vector<Communicator> table_;
};

}  // namespace fuzz
