// SPDX-License-Identifier: BSD-3-Clause
#include "comm/stall.h"

#include <mutex>
#include <new>

#include "base/log.h"
#include "comm/exchange.h"

namespace slimpi::comm {

namespace {

bool is_same_call(const RollCall::Place& place, const ActiveCall& call) {
  return place.communicator == std::uint32_t(call.record().communicator) &&
         place.call == std::uint32_t(call.call());
}

// Ranks that are in slimpi, but in another call, or with another count.
std::string describe_others(const RollCall& roll_call, const ActiveCall& call) {
  std::string text;
  int named = 0;
  for (std::size_t rank = 0; rank < roll_call.answers().size() && named < 4; ++rank) {
    const auto& place = roll_call.answers()[rank];
    if (!place || (is_same_call(*place, call) && place->count == call.count())) continue;
    ++named;
    text += "; rank " + std::to_string(rank) + " waits in call " + std::to_string(place->call) +
            ", " + std::to_string(place->count) + " floats, stage " + to_string(place->stage);
  }
  return text;
}

}  // namespace

// Most waits are shorter than kPublished and never come here, so nothing below is on the path of a
// usual call.
Status StallWatch::check_long(Clock::time_point began, Clock::time_point now) {
  ActiveCall* const call = ActiveCall::current();
  if (step_ == Step::unpublished) {
    if (exchange_ != nullptr && request_ != nullptr) stage_ = exchange_->stage_of(*request_);
    if (call != nullptr) call->waits(stage_, began);
    step_ = Step::published;
  }
  const auto limit = stall_limit();
  std::unique_lock<std::recursive_mutex> lock;
  if (exchange_ != nullptr && exchange_->internal() != nullptr)
    lock = std::unique_lock(exchange_->internal()->mutex);
  try {
    if (exchange_ != nullptr) exchange_->serve_roll_call();
    if (!compared_ && now - began >= kCompared) {
      compared_ = true;
      // A second question would make the answers to the first one void.
      if (!asked_) ask();
    }
    // At every check: answers arrive at any time, one after the other.
    if (asked_) SLIMPI_TRY(compare_counts());
    // SLIMPI_STALL=0 turns off the report, not the comparison of counts.
    if (limit.count() == 0) return Status::ok;
    if (step_ == Step::published && now - began >= limit) {
      ask();
      asked_at_ = now;
      step_ = Step::asked;
    }
    if (step_ != Step::asked) return Status::ok;
    // A rank that has not answered in time is computing, or blocks in MPI, or has left the job.
    const bool answered = asked_ ? exchange_->roll_call().complete() : true;
    if (!answered && now - asked_at_ < kTimeToAnswer) return Status::ok;
    step_ = Step::reported;
    report(now - began);
  } catch (const std::bad_alloc&) {
    // There will be no report of this wait.
    step_ = Step::reported;
  }
  return Status::ok;
}

void StallWatch::ask() {
  if (exchange_ == nullptr) return;
  const int peer = request_ != nullptr ? exchange_->peer_of(*request_) : -1;
  exchange_->roll_call().ask(exchange_->comm(), peer, &asked_);
}

// A rank in an earlier or a later call may be right: calls overlap.
Status StallWatch::compare_counts() const {
  const ActiveCall* const call = ActiveCall::current();
  if (call == nullptr) return Status::ok;
  const auto& answers = exchange_->roll_call().answers();
  for (std::size_t rank = 0; rank < answers.size(); ++rank)
    if (const auto& place = answers[rank];
        place && is_same_call(*place, *call) && place->count != call->count())
      return fail(Status::bad_message, describe_other_count(int(rank), place->count));
  return Status::ok;
}

// Returns what is known about the ranks that the wait is for.
std::string StallWatch::find_absent(std::vector<int>* absent) const {
  if (!arrivals_.empty()) {
    for (std::size_t rank = 0; rank < arrivals_.size(); ++rank)
      if (arrivals_[rank] < 0) absent->push_back(int(rank));
  } else if (asked_) {
    const RollCall& roll_call = exchange_->roll_call();
    for (std::size_t rank = 0; rank < roll_call.answers().size(); ++rank)
      if (roll_call.is_silent(int(rank))) absent->push_back(int(rank));
  } else if (stage_ == WaitStage::device) {
    return "for a device of this rank";
  } else if (exchange_ != nullptr && request_ != nullptr) {
    if (const int peer = exchange_->peer_of(*request_); peer >= 0) absent->push_back(peer);
  }
  if (absent->empty())
    return asked_ ? "every rank that was asked has answered" : "MPI does not tell from which ranks";
  return "not heard from: " + describe_ranks(*absent, absent->size()) + ", which " +
         (absent->size() == 1 ? "is" : "are") + " late, or left this call to MPI, or run" +
         (absent->size() == 1 ? "s" : "") + " without slimpi";
}

// Once for each wait. The wait goes on after it: slimpi ends no job because a rank is late.
void StallWatch::report(Clock::duration waited) {
  ActiveCall* const call = ActiveCall::current();
  std::vector<int> absent;
  const std::string who = find_absent(&absent);
  std::string text =
      "waits for " +
      std::to_string(std::chrono::duration_cast<std::chrono::seconds>(waited).count()) + " s in ";
  text += call != nullptr ? describe_call(call->record()) : "no call";
  text += std::string(", stage ") + to_string(stage_) + ": " + who;
  if (asked_ && call != nullptr) text += describe_others(exchange_->roll_call(), *call);
  log_warn(text);
  if (call != nullptr) call->reported(absent);
}

void StallWatch::end() {
  if (ActiveCall* const call = ActiveCall::current(); call != nullptr) call->works();
}

}  // namespace slimpi::comm
