// SPDX-License-Identifier: BSD-3-Clause
#include "tests/helper/mpi/memory_exchange.h"

#include <algorithm>
#include <cstring>
#include <functional>
#include <string_view>
#include <tuple>

namespace slimpi::test {

namespace {
constexpr unsigned char kGarbage = 0xd7;  // fills a buffer until its message arrives

mpi::Request request_of(std::int64_t number, bool receive) {
  return mpi::Request(2 * number + (receive ? 1 : 0));
}

std::uint64_t hash_of(const void* data, std::size_t bytes) {
  return std::hash<std::string_view>()({static_cast<const char*>(data), bytes});
}
}  // namespace

void Network::note(int rank, const std::string& text) {
  if (failure_.empty()) failure_ = "rank " + std::to_string(rank) + ": " + text;
}

std::int64_t Network::match(int from, int to, comm::Tag tag, bool sending) {
  const std::tuple envelope(from, to, tag);
  const auto first = unmatched_.lower_bound(envelope);  // of one envelope they keep their order
  if (first != unmatched_.end() && first->first == envelope) {
    const std::int64_t number = first->second;
    const Message& other = messages_[number];
    if (!(sending ? other.sent : other.posted)) {
      unmatched_.erase(first);
      return number;
    }
  }
  messages_[++last_] = {.from = from, .to = to, .tag = tag};
  unmatched_.emplace(envelope, last_);
  return last_;
}

void Network::note_ready(std::int64_t number) {
  const Message& message = messages_[number];
  if (message.sent && message.posted) ready_.push_back(number);
}

void Network::copy(std::size_t which) {
  Message& message = messages_[ready_[which]];
  ready_.erase(ready_.begin() + std::ptrdiff_t(which));
  if (message.bytes > message.capacity)
    note(message.to, "a message of " + std::to_string(message.bytes) + " bytes for a buffer of " +
                         std::to_string(message.capacity));
  std::memcpy(message.into, message.data, std::min(message.bytes, message.capacity));
  if (message.flips) static_cast<std::byte*>(message.into)[message.bytes - 1] ^= std::byte(1);
  message.copied = true;
}

Fibers::Events Network::events() {
  return {[this] { return ready_.size(); }, [this](std::size_t which) { copy(which); }};
}

int Network::owner(mpi::Request request) const {
  const Message& message = messages_.at(std::int64_t(request) / 2);
  return (mpi::Word(request) & 1) != 0 ? message.to : message.from;
}

// Returns a rank that is neither of these two.
int Network::other_than(int rank, int peer) const {
  for (const int other : ranks_)
    if (other != rank && other != peer) return other;
  return peer;
}

std::vector<std::uint64_t> Network::state() const {
  std::vector<const Message*> sorted;
  for (const auto& [number, message] : messages_) sorted.push_back(&message);
  const auto envelope = [](const Message* one) {
    return std::tuple(one->from, one->to, int(one->tag));
  };
  std::ranges::stable_sort(sorted, {}, envelope);  // messages of one envelope keep their order
  std::vector<std::uint64_t> words;
  for (const Message* const one : sorted) {
    const auto [from, to, tag] = envelope(one);
    words.push_back(std::uint64_t(from) << 40 | std::uint64_t(to) << 20 | std::uint64_t(tag));
    words.push_back(std::uint64_t(one->sent) | std::uint64_t(one->posted) << 1 |
                    std::uint64_t(one->copied) << 2 | std::uint64_t(one->send_known) << 3 |
                    std::uint64_t(one->receive_known) << 4);
  }
  return words;
}

void MemoryExchange::start(const Operation& operation, bool sends) {
  if (*operation.request != mpi::abi.request_null)
    network_.note(rank_,
                  sends ? "a send into a request in use" : "a receive into a request in use");
  const auto [peer, tag, data, bytes, request] = operation;
  peers_.insert(peer);
  if (sends) bytes_sent_ += bytes;
  const std::int64_t number =
      sends ? network_.match(rank_, peer, tag, true) : network_.match(peer, rank_, tag, false);
  Network::Message& message = network_.messages_[number];
  if (sends) {
    message.data = data;
    message.bytes = bytes;
    message.sent = true;
    if (network_.pauses_always_) message.hash = hash_of(data, bytes);
  } else {
    message.into = data;
    message.capacity = bytes;
    message.posted = true;
    std::memset(data, kGarbage, bytes);
  }
  network_.note_ready(number);
  *request = request_of(number, !sends);
}

// Checks that no buffer of a message in flight has changed. Between two operations only this rank's
// own code has run, so a change is an error of that code.
void MemoryExchange::check_in_flight() {
  if (!network_.pauses_always_) return;
  for (const auto& [number, message] : network_.messages_) {
    if (message.copied) continue;
    if (message.sent && message.from == rank_ &&
        hash_of(message.data, message.bytes) != message.hash)
      network_.note(rank_, "a buffer was written before its message was sent");
    const auto* const into = static_cast<const unsigned char*>(message.into);
    if (message.posted && message.to == rank_ &&
        std::any_of(into, into + message.capacity, [](auto one) { return one != kGarbage; }))
      network_.note(rank_, "a buffer was written before its message has arrived");
  }
}

// Plants a fault: the rank writes to a buffer that is in use.
void MemoryExchange::reuse() {
  if (reused_ != nullptr) std::memset(reused_, 0x5c, 4);
  reused_ = nullptr;
}

Status MemoryExchange::begin(Operation operation, bool sends) {
  if (network_.abandoned_) return Status::mpi;
  reuse();
  check_in_flight();
  const std::size_t number = begun_[sends]++;
  const auto is = [&](Fault send, Fault receive) { return has(sends ? send : receive, number); };
  std::byte* const before = std::exchange(before_[sends], operation.data);
  if (is(Fault::wrong_tag_send, Fault::wrong_tag_receive)) operation.tag = comm::Tag::roll_call;
  if (is(Fault::wrong_peer_send, Fault::wrong_peer_receive))
    operation.peer = network_.other_than(rank_, operation.peer);
  if (is(Fault::short_send, Fault::short_receive))
    operation.bytes = sends ? operation.bytes - 4 : 4;
  if (is(Fault::swapped_send, Fault::swapped_receive)) operation.data = before;
  if (is(Fault::reused_send, Fault::reused_receive)) reused_ = operation.data;
  const std::optional<Operation> delayed = std::exchange(delayed_[sends], {});
  if (is(Fault::delayed_send, Fault::delayed_receive))
    delayed_[sends] = operation;
  else if (!is(Fault::lost_send, Fault::lost_receive))
    start(operation, sends);
  if (delayed) start(*delayed, sends);
  if (is(Fault::doubled_send, Fault::doubled_receive)) {
    mpi::Request again = mpi::abi.request_null;
    Operation second = operation;
    second.request = &again;
    start(second, sends);
  }
  if (has(Fault::flipped_bit, number) && sends)
    network_.messages_[std::int64_t(*operation.request) / 2].flips = true;
  maybe_pause();
  return Status::ok;
}

Status MemoryExchange::send(int to, comm::Tag tag, const void* data, std::size_t bytes,
                            mpi::Request& request) {
  auto* const from = static_cast<std::byte*>(const_cast<void*>(data));
  return begin({to, tag, from, bytes, &request}, true);
}

Status MemoryExchange::receive(int from, comm::Tag tag, void* data, std::size_t bytes,
                               mpi::Request& request) {
  return begin({from, tag, static_cast<std::byte*>(data), bytes, &request}, false);
}

Status MemoryExchange::wait(mpi::Request& request, std::size_t* received) {
  if (network_.abandoned_) return Status::mpi;
  reuse();
  check_in_flight();
  maybe_pause();
  if (network_.abandoned_) return Status::mpi;
  if (request == mpi::abi.request_null) return Status::ok;
  const std::int64_t number = std::int64_t(request) / 2;
  const bool sends = (mpi::Word(request) & 1) == 0;
  const std::size_t waited = waited_[sends]++;
  Network::Message& message = network_.messages_[number];
  request = mpi::abi.request_null;
  if (has(sends ? Fault::forgotten_send : Fault::forgotten_receive, waited)) {
    if (received != nullptr) *received = message.capacity;
    return Status::ok;
  }
  if (!message.copied && !(has(Fault::early_wait, waited) && !sends))
    network_.fibers_.block([&message, this] { return message.copied || network_.abandoned_; });
  if (network_.abandoned_) return Status::mpi;
  if (received != nullptr) *received = message.bytes;
  if (received != nullptr && has(Fault::wrong_length, waited)) *received -= 4;
  (sends ? message.send_known : message.receive_known) = true;
  if (message.receive_known && message.send_known && message.copied)
    network_.messages_.erase(number);
  return Status::ok;
}

Status MemoryExchange::settle(Status status, std::span<mpi::Request> requests) {
  if (network_.abandoned_) return status;
  if (status != Status::ok) network_.note(rank_, failure_text());
  for (const mpi::Request request : requests)
    if (request != mpi::abi.request_null)
      network_.note(rank_, "the schedule did not wait for a message");
  return status;
}

}  // namespace slimpi::test
