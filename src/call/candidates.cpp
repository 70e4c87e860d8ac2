// SPDX-License-Identifier: BSD-3-Clause
#include "call/candidates.h"

#include <algorithm>
#include <bit>
#include <chrono>

#include "base/exceptions.h"
#include "base/fiber.h"
#include "base/float_environment.h"
#include "call/admission.h"
#include "call/element_type.h"
#include "call/entry.h"
#include "call/sum.h"
#include "comm/autotuner.h"
#include "observe/activity.h"
#include "observe/log.h"

namespace slimpi::call {

namespace {

// Returns the decisions for the calls that a row of the rules matches or, if `rule` is null, for
// the calls that no row matches.
Decisions::ByCall prepared(const Config& config, const Rule* rule, std::size_t number) {
  Decisions::ByCall decisions;
  for (std::size_t i = 0; i < decisions.size(); ++i) {
    const auto type = ElementType(i / kCollectives);
    algorithm::Decision& decision = decisions[i];
    decision = algorithm::make_decision(config, rule, Collective(i % kCollectives));
    if (type != ElementType::float32)
      algorithm::keep_shorter(decision, int(8 * row_of(type).bytes));
    decision.candidates.push_back("mpi");
    for (const comm::Plan& plan : decision.plans)
      decision.candidates.push_back(plan.algorithm->name);
    decision.number = int(number);
  }
  return decisions;
}

}  // namespace

void Decisions::prepare(const Config& config, const Rules& rules, const std::string& name) {
  min_size_ = config.min_size;
  small_.reason = BypassReason::small;
  rows_.clear();
  for (const Rule& rule : rules)
    if (is_for(rule, name))
      rows_.push_back(
          {rule.min_size, rule.max_size, prepared(config, &rule, rows_.size()), rule.matched});
  other_ = prepared(config, nullptr, rows_.size());
}

const algorithm::Decision& Decisions::find(const Request& request) noexcept {
  return find(bytes_of(request), type_of(request), request.collective);
}

const algorithm::Decision& Decisions::find(std::uint64_t bytes, ElementType type,
                                           Collective collective) noexcept {
  if (bytes < min_size_) return small_;
  const auto row = std::find_if(rows_.begin(), rows_.end(), [bytes](const Row& each) {
    return bytes >= each.min_size && bytes <= each.max_size;
  });
  if (row != rows_.end()) row->matched->store(true, std::memory_order_relaxed);
  return (row == rows_.end()
              ? other_
              : row->decisions)[std::size_t(type) * kCollectives + std::size_t(collective)];
}

namespace {

std::uint64_t steady_nanoseconds() {
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  return std::uint64_t(std::chrono::nanoseconds(now).count());
}

// The nanoseconds that are recorded for a call in which MPI failed: longer than any real call, yet
// so short that the sum of many does not overflow.
constexpr std::uint64_t kFailedInMpi = 3'600'000'000'000;

// The result of a call by one candidate:
// code       the code for the program
// counts     whether the autotuner counts the call; the same on all ranks
// verifying  the nanoseconds in which SLIMPI_VERIFY and SLIMPI_SELFTEST ran, not the candidate
struct Ran {
  int code = mpi::kSuccess;
  bool counts = true;
  std::uint64_t verifying = 0;
};

// Forwards a call to MPI in the program's floating-point environment, although the thread is in
// slimpi's.
int call_mpi_from_inside(const Request& request, std::optional<BypassReason> reason) {
  const CallersFloats environment;
  return call_mpi(request, reason);
}

Ran run_mpi(Runtime& runtime, const comm::Communicator& communicator, const Request& request) {
  count_bypass(runtime, BypassReason::automatic, communicator, request);
  if (ActiveCall* const active = ActiveCall::current(); active != nullptr) active->in_mpi();
  return {call_mpi_from_inside(request, BypassReason::automatic)};
}

// Runs a candidate: number 0 is MPI's own sum, and the others are the decision's plans.
Ran run_candidate(Runtime& runtime, comm::Communicator& communicator,
                  const algorithm::Decision& decision, int candidate, const Request& request) {
  if (candidate == 0) return run_mpi(runtime, communicator, request);
  Ran ran;
  const Outcome outcome = run_plan(
      runtime, communicator, decision.plans[std::size_t(candidate - 1)], request, &ran.verifying);
  ran.code = outcome.done ? outcome.code : call_mpi_from_inside(request, outcome.reason);
  // With SLIMPI_START the first sums are MPI's, so their time says nothing about the plan.
  ran.counts = outcome.done ? outcome.code == mpi::kSuccess : outcome.reason != BypassReason::start;
  return ran;
}

// Runs the next candidate and records its time in the autotuner.
Outcome try_next(Runtime& runtime, comm::Communicator& communicator, comm::Autotuner& autotuner,
                 const algorithm::Decision& decision, const Request& request) {
  const Candidates candidates = decision.candidates;
  const std::uint64_t begin = candidate_clock();
  const int candidate = autotuner.next();
  const bool was_settled = autotuner.settled();
  const Ran ran = run_candidate(runtime, communicator, decision, candidate, request);
  const Outcome done = Outcome::finished(ran.code);
  if (!ran.counts || communicator.failed()) return done;
  // A call in which MPI fails is recorded with a long time: MPI may fail on one rank only, but all
  // ranks must record the same calls.
  const std::uint64_t spent =
      ran.code == mpi::kSuccess ? candidate_clock() - begin - ran.verifying : kFailedInMpi;
  const std::uint64_t bytes = bytes_of(request);
  // An exception here costs only a row of the report. It must not end the call, since the other
  // ranks have the sum and may be in their next call.
  if (communicator.rank() == 0)
    (void)caught(
        [&] { runtime.statistics.choices.add(candidates, bytes, std::size_t(candidate), spent); });
  const Status status = comm::record_time(communicator, autotuner, spent);
  if (status != Status::ok) return Outcome::finished(fail_call(runtime, communicator, status));
  if (communicator.rank() == 0)
    (void)caught([&] {
      if (was_settled && !autotuner.settled())
        log_debug("auto: sums of about " + std::to_string(bytes) + " bytes are tried again");
      if (!was_settled && autotuner.settled())
        log_debug(
            runtime.statistics.choices.choose(candidates, bytes, std::size_t(autotuner.next())));
    });
  return done;
}

// Returns the size class of a call; the calls of one class share an autotuner. Each type and
// collective has its own classes. So do nonblocking sums, because fibers are slower beside
// computation.
std::size_t size_class(const Request& request) {
  constexpr std::size_t kClasses = 65;  // bits of a count
  const std::size_t kind = std::size_t(request.collective) * 2 + (Fiber::inside() ? 1 : 0);
  return std::size_t(std::bit_width(std::uint64_t(request.count))) +
         kClasses * (std::size_t(type_of(request)) + kElementTypes * kind);
}

}  // namespace

std::uint64_t (*candidate_clock)() = steady_nanoseconds;

Outcome run_plan(Runtime& runtime, comm::Communicator& communicator, const comm::Plan& plan,
                 const Request& request, std::uint64_t* verifying) {
  comm::Verdict verdict = Status::ok;
  const Status status = caught([&] {
    Sum sum(runtime, communicator, plan, request);
    verdict = sum.run();
    if (verifying != nullptr) *verifying = sum.verify_nanoseconds();
    return verdict.status();
  });
  if (status != Status::ok) return Outcome::finished(fail_call(runtime, communicator, status));
  if (verdict.left()) return bypass(runtime, *verdict.left(), communicator, request);
  return Outcome::finished(mpi::kSuccess);
}

Outcome run_fastest(Runtime& runtime, comm::Communicator& communicator,
                    const algorithm::Decision& decision, const Request& request) {
  comm::Autotuner* autotuner = nullptr;
  if (const Status status = communicator.attachment<comm::Autotuners>().find_or_make_together(
          communicator, decision.number, size_class(request), int(decision.candidates.size()),
          &autotuner);
      status != Status::ok)
    return Outcome::finished(fail_call(runtime, communicator, status));
  if (autotuner == nullptr) return bypass(runtime, BypassReason::failure, communicator, request);
  return try_next(runtime, communicator, *autotuner, decision, request);
}

}  // namespace slimpi::call
