// SPDX-License-Identifier: BSD-3-Clause
// The cost model of an allreduce: computes how long each schedule between nodes takes, and how many
// messages and how much memory it needs. The library chooses the schedule by these functions, and
// tools/bench/cost.h predicts whole calls with them. This file uses no MPI.
//
// All times are in seconds, all sizes in bytes. "Per byte" of arithmetic means per byte of floats.
#pragma once
#include "inter/segment_length.h"

namespace slimpi::cost {

// The constants of the model. The defaults are for TCP on a link of 10 Gbit/s, where the first
// three were fitted to times of the schedules; the others are guesses.
struct Constants {
  double latency = 24e-6;     // of a small message between nodes, one way
  double overhead = 3e-6;     // processor time for sending one message and receiving one
  double link = 0.8e-9;       // of a node's link, per byte of payload in one direction
  double copy = 0.5e-9;       // processor time per byte sent or received
  double add = 0.15e-9;       // processor time per byte of floats added to a sum
  double encode = 0.1e-9;     // per byte of floats, with any number of bits
  double decode = 0.1e-9;     // of decoding and adding, per byte of floats, with any number of bits
  double node_copy = 0.2e-9;  // processor time per byte handed to a rank of the same node
};

// The messages of the busiest rank in a sum of one shard between nodes. They do not depend on
// ExchangeSize::me and ExchangeSize::staged.
struct Traffic {
  double waits = 0;     // latencies that no other work hides
  double messages = 0;  // messages that the rank sends
  double bytes = 0;     // bytes of these messages, headers included
  double owners = 1;    // ranks that own a chunk
  double chunk = 0;     // bytes of floats of the longest chunk
};
Traffic pairwise_traffic(const inter::ExchangeSize& size);
Traffic bruck_traffic(const inter::ExchangeSize& size);

struct Cost {
  double seconds = 0;    // of the whole call
  double link = 0;       // seconds in which a node's link is busy
  double processor = 0;  // seconds of a rank's processor: codec, sums, copies and messages
  double waiting = 0;    // seconds of latency that no other work hides
  double messages = 0;   // number of messages that a rank sends
  double peers = 0;      // ranks of other nodes that a rank exchanges messages with
  double memory = 0;     // bytes that a rank needs for message buffers
};

// Adds to `cost` the cost of a pairwise exchange in which each of `flows` ranks of a node exchanges
// a shard of this size. These ranks share the node's link, and `sharing` ranks share a core.
void add_pairwise(Cost& cost, const inter::ExchangeSize& size, double flows, double sharing,
                  const Constants& constants);
// Adds the cost of a Bruck exchange, in which one rank of each node exchanges a shard of this size.
void add_bruck(Cost& cost, const inter::ExchangeSize& size, double sharing,
               const Constants& constants);

}  // namespace slimpi::cost
