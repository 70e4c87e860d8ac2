// SPDX-License-Identifier: BSD-3-Clause
#include "comm/exchange.h"

#include <algorithm>
#include <climits>
#include <utility>

#include "comm/waiter.h"
#include "mpi/internal_comm.h"
#include "observe/activity.h"

namespace slimpi::comm {

namespace {

// Returns the error for a message that is too long: its count, in words of 4 bytes, is not an int.
Status too_long(std::size_t bytes) {
  return fail(Status::unsupported, "a message of " + std::to_string(bytes) +
                                       " bytes is longer than 8 GiB; set SLIMPI_BUCKET");
}
bool fits(std::size_t bytes) {
  return bytes / 4 <= std::size_t(INT_MAX);
}

}  // namespace

// Divides the tags into rows of kTags, one tag for each use of a message. Channel 0 has half of the
// rows, and the other channels share the rest.
InternalComm::InternalComm(const mpi::Api& its_api, mpi::Comm its_comm)
    : api(its_api), comm(its_comm), roll_call(its_api) {
  constexpr int kLeast = 32767;  // every MPI has at least these tags
  constexpr std::uint64_t kMostChannels = 4096, kLeastRows = 8;
  int* highest = nullptr;
  int found = 0;
  api.Comm_rank(comm, &rank);
  api.Comm_size(comm, &size);
  failed_ranks.assign(std::size_t(size), false);
  const int code = api.Comm_get_attr(comm, mpi::abi.tag_ub, &highest, &found);
  rows_ = std::uint64_t(code == mpi::kSuccess && found != 0 ? *highest : kLeast) / kTags;
  const std::uint64_t others = rows_ / 2;
  channels_ = int(std::clamp<std::uint64_t>(others / kLeastRows, 1, kMostChannels));
  other_rows_ = std::max<std::uint64_t>(others / std::uint64_t(channels_ + 1), 1);
}

InternalComm::~InternalComm() {
  if (abandoned || failed) return;
  roll_call.drain(comm);
  mpi::free_internal(api, &comm);
}

int InternalComm::free_channel(int least) {
  const std::lock_guard lock(mutex);
  for (int channel = least; channel < channels_; ++channel)
    if (used_channels.count(channel) == 0) return channel;
  return -1;
}

Status Exchange::mpi_failed(const char* what, int code) const {
  return mpi::fail_by(api_, what, code);
}

Exchange::~Exchange() {
  close();
}

void Exchange::open(std::shared_ptr<InternalComm> internal, int channel, int number) {
  {
    const std::lock_guard lock(internal->mutex);
    internal->used_channels.insert(channel);
  }
  trace_.set_comm(internal->comm, number);
  channel_ = channel;
  rank_ = internal->rank;
  size_ = internal->size;
  internal_ = std::move(internal);  // last, because report_failure() may now use the members above
}

void Exchange::close() {
  if (internal_ == nullptr) return;
  {
    const std::lock_guard lock(internal_->mutex);
    internal_->used_channels.erase(channel_);
  }
  if (sums_comm_ != mpi::abi.comm_null && !internal_->abandoned && !internal_->failed)
    api_.Comm_free(&sums_comm_);
  sums_comm_ = mpi::abi.comm_null;
  internal_ = nullptr;
}

// Returns the tag of a message. The tag depends on the use of the message and, except in
// agreements, on the call's function, count and tensor name, so that a message from a rank that
// sums something else matches no receive. (If a message matched a shorter receive, MPI would raise
// an error on MPI_COMM_WORLD.) Instead, ranks that wait compare function, count and name (waiter.h)
// and report the difference. With MPICH's usual 2^28 tags, two counts have the same tag once in
// 2^23 times; in channels of persistent sums, whose counts were compared before, once in 2^11
// times. check_message() (message_header.h) detects most of these cases.
int Exchange::mpi_tag(Tag tag) const {
  const ActiveCall* const call = ActiveCall::current();
  std::uint64_t row = internal_->first_row(channel_);
  if (call != nullptr && tag != Tag::agreement && tag != Tag::completion) {
    const std::uint64_t mixed = call->sum_word(64) * 0x9e3779b97f4a7c15 >> 32;
    row += mixed * internal_->rows_of(channel_) >> 32;
  }
  return int(tag) + kTags * int(row);
}

Status Exchange::send(int to, Tag tag, const void* data, std::size_t bytes, mpi::Request& request) {
  if (!fits(bytes)) return too_long(bytes);
  start(request, to, tag, bytes, true);  // may throw, so before MPI_Isend
  trace_.leaves(started_.back().message, bytes);
  const int code =
      api_.Isend(data, int(bytes / 4), mpi::abi.type_uint32_t, to, mpi_tag(tag), comm(), &request);
  if (code != mpi::kSuccess) {
    // No request was started, so settle() has nothing to wait for.
    started_.pop_back();
    return mpi_failed("sending", code);
  }
  // Only bytes between nodes are counted.
  if (layout_ != nullptr && layout_->node_of_rank(to) != layout_->node()) count_sent(bytes);
  return Status::ok;
}

Status Exchange::receive(int from, Tag tag, void* data, std::size_t bytes, mpi::Request& request) {
  if (!fits(bytes)) return too_long(bytes);
  start(request, from, tag, bytes, false);  // may throw, so before MPI_Irecv
  const int code = api_.Irecv(data, int(bytes / 4), mpi::abi.type_uint32_t, from, mpi_tag(tag),
                              comm(), &request);
  if (code != mpi::kSuccess) {
    started_.pop_back();
    return mpi_failed("receiving", code);
  }
  return Status::ok;
}

Status Exchange::wait(mpi::Request& request, std::size_t* received) {
  if (request == mpi::abi.request_null) return Status::ok;
  mpi::MessageStatus status;
  const auto poll = [&](bool* done) {
    int flag = 0;
    const int code = api_.Test(&request, &flag, &status);
    *done = flag != 0;
    return code == mpi::kSuccess ? Status::ok : mpi_failed("waiting for a message", code);
  };
  Waiter waiter(Waiter::Poll::mpi, this, WaitStage::agreement, &request);
  SLIMPI_TRY(wait_until(waiter, poll));
  const Started* const started = Trace::running() != nullptr ? find(request) : nullptr;
  std::size_t bytes = 0;
  if (received != nullptr || (started != nullptr && !started->message.sent)) {
    int words = 0;
    const int code = api_.Get_count(&status, mpi::abi.type_uint32_t, &words);
    if (code != mpi::kSuccess) return mpi_failed("measuring a message", code);
    // MPI_UNDEFINED means that the message is not a whole number of words. `bytes` then stays 0,
    // which no caller expects, so the caller's check of the length fails.
    if (words != mpi::kUndefined) bytes = std::size_t(words) * 4;
  }
  if (started != nullptr) trace_.completed(started->message, bytes, stage_of(request));
  if (received == nullptr) return Status::ok;
  *received = bytes;
  if (waiter.rested())
    arrivals_.arrived(now(), bytes);
  else
    arrivals_.found(bytes);
  return Status::ok;
}

ArrivalRate::Time Exchange::due(const mpi::Request& request, ArrivalRate::Time now) const {
  const Started* const started = find(request);
  if (started == nullptr) return ArrivalRate::Time(0);
  return started->message.sent ? now : arrivals_.due(now, started->bytes);
}

void Exchange::start(const mpi::Request& request, int peer, Tag tag, std::size_t bytes, bool sent) {
  started_.push_back({&request, bytes, trace_.started(peer, tag, sent)});
}

// Returns the message of a request, or null if the request belongs to an agreement.
const Exchange::Started* Exchange::find(const mpi::Request& request) const {
  const auto found = std::find_if(started_.rbegin(), started_.rend(),
                                  [&](const Started& one) { return one.request == &request; });
  return found == started_.rend() ? nullptr : &*found;
}

bool Exchange::is_send(const mpi::Request& request) const {
  const Started* const started = find(request);
  return started != nullptr && started->message.sent;
}

// Makes MPI progress with all messages, by a probe that receives nothing.
void Exchange::progress() {
  int flag = 0;
  mpi::MessageStatus status;
  api_.Iprobe(mpi::abi.any_source, mpi::abi.any_tag, comm(), &flag, &status);
}

int Exchange::make_completion(mpi::Request* request) {
  return api_.Recv_init(nullptr, 0, mpi::abi.type_char, rank_, mpi_tag(Tag::completion), comm(),
                        request);
}

void Exchange::complete() {
  mpi::Request sent = mpi::abi.request_null;
  if (api_.Isend(nullptr, 0, mpi::abi.type_char, rank_, mpi_tag(Tag::completion), comm(), &sent) ==
      mpi::kSuccess)
    api_.Request_free(&sent);
}

WaitStage Exchange::stage_of(const mpi::Request& request) const {
  const Started* const started = find(request);
  switch (started != nullptr ? started->message.tag : Tag::failure) {
    case Tag::reduce_scatter:
      return WaitStage::reduce_scatter;
    case Tag::all_gather:
      return WaitStage::all_gather;
    case Tag::intra_reduce_scatter:
      return WaitStage::node_reduce_scatter;
    case Tag::intra_all_gather:
      return WaitStage::node_all_gather;
    case Tag::peers:
      return WaitStage::neighbor_exchange;
    case Tag::failure:
    case Tag::roll_call:
    case Tag::agreement:
    case Tag::completion:
      break;
  }
  return WaitStage::agreement;
}

int Exchange::peer_of(const mpi::Request& request) const {
  if (&request == &agreement_[0] || &request == &agreement_[1]) return agrees_with_;
  const Started* const started = find(request);
  return started != nullptr ? started->message.peer : -1;
}

}  // namespace slimpi::comm
