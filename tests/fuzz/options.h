// SPDX-License-Identifier: BSD-3-Clause
// The options of slimpi on one communicator, as far as the fuzzer sets and understands them: the
// environment's, and info keys that it draws.
#pragma once
#include <mpi.h>

#include <cstdint>
#include <string>
#include <vector>

#include "tests/fuzz/draws.h"
#include "tests/mpi/values/oracle.h"

namespace fuzz {

struct Options {
  std::string algorithm = "bytegrad", hierarchy = "auto", rounding, max_error, error_feedback;
  std::uint64_t bits = 8, bucket = 512, min_size = 65536, ranks_per_node = 0, start = 0;

  // Returns the options that the SLIMPI_ variables set.
  static Options from_environment();

  // Draws some options, the same on all ranks, and returns them as keys of a new info object, which
  // the caller frees. Options that slimpi refuses are never drawn.
  MPI_Info draw(Draws& draws);

  bool low_rank() const { return algorithm.ends_with("powersgd"); }
  // Whether ranks end with different values by design.
  bool decentralized() const { return algorithm.ends_with("decentralized"); }
  bool flat() const { return hierarchy == "flat" || algorithm == "qsgd"; }
  bool keeps_error() const;
  // The options as tests/mpi/values/oracle.h takes them, for algorithms that have a bound.
  Scheme scheme() const;
  std::string text() const;

 private:
  using Keys = std::vector<std::pair<std::string, std::string>>;
  void draw_codec(Draws& draws, Keys& keys);
  void set(const std::string& name, const std::string& value);
};

}  // namespace fuzz
