// SPDX-License-Identifier: BSD-3-Clause
// Computes what a float sum must be and how far off each algorithm may be, element by element, in
// double, from all ranks' inputs and from the documented schedule. For a reduce-scatter it computes
// the sums of all blocks, for an all-gather what each rank sends.
#pragma once
#include <string>

#include "tests/mpi/inputs.h"

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
  // A quantizer gives +0 whatever zeros go in; MPI and the other codecs keep the sign.
  bool zeros_are_positive() const { return quantized() && nodes() > 1; }
  std::vector<Expected> expect(const Case& test) const;
  // Whether the algorithm takes a call; slimpi leaves other calls to MPI.
  bool takes(const Case& test) const {
    const bool scatters = !low_rank() && scheme_.algorithm != "hook";
    return test.count > 0 && nodes() > 1 && (test.blocks.empty() || scatters);
  }
  // A low-rank sum may leave a call to MPI that it cannot answer.
  bool may_pass(const Case& test) const {
    return low_rank() && (test.family == Family::huge || test.family >= Family::one_nan);
  }

 private:
  bool low_rank() const { return scheme_.algorithm.ends_with("powersgd"); }
  bool quantized() const {
    return scheme_.algorithm == "bytegrad" || scheme_.algorithm == "qsgd" ||
           scheme_.algorithm == "packed";
  }
  // Where buckets begin: everywhere at multiples of the bucket, or at the chunks' own ends.
  std::vector<std::size_t> bucket_edges(std::size_t count) const;
  // The order in which a reduce-scatter exchanges the elements, and where in this order buckets
  // begin.
  std::vector<std::size_t> exchange_order(const std::vector<std::size_t>& blocks,
                                          std::vector<std::size_t>* edges) const;
  std::vector<Expected> expect_gathered(const Case& test) const;
  // The error of one rounding in a bucket from `low` to `high`, in a vector of values up to
  // `greatest`.
  double step_error(double low, double high, double greatest, bool infinite) const;

  Scheme scheme_;
  int ranks_;
  std::vector<int> node_of_, node_sizes_;
};
