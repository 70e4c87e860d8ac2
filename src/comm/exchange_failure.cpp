// SPDX-License-Identifier: BSD-3-Clause
// The way in which a failure on one rank reaches the other ranks, and in which a call that failed
// leaves no message behind.
//
// A failed rank first cancels its receives. Then it sends a report to each rank, after all its
// other messages. At last it receives what others have sent, until all have failed. A rank that
// waits looks for reports in check(). A rank that gets a report fails, too, and takes the same
// steps. At the end every rank has left the call, and MPI uses no memory of the schedule.
//
// A report may belong to a later call than the receiver's. The receiver keeps the report for that
// call: the failed rank has completed the receiver's call, so the receiver can complete it, too.
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

// The time to wait for messages that are in flight after their receives were cancelled.
constexpr auto kPatience = std::chrono::seconds(2);
// The shorter time after SLIMPI_TIMEOUT: the absent rank sends nothing.
constexpr auto kPatienceIfAbsent = std::chrono::milliseconds(250);
std::chrono::milliseconds patience(Status status) {
  return status == Status::absent ? kPatienceIfAbsent : kPatience;
}

// The time after which a report of a later call ends the present call. After an error of the
// program the ranks may count calls differently; without this limit a rank could wait for ever.
constexpr auto kLongestDelay = std::chrono::seconds(10);

}  // namespace

void Exchange::send_failure(Status status, std::string_view text) {
  if (internal_ == nullptr) return;
  const std::lock_guard lock(internal_->mutex);
  if (internal_->failure == nullptr) return;
  // A rank reports only once: the sends below may read the report until the process ends.
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

// Receives the failure report of one rank, if there is one. Returns whether there was one.
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
  // A rank that forwards another rank's failure has already named the first rank that failed.
  char first[32] = "";
  if (!std::string_view(failure.text).starts_with("rank "))
    std::snprintf(first, sizeof first, "rank %d failed: ", status.source());
  std::snprintf(internal_->reported_text, sizeof internal_->reported_text, "%s%s", first,
                failure.text);
  internal_->reported.store(code == mpi::kSuccess ? Status(failure.status) : Status::mpi);
  return true;
}

Status Exchange::check() {
  const std::lock_guard lock(internal_->mutex);
  if (!failure_reported()) {
    (void)receive_failure();
    if (internal_->reported != Status::ok && Clock::now() - internal_->reported_at > kLongestDelay)
      internal_->reported_call = std::min(internal_->reported_call, call_);
  }
  if (failure_reported()) return fail(internal_->reported, internal_->reported_text);
  // The other ranks end all channels when they get this rank's report, so this rank does so, too.
  const InternalComm::Failure* const sent = internal_->sent;
  return sent != nullptr && sent->channel != std::uint32_t(channel_)
             ? fail(Status(sent->status), sent->text)
             : Status::ok;
}

bool Exchange::finished(mpi::Request& request) {
  int done = 0;
  return request == mpi::abi.request_null ||
         (api_.Test(&request, &done, mpi::abi.status_ignore) == mpi::kSuccess && done != 0);
}

void Exchange::cancel_receives(std::span<mpi::Request> requests) {
  for (mpi::Request& request : requests)
    if (request != mpi::abi.request_null && !is_send(request)) api_.Cancel(&request);
  const auto end = Clock::now() + kPatience;
  Waiter waiter(Waiter::Poll::mpi);
  for (mpi::Request& request : requests) {
    if (is_send(request)) continue;
    while (!finished(request) && Clock::now() < end) waiter.rest();
    if (request != mpi::abi.request_null) api_.Request_free(&request);
  }
}

// Receives and drops one message that is no longer needed, or receives a failure report. Returns
// whether a message was there. Messages of one rank arrive in the order of sending, so its failure
// report is its last message.
bool Exchange::receive_stray() {
  int found = 0, words = 0;
  mpi::MessageStatus status;
  api_.Iprobe(mpi::abi.any_source, mpi::abi.any_tag, comm(), &found, &status);
  // A message from this rank to itself is that of complete(); the program receives it.
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
// complete. A message that is never received stays inside MPI, and MPI_Finalize may then crash or
// hang. A rank that succeeded never reports; the wait for its report ends after patience().
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

// Waits until no receiver reads the memory of the sends, and frees their requests. MPI may read a
// message directly from this rank's memory until the receiver has received it or has failed. An
// absent receiver may never do either; then the memory is left to MPI.
void Exchange::release_sends(Status status, std::span<mpi::Request> requests) {
  const auto end = Clock::now() + patience(status);
  for (mpi::Request& request : requests) {
    const Started* const started = find(request);
    if (started == nullptr || !started->message.sent) continue;
    Waiter waiter(Waiter::Poll::mpi);
    const auto peer_failed = [&] {
      const std::lock_guard lock(internal_->mutex);
      return internal_->failed_ranks[std::size_t(started->message.peer)];
    };
    while (!finished(request) && !peer_failed() && !sends_left_) {
      if (!receive_failure()) waiter.rest();
      sends_left_ = status == Status::absent && Clock::now() > end;
    }
    if (request != mpi::abi.request_null) api_.Request_free(&request);
  }
}

Status Exchange::settle(Status status, std::span<mpi::Request> requests) {
  if (status != Status::ok) {
    const FailureScope cleaning_up;
    // No step needs new memory, because the failure may be a lack of memory. A message that cannot
    // be received for lack of memory stays inside MPI.
    (void)caught([&] { cancel_receives(requests); });
    send_failure(status, cleaning_up.before());
    (void)caught([&] { drain(status, requests); });
    (void)caught([&] { release_sends(status, requests); });
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
