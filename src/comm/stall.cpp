// SPDX-License-Identifier: BSD-3-Clause
#include "comm/stall.h"

#include <mutex>
#include <new>

#include "comm/exchange.h"
#include "observe/log.h"

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
    if (place->stage == WaitStage::mpi_finalize) {
      text += "; rank " + std::to_string(rank) + " has called MPI_Finalize";
      continue;
    }
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
  if (exchange_ != nullptr) timeout_ = exchange_->timeout();
  const auto limit = stall_limit(), waited = std::chrono::floor<std::chrono::seconds>(now - began);
  // 0: never.
  const bool long_enough = limit.count() != 0 && waited >= limit,
             too_long = timeout_.count() != 0 && waited >= timeout_;
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
    if (asked_) SLIMPI_TRY(compare_calls());
    if ((step_ == Step::published && (long_enough || too_long)) ||
        (step_ == Step::reported && too_long)) {
      ask();
      asked_at_ = now;
      step_ = step_ == Step::published ? Step::asked : Step::asked_again;
    }
    if ((step_ != Step::asked && step_ != Step::asked_again) || !others_answered(now))
      return Status::ok;
    if (too_long) return time_out(waited);
    step_ = Step::reported;
    report(waited);
  } catch (const std::bad_alloc&) {
    // There will be no report of this wait.
    step_ = Step::reported;
    if (too_long) return fail(Status::absent, "a wait lasted longer than SLIMPI_TIMEOUT");
  }
  return Status::ok;
}

// A rank that has not answered in time is computing, or blocks in MPI, or has left the job.
bool StallWatch::others_answered(Clock::time_point now) const {
  return !asked_ || exchange_->roll_call().complete() || now - asked_at_ >= kTimeToAnswer;
}

void StallWatch::ask() {
  if (exchange_ == nullptr) return;
  const int peer = request_ != nullptr ? exchange_->peer_of(*request_) : -1;
  exchange_->roll_call().ask(exchange_->comm(), peer, &asked_);
}

// A rank in an earlier or a later call may be right: calls overlap. A rank that has called
// MPI_Finalize begins no call any more; it may have completed this one.
Status StallWatch::compare_calls() const {
  const ActiveCall* const call = ActiveCall::current();
  if (call == nullptr) return Status::ok;
  const auto& answers = exchange_->roll_call().answers();
  for (std::size_t rank = 0; rank < answers.size(); ++rank) {
    const auto& place = answers[rank];
    if (!place || place->communicator != std::uint32_t(call->record().communicator)) continue;
    if (place->stage == WaitStage::mpi_finalize) {
      if (std::int32_t(place->call - std::uint32_t(call->call())) < 0)
        return fail(Status::absent, "rank " + std::to_string(rank) +
                                        " has called MPI_Finalize and does not take part in " +
                                        describe_call(call->record()));
    } else if (is_same_call(*place, *call)) {
      // The whole count: the word of an answer has 31 bits of it.
      if (place->count != call->count())
        return fail(Status::bad_message, describe_other_sum(int(rank), place->count, 64));
      if (place->sum != std::uint32_t(call->sum_word(32)))
        return fail(Status::bad_message, describe_other_sum(int(rank), place->sum, 32));
    }
  }
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

std::string StallWatch::describe(Clock::duration waited, std::vector<int>* absent) const {
  const ActiveCall* const call = ActiveCall::current();
  const std::string who = find_absent(absent);
  std::string text =
      std::to_string(std::chrono::duration_cast<std::chrono::seconds>(waited).count()) + " s in ";
  text += call != nullptr ? describe_call(call->record()) : "no call";
  text += std::string(", stage ") + to_string(stage_) + ": " + who;
  if (asked_ && call != nullptr) text += describe_others(exchange_->roll_call(), *call);
  return text;
}

// Once for each wait, which goes on after it.
void StallWatch::report(Clock::duration waited) {
  std::vector<int> absent;
  log_warn("waits for " + describe(waited, &absent));
  if (ActiveCall* const call = ActiveCall::current(); call != nullptr) call->reported(absent);
}

Status StallWatch::time_out(Clock::duration waited) {
  std::vector<int> absent;
  return fail(Status::absent, "waited " + describe(waited, &absent) +
                                  "; SLIMPI_TIMEOUT=" + std::to_string(timeout_.count()) +
                                  " makes this an error, 0 waits for ever");
}

void StallWatch::end() {
  if (ActiveCall* const call = ActiveCall::current(); call != nullptr) call->works();
}

}  // namespace slimpi::comm
