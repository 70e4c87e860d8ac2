// SPDX-License-Identifier: BSD-3-Clause
// Exchanges messages between ranks that are fibers of one process. Every send is synchronous: it
// completes only after the matching receive was posted and the message was copied, which happens at
// some later step. Until then the network may read the sender's buffer and write to the receiver's.
// A receive fills its buffer with garbage when it is posted.
#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "comm/point_to_point.h"
#include "tests/helper/base/fibers.h"

namespace slimpi::test {

// A fault that a test plants into operation number `at` of its kind on one rank. The checks must
// find it.
enum class Fault {
  none,
  lost_send,     // never sent
  lost_receive,  // never posted
  wrong_tag_send,
  wrong_tag_receive,
  wrong_peer_send,
  wrong_peer_receive,
  short_send,     // of a word less
  short_receive,  // into a buffer of one word
  doubled_send,
  doubled_receive,
  swapped_send,     // of the buffer of the send before
  swapped_receive,  // into the buffer of the receive before
  delayed_send,     // after the next send
  delayed_receive,  // after the next receive
  reused_send,      // the buffer is written at the rank's next operation
  reused_receive,
  flipped_bit,     // of a message on its way
  early_wait,      // for a receive: it returns at once
  forgotten_send,  // nobody waits for it
  forgotten_receive,
  wrong_length,  // told by a wait for a receive
};
struct Planted {
  Fault fault = Fault::none;
  int rank = 0;
  std::size_t at = 0;
};

class Network {
 public:
  Network(Fibers& fibers, Chance& chance) : fibers_(fibers), chance_(chance) {}

  Fibers::Events events();

  // Returns the first fault that a rank committed or met; "" if there was none.
  const std::string& failure() const { return failure_; }
  void note(int rank, const std::string& text);

  // Lets other ranks run at every operation, so that a chooser sees all interleavings, and then
  // checks whether the rank has written to a buffer that is in use.
  void pause_always() { pauses_always_ = true; }

  // Returns the rank that began this request.
  int owner(mpi::Request request) const;

  // Makes all operations fail from now on.
  void abandon() { abandoned_ = true; }
  bool abandoned() const { return abandoned_; }

  void plant(const Planted& planted, std::vector<int> ranks) {
    planted_ = planted;
    ranks_ = std::move(ranks);
  }

  // Returns the messages in flight as words, for the hash of a state. The words do not depend on
  // the order in which messages of different envelopes were begun.
  std::vector<std::uint64_t> state() const;

  // Returns how many messages between ranks were not received, or not waited for.
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
    bool flips = false;                              // a bit, on its way
    std::uint64_t hash = 0;                          // of the data when they were sent
  };

  // Returns the number of the message of a send or a receive: the first one with this envelope that
  // lacks it.
  std::int64_t match(int from, int to, comm::Tag tag, bool sending);
  void note_ready(std::int64_t number);
  void copy(std::size_t which);
  int other_than(int rank, int peer) const;

  Fibers& fibers_;
  Chance& chance_;
  std::map<std::int64_t, Message> messages_;  // by number, ascending with time
  // Messages that lack a send or a receive, by envelope. All messages of one envelope lack the
  // same.
  std::multimap<std::tuple<int, int, comm::Tag>, std::int64_t> unmatched_;
  std::vector<std::int64_t> ready_;  // matched and not yet copied
  std::int64_t last_ = 0;
  std::string failure_;
  bool pauses_always_ = false, abandoned_ = false;
  Planted planted_;
  std::vector<int> ranks_;
};

// The exchange of one rank. A request is twice the number of its message, plus one if it is a
// receive.
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

  std::size_t messages_sent() const { return begun_[true]; }
  std::size_t bytes_sent() const { return bytes_sent_; }
  std::size_t peers() const { return peers_.size(); }  // ranks that it exchanged messages with

 private:
  struct Operation {
    int peer;
    comm::Tag tag;
    std::byte* data;
    std::size_t bytes;
    mpi::Request* request;
  };
  void maybe_pause() {
    if (network_.pauses_always_ || network_.chance_.one_in(3)) network_.fibers_.pause();
  }
  bool has(Fault fault, std::size_t number) const {
    const Planted& planted = network_.planted_;
    return planted.fault == fault && planted.rank == rank_ && planted.at == number;
  }
  Status begin(Operation operation, bool sends);
  void start(const Operation& operation, bool sends);
  void reuse();
  void check_in_flight();

  Network& network_;
  const int rank_;
  // By kind, 0 for receives and 1 for sends: how many there were so far, the last buffer, and a
  // delayed operation.
  std::size_t begun_[2] = {}, waited_[2] = {};
  std::byte* before_[2] = {};
  std::optional<Operation> delayed_[2];
  std::byte* reused_ = nullptr;
  std::size_t bytes_sent_ = 0;
  std::set<int> peers_;
};

}  // namespace slimpi::test
