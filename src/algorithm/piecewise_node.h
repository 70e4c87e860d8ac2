// SPDX-License-Identifier: BSD-3-Clause
// The frame of node_frame.h done piece by piece: the sums inside the node and the fetching of the
// other shards overlap with the exchange between nodes.
#pragma once
#include <chrono>
#include <cstdint>
#include <memory>
#include <memory_resource>
#include <vector>

#include "algorithm/node_frame.h"
#include "comm/autotuner.h"
#include "inter/exchange_layout.h"
#include "inter/schedule.h"
#include "intra/transport_cma.h"

namespace slimpi::algorithm {

class PiecewiseNode final : public inter::NodeWork {
 public:
  // Finds the layouts of all shards of the node. Makes no communication.
  PiecewiseNode(comm::Call& call, const comm::InterNodeGroup& group);

  // Whether this rank can do the call so; the same on all ranks of the node with buffers on the
  // host.
  static bool possible(const comm::Call& call);

  // Computes the layouts and reserves the scratch memory of a call, where it is possible.
  static Status reserve(const comm::Call& call);

  // As sum_in_node(). Afterwards begun() says, alike on all ranks of the node, whether the sums are
  // left to the exchange; else they are made.
  Status begin();
  bool begun() const { return pieces_.begun(); }

  Status sum(const comm::Range& part) override;
  Status finished(std::int64_t number) override;

  // After the exchange, which ended with `status`: as share_in_node().
  Status end(Status status);

 private:
  using Layout = std::shared_ptr<const inter::ExchangeLayout>;
  static Layout layout_of(const comm::Call& call, const comm::InterNodeGroup& group,
                          const comm::Range& shard);
  struct Shard {
    comm::Range range;  // of the call's vector
    int owner;          // node-local rank
    Layout layout;
    std::int64_t fetched = 0;  // segments
  };
  Status fetch(Shard& shard, std::int64_t end);

  comm::Call& call_;
  const comm::InterNodeGroup& group_;
  intra::NodePieces pieces_;
  std::pmr::vector<Shard> shards_;  // by shard index
};

// Whether a call is done in pieces or as by node_frame.h. Which is faster depends on the link, the
// kernel and the caches, so an autotuner times the program's own calls. The same on all ranks, also
// on those that can do nothing in pieces.
class OverlapChoice {
 public:
  // Collective.
  Status open(const comm::Call& call);
  bool pieces() const { return autotuner_ == nullptr || autotuner_->next() == kPieces; }

  // The call succeeded. Collective.
  Status record(const comm::Call& call);

 private:
  enum Candidate { kPieces, kAtOnce, kCandidates };

  comm::Autotuner* autotuner_ = nullptr;  // null: there is no choice
  std::chrono::steady_clock::time_point begun_;
};

}  // namespace slimpi::algorithm
