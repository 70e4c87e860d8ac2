// SPDX-License-Identifier: BSD-3-Clause
#include "tests/helper/memory_exchange.h"

#include <algorithm>
#include <cstring>

namespace slimpi::test {

namespace {
mpi::Request request_of(std::int64_t number, bool receive) {
  return mpi::Request(2 * number + (receive ? 1 : 0));
}
}  // namespace

void Network::note(int rank, const std::string& text) {
  if (failure_.empty()) failure_ = "rank " + std::to_string(rank) + ": " + text;
}

std::int64_t Network::match(int from, int to, comm::Tag tag, bool sending) {
  for (auto& [number, message] : messages_)
    if (message.from == from && message.to == to && message.tag == tag &&
        !(sending ? message.sent : message.posted))
      return number;
  messages_[++last_] = {.from = from, .to = to, .tag = tag};
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
  message.copied = true;
}

Fibers::Events Network::events() {
  return {[this] { return ready_.size(); }, [this](std::size_t which) { copy(which); }};
}

Status MemoryExchange::send(int to, comm::Tag tag, const void* data, std::size_t bytes,
                            mpi::Request& request) {
  if (request != mpi::abi.request_null) network_.note(rank_, "a send into a request in use");
  const std::int64_t number = network_.match(rank_, to, tag, true);
  Network::Message& message = network_.messages_[number];
  message.data = data;
  message.bytes = bytes;
  message.sent = true;
  network_.note_ready(number);
  request = request_of(number, false);
  maybe_pause();
  return Status::ok;
}

Status MemoryExchange::receive(int from, comm::Tag tag, void* data, std::size_t bytes,
                               mpi::Request& request) {
  if (request != mpi::abi.request_null) network_.note(rank_, "a receive into a request in use");
  const std::int64_t number = network_.match(from, rank_, tag, false);
  Network::Message& message = network_.messages_[number];
  message.into = data;
  message.capacity = bytes;
  message.posted = true;
  network_.note_ready(number);
  std::memset(data, 0xd7, bytes);
  request = request_of(number, true);
  maybe_pause();
  return Status::ok;
}

Status MemoryExchange::wait(mpi::Request& request, std::size_t* received) {
  maybe_pause();
  if (request == mpi::abi.request_null) return Status::ok;
  const std::int64_t number = std::int64_t(request) / 2;
  Network::Message& message = network_.messages_[number];
  if (!message.copied) network_.fibers_.block([&message] { return message.copied; });
  if (received != nullptr) *received = message.bytes;
  ((mpi::Word(request) & 1) != 0 ? message.receive_known : message.send_known) = true;
  request = mpi::abi.request_null;
  if (message.receive_known && message.send_known) network_.messages_.erase(number);
  return Status::ok;
}

Status MemoryExchange::settle(Status status, std::span<mpi::Request> requests) {
  if (status != Status::ok) network_.note(rank_, failure_text());
  for (const mpi::Request request : requests)
    if (request != mpi::abi.request_null)
      network_.note(rank_, "the schedule did not wait for a message");
  return status;
}

}  // namespace slimpi::test
