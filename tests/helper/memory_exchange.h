// SPDX-License-Identifier: BSD-3-Clause
// Messages between ranks that are fibers of one process. Every send is synchronous: it completes
// only when the matching receive was posted and the message was copied, which happens at some later
// step. Until then the network may read the sender's buffer and write the receiver's: a receive
// fills its buffer with garbage when it is posted.
#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "comm/point_to_point.h"
#include "tests/helper/fibers.h"

namespace slimpi::test {

class Network {
 public:
  Network(Fibers& fibers, Chance& chance) : fibers_(fibers), chance_(chance) {}

  Fibers::Events events();

  // The first thing that a rank did wrong, or that went wrong for it; empty if none.
  const std::string& failure() const { return failure_; }
  void note(int rank, const std::string& text);

  // Messages between ranks that were neither received nor waited for.
  std::size_t left() const { return messages_.size(); }

 private:
  friend class MemoryExchange;
  struct Message {
    int from, to;
    comm::Tag tag;
    const void* data = nullptr;
    std::size_t bytes = 0;
    void* into = nullptr;
    std::size_t capacity = 0;
    bool sent = false, posted = false, copied = false;
    bool send_known = false, receive_known = false;  // the wait has returned
  };

  // The message that a send or a receive belongs to: the first with this envelope that lacks one.
  std::int64_t match(int from, int to, comm::Tag tag, bool sending);
  void note_ready(std::int64_t number);
  void copy(std::size_t which);

  Fibers& fibers_;
  Chance& chance_;
  std::map<std::int64_t, Message> messages_;  // by number, ascending with time
  std::vector<std::int64_t> ready_;           // matched and not yet copied
  std::int64_t last_ = 0;
  std::string failure_;
};

// One rank's end. A request holds the number of its message, twice that for a receive plus one.
class MemoryExchange final : public comm::PointToPoint {
 public:
  MemoryExchange(Network& network, int rank) : network_(network), rank_(rank) {}

  using PointToPoint::wait;
  Status send(int to, comm::Tag tag, const void* data, std::size_t bytes,
              mpi::Request& request) override;
  Status receive(int from, comm::Tag tag, void* data, std::size_t bytes,
                 mpi::Request& request) override;
  Status wait(mpi::Request& request, std::size_t* received) override;
  void progress() override { network_.fibers_.pause(); }
  Status check() override { return Status::ok; }
  Status settle(Status status, std::span<mpi::Request> requests) override;

 private:
  void maybe_pause() {
    if (network_.chance_.one_in(3)) network_.fibers_.pause();
  }

  Network& network_;
  const int rank_;
};

}  // namespace slimpi::test
