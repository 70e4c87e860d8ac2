// SPDX-License-Identifier: BSD-3-Clause
// Spreads a failure on one rank to the other ranks, and makes sure that a failed call leaves no
// message behind.
//
// A failed rank first cancels its receives. Then it sends a report to each rank, after all its
// other messages, and receives messages from the others until all have failed. A rank that waits
// looks for reports in check(); when it gets one, it fails as well and takes the same steps. At the
// end every rank has left the call, and MPI no longer uses memory of the schedule. Where that
// cannot be ensured, memory_left() returns true, and nobody uses this memory again.
//
// A report may belong to a later call than the one that the receiver is in. The receiver keeps it
// for that call: the failed rank has completed the present one, so the receiver can complete it,
// too.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <memory>
#include <new>
#include <string_view>

#include "base/exceptions.h"
#include "comm/exchange.h"
#include "comm/waiter.h"

namespace slimpi::comm {

namespace {

using Clock = std::chrono::steady_clock;

// How long to wait for messages in flight after their receives were cancelled.
constexpr auto kPatience = std::chrono::seconds(2);
// How long to wait if a rank is absent or its process has failed, so that it sends nothing.
constexpr auto kPatienceIfAbsent = std::chrono::milliseconds(250);
std::chrono::milliseconds patience(Status status) {
  const bool absent =
      status == Status::absent || status == Status::rank_failed || status == Status::revoked;
  return absent ? kPatienceIfAbsent : kPatience;
}

constexpr auto kLookForProcesses = std::chrono::milliseconds(100);

// After this time even a report about a later call ends the present one. If the program is in
// error, the ranks may count calls differently, and a rank could otherwise hang.
constexpr auto kLongestDelay = std::chrono::seconds(10);

}  // namespace

void Exchange::send_failure(Status status, std::string_view text) {
  if (internal_ == nullptr) return;
  const std::lock_guard lock(internal_->mutex);
  if (internal_->failure == nullptr) return;
  // A rank reports only once, because the sends below may read the report until the process ends.
  InternalComm::Failure& failure = *internal_->failure.release();
  failure.call = call_;
  failure.status = std::uint32_t(status);
  failure.channel = std::uint32_t(channel_);
  failure.text[text.copy(failure.text, sizeof failure.text - 1)] = '\0';
  internal_->sent = &failure;
  for (int to = 0; to < size_; ++to) {
    mpi::Request request = mpi::abi.request_null;
    if (to != rank_ && api_.Isend(&failure, int(sizeof failure), mpi::abi.type_char, to,
                                  int(Tag::failure), comm(), &request) == mpi::kSuccess)
      api_.Request_free(&request);
  }
}

// Receives the failure report of one rank. Returns whether there was one.
bool Exchange::receive_failure(int from) {
  const std::lock_guard lock(internal_->mutex);
  int found = 0;
  mpi::MessageStatus status;
  api_.Iprobe(from, int(Tag::failure), comm(), &found, &status);
  if (found == 0) return false;
  InternalComm::Failure failure{};
  mpi::Request request = mpi::abi.request_null;
  int code = api_.Irecv(&failure, int(sizeof failure), mpi::abi.type_char, status.source(),
                        int(Tag::failure), comm(), &request);
  if (code == mpi::kSuccess) code = api_.Wait(&request, mpi::abi.status_ignore);
  if (!internal_->failed_ranks[std::size_t(status.source())]) ++internal_->failed_count;
  internal_->failed_ranks[std::size_t(status.source())] = true;
  if (internal_->failure == nullptr ||
      (internal_->reported != Status::ok && internal_->reported_call <= failure.call))
    return true;
  internal_->reported_call = code == mpi::kSuccess ? failure.call : 0;
  internal_->reported_channel = failure.channel;
  internal_->reported_at = Clock::now();
  failure.text[sizeof failure.text - 1] = '\0';
  // If the sender forwards another rank's failure, the text already names the rank that failed
  // first.
  char first[32] = "";
  if (!std::string_view(failure.text).starts_with("rank "))
    std::snprintf(first, sizeof first, "rank %d failed: ", status.source());
  std::snprintf(internal_->reported_text, sizeof internal_->reported_text, "%s%s", first,
                failure.text);
  internal_->reported.store(code == mpi::kSuccess ? Status(failure.status) : Status::mpi);
  return true;
}

Status InternalComm::check_processes() {
  const auto now = Clock::now();
  if (user == mpi::abi.comm_null || now - looked_at_ < kLookForProcesses) return Status::ok;
  looked_at_ = now;
  SLIMPI_TRY(check_revoked());
  return mpi::check_failed(api, user);
}

Status Exchange::check() {
  const std::lock_guard lock(internal_->mutex);
  if (!failure_reported()) {
    (void)receive_failure();
    if (internal_->reported != Status::ok && Clock::now() - internal_->reported_at > kLongestDelay)
      internal_->reported_call = std::min(internal_->reported_call, call_);
  }
  if (failure_reported()) return fail(internal_->reported, internal_->reported_text);
  // The other ranks end all channels when they get this rank's report, so this rank does, too.
  const InternalComm::Failure* const sent = internal_->sent;
  if (sent != nullptr && sent->channel != std::uint32_t(channel_))
    return fail(Status(sent->status), sent->text);
  return internal_->check_processes();
}

bool Exchange::finished(mpi::Request& request) {
  int done = 0;
  return request == mpi::abi.request_null ||
         (api_.Test(&request, &done, mpi::abi.status_ignore) == mpi::kSuccess && done != 0);
}

// Cancels the receives, and waits for those that MPI has already matched, which can only complete.
void Exchange::cancel_receives(Status status, std::span<mpi::Request> requests) {
  for (mpi::Request& request : requests)
    if (request != mpi::abi.request_null && !is_send(request)) api_.Cancel(&request);
  const auto end = Clock::now() + patience(status);
  Waiter waiter(Waiter::Poll::mpi);
  for (mpi::Request& request : requests)
    while (!is_send(request) && !finished(request) && Clock::now() < end) waiter.rest();
}

// Receives one message: a failure report, or a message that is dropped because nobody needs it any
// more. Returns whether there was one. A rank's messages arrive in the order of sending, and its
// report is the last.
bool Exchange::receive_stray() {
  int found = 0, words = 0;
  mpi::MessageStatus status;
  api_.Iprobe(mpi::abi.any_source, mpi::abi.any_tag, comm(), &found, &status);
  // A message from this rank to itself was sent by complete(), and the program receives it.
  if (found != 0 && status.source() == rank_) {
    found = 0;
    for (int from = 0; from < size_ && found == 0; ++from)
      if (from != rank_) api_.Iprobe(from, mpi::abi.any_tag, comm(), &found, &status);
  }
  if (found == 0) return false;
  if (status.tag() == int(Tag::failure)) return receive_failure(status.source());
  api_.Get_count(&status, mpi::abi.type_uint32_t, &words);
  std::unique_ptr<std::uint32_t[]> text(new (std::nothrow)
                                            std::uint32_t[std::size_t(std::max(words, 1))]);
  mpi::Request request = mpi::abi.request_null;
  if (text == nullptr || api_.Irecv(text.get(), words, mpi::abi.type_uint32_t, status.source(),
                                    status.tag(), comm(), &request) != mpi::kSuccess)
    return false;
  const auto end = Clock::now() + kPatience;
  for (Waiter waiter(Waiter::Poll::mpi); !finished(request) && Clock::now() < end;) waiter.rest();
  if (request == mpi::abi.request_null) return true;
  api_.Request_free(&request);
  (void)text.release();  // MPI may still write there
  return true;
}

// Receives the messages of other ranks until all ranks have failed and this rank's sends are
// complete: a message that is never received stays inside MPI, and MPI_Finalize may then crash or
// hang. A rank that succeeded never reports, so the wait for its report ends after patience().
void Exchange::drain(Status status, std::span<mpi::Request> requests) {
  const auto in_flight = [&](mpi::Request& request) {
    return is_send(request) && !finished(request);
  };
  const auto end = Clock::now() + patience(status);
  Waiter waiter(Waiter::Poll::mpi);
  while (size_ > 1) {
    while (Clock::now() <= end && receive_stray()) continue;
    if (Clock::now() > end || (internal_->failed_count + 1 >= size_ &&
                               std::none_of(requests.begin(), requests.end(), in_flight)))
      break;
    waiter.rest();
  }
}

// Frees the requests. First waits for sends that may still complete, because MPI may read a message
// from this rank's memory until the receiver has it. If a peer stopped in the middle of a message,
// MPI finishes the message once the peer continues, so its memory is left to MPI.
void Exchange::release(Status status, std::span<mpi::Request> requests) {
  const auto end = Clock::now() + patience(status);
  Waiter waiter(Waiter::Poll::mpi);
  const auto peer_failed = [&](const mpi::Request& request) {
    const std::lock_guard lock(internal_->mutex);
    return internal_->failed_ranks[std::size_t(peer_of(request))];
  };
  for (mpi::Request& request : requests) {
    while (is_send(request) && !finished(request) && !peer_failed(request) && Clock::now() < end)
      if (!receive_failure()) waiter.rest();
    if (finished(request)) continue;
    api_.Request_free(&request);
    memory_left_ = true;
  }
}

Status Exchange::settle(Status status, std::span<mpi::Request> requests) {
  if (status != Status::ok) {
    const FailureScope cleaning_up;
    // The failure may be a lack of memory, so these steps must work without allocating. If there is
    // no memory for an incoming message, the message stays inside MPI.
    (void)caught([&] { cancel_receives(status, requests); });
    send_failure(status, cleaning_up.before());
    (void)caught([&] { drain(status, requests); });
    (void)caught([&] { release(status, requests); });
  }
  started_.clear();
  trace_.all_completed();
  return status;
}

void Exchange::report_failure(Status status) {
  if (internal_ == nullptr) return;
  std::unique_lock lock(internal_->mutex);
  const bool sent = internal_->failure == nullptr;
  lock.unlock();
  if (!sent) (void)settle(status, {});
}

}  // namespace slimpi::comm
