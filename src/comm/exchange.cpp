// SPDX-License-Identifier: BSD-3-Clause
#include "comm/exchange.h"

#include <algorithm>
#include <climits>

#include "base/activity.h"
#include "comm/waiter.h"

namespace slimpi::comm {

namespace {

// The count of an MPI message, in words of 4 bytes, is an int.
Status too_long(std::size_t bytes) {
  return fail(Status::unsupported, "a message of " + std::to_string(bytes) +
                                       " bytes is longer than 8 GiB; set SLIMPI_BUCKET");
}
bool fits(std::size_t bytes) {
  return bytes / 4 <= std::size_t(INT_MAX);
}

}  // namespace

Status Exchange::mpi_failed(const char* what, int code) const {
  return fail(Status::mpi, std::string(what) + ": " + mpi::error_text(api_, code));
}

void Exchange::set_comm(mpi::Comm comm, int number) {
  comm_ = comm;
  int* highest = nullptr;
  int found = 0;
  trace_.set_comm(comm, number);
  rank_ = size_ = 0;
  if (comm_ == mpi::abi.comm_null) return;
  api_.Comm_rank(comm_, &rank_);
  api_.Comm_size(comm_, &size_);
  failed_ranks_.assign(std::size_t(size_), false);
  failed_count_ = 0;
  const int code = api_.Comm_get_attr(comm_, mpi::abi.tag_ub, &highest, &found);
  constexpr int kLeast = 32767;  // every MPI has at least these
  // Each count has kTags tags in a row; so many rows fit below MPI's highest tag.
  counts_ = std::uint64_t(code == mpi::kSuccess && found != 0 ? *highest : kLeast) / kTags;
}

// What a message is for, and the count of the call. A message of a rank with another count finds no
// receive. So none is longer than its receive, which MPI would make an error of MPI_COMM_WORLD. The
// ranks wait, compare their counts (stall.h) and name them. With MPICH's usual 2^28 tags, two
// counts have the same tags once in 2^24 times; a check of the header names most of those.
int Exchange::mpi_tag(Tag tag) const {
  const ActiveCall* const call = ActiveCall::current();
  if (call == nullptr) return int(tag);
  const std::uint64_t mixed = call->count() * 0x9e3779b97f4a7c15 >> 32;
  return int(tag) + kTags * int(mixed * counts_ >> 32);
}

Status Exchange::send(int to, Tag tag, const void* data, std::size_t bytes, mpi::Request& request) {
  if (!fits(bytes)) return too_long(bytes);
  start(request, to, tag, true);  // first: it may throw
  trace_.leaves(started_.back().message, bytes);
  const int code =
      api_.Isend(data, int(bytes / 4), mpi::abi.type_uint32_t, to, mpi_tag(tag), comm_, &request);
  if (code != mpi::kSuccess) {
    // No request was started, so settle() has nothing to wait for.
    started_.pop_back();
    return mpi_failed("sending", code);
  }
  // Bytes inside a node are no traffic of the network.
  if (layout_ != nullptr && layout_->node_of[std::size_t(to)] != layout_->node()) count_sent(bytes);
  return Status::ok;
}

Status Exchange::receive(int from, Tag tag, void* data, std::size_t bytes, mpi::Request& request) {
  if (!fits(bytes)) return too_long(bytes);
  start(request, from, tag, false);  // first: it may throw
  const int code =
      api_.Irecv(data, int(bytes / 4), mpi::abi.type_uint32_t, from, mpi_tag(tag), comm_, &request);
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
  SLIMPI_TRY(wait_until(Waiter(Waiter::Poll::mpi, this, WaitStage::agreement, &request), poll));
  const Started* const started = Trace::running() != nullptr ? find(request) : nullptr;
  std::size_t bytes = 0;
  if (received != nullptr || (started != nullptr && !started->message.sent)) {
    int words = 0;
    const int code = api_.Get_count(&status, mpi::abi.type_uint32_t, &words);
    if (code != mpi::kSuccess) return mpi_failed("measuring a message", code);
    // MPI_UNDEFINED: not a whole number of words. No caller expects 0 bytes, so its check fails.
    if (words != mpi::kUndefined) bytes = std::size_t(words) * 4;
  }
  if (started != nullptr) trace_.completed(started->message, bytes, stage_of(request));
  if (received != nullptr) *received = bytes;
  return Status::ok;
}

void Exchange::start(const mpi::Request& request, int peer, Tag tag, bool sent) {
  started_.push_back({&request, trace_.started(peer, tag, sent)});
}

// Null: no schedule has started it, so it belongs to reduce().
const Exchange::Started* Exchange::find(const mpi::Request& request) const {
  const auto found = std::find_if(started_.rbegin(), started_.rend(),
                                  [&](const Started& one) { return one.request == &request; });
  return found == started_.rend() ? nullptr : &*found;
}

bool Exchange::is_send(const mpi::Request& request) const {
  const Started* const started = find(request);
  return started != nullptr && started->message.sent;
}

// A probe receives nothing, and MPI moves all other messages on meanwhile.
void Exchange::progress() {
  int flag = 0;
  mpi::MessageStatus status;
  api_.Iprobe(mpi::abi.any_source, mpi::abi.any_tag, comm_, &flag, &status);
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
    case Tag::completion:
      break;
  }
  return WaitStage::agreement;
}

int Exchange::peer_of(const mpi::Request& request) const {
  const Started* const started = find(request);
  return started != nullptr ? started->message.peer : -1;
}

}  // namespace slimpi::comm
