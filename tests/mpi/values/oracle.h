// SPDX-License-Identifier: BSD-3-Clause
// Computes the result of a float sum and how far off each algorithm may be. It does so element by
// element, in double, from the inputs of all ranks and the documented schedule. For a
// reduce-scatter it computes the sums of all blocks, and for an all-gather what each rank sends.
#pragma once
#include <string>

#include "tests/mpi/values/inputs.h"

struct Scheme {
  std::string algorithm;
  int bits = 8;
  std::size_t bucket = 2048;
  bool stochastic = false;
  int ranks_per_node = 1;
  bool flat = false, leader = false;
};

struct Expected {
  double sum = 0, bound = 0;
  bool must_be_nonfinite = false, may_be_nonfinite = false;
};

class Oracle {
 public:
  Oracle(const Scheme& scheme, int ranks);  // every scheme.ranks_per_node consecutive ranks a node
  Oracle(const Scheme& scheme, std::vector<int> node_of);  // the node of each rank, from 0 on

  int nodes() const { return int(node_sizes_.size()); }
  // Returns whether zeros become +0. A quantizer makes +0 of any zero; MPI and the other codecs
  // keep the sign.
  bool zeros_are_positive() const { return quantized() && nodes() > 1; }
  std::vector<Expected> expect(const Case& test) const;
  // Returns whether the algorithm makes this sum; slimpi leaves other calls to MPI.
  bool takes(const Case& test) const {
    const bool scatters = !low_rank() && scheme_.algorithm != "hook";
    return test.count > 0 && nodes() > 1 && (test.blocks.empty() || scatters);
  }
  // Returns whether slimpi may leave this call to MPI, because a low-rank sum has no result for it.
  bool may_pass(const Case& test) const {
    return low_rank() && (test.family == Family::huge || test.family >= Family::one_nan);
  }

 private:
  bool low_rank() const { return scheme_.algorithm.ends_with("powersgd"); }
  bool quantized() const {
    return scheme_.algorithm == "bytegrad" || scheme_.algorithm == "qsgd" ||
           scheme_.algorithm == "packed";
  }
  // Returns where buckets begin: at multiples of the bucket, or anew at the beginning of each
  // chunk.
  std::vector<std::size_t> bucket_edges(std::size_t count) const;
  // Returns the order in which a reduce-scatter exchanges the elements, and where in this order
  // buckets begin.
  std::vector<std::size_t> exchange_order(const std::vector<std::size_t>& blocks,
                                          std::vector<std::size_t>* edges) const;
  std::vector<Expected> expect_gathered(const Case& test) const;
  // Returns the greatest error of one rounding in a bucket from `low` to `high`. `greatest`: the
  // greatest value of the vector.
  double step_error(double low, double high, double greatest, bool infinite) const;

  Scheme scheme_;
  int ranks_;
  std::vector<int> node_of_, node_sizes_;
};
