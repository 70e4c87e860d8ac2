// SPDX-License-Identifier: BSD-3-Clause
#include "call/candidates.h"

#include <bit>
#include <chrono>

#include "base/activity.h"
#include "base/exceptions.h"
#include "base/log.h"
#include "call/allreduce_call.h"
#include "call/auto_choices.h"
#include "call/failure.h"
#include "intra/node_state.h"

namespace slimpi::call {

namespace {

std::uint64_t steady_nanoseconds() {
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  return std::uint64_t(std::chrono::nanoseconds(now).count());
}

bool call_mpi_timed(Runtime& runtime, const comm::Communicator& communicator, BypassReason reason,
                    const Allreduce& request, int* code) {
  runtime.left_to_mpi(communicator, reason, request);
  if (ActiveCall* const active = ActiveCall::current(); active != nullptr) active->in_mpi();
  *code = pass_to_mpi(request);
  return true;
}

// Runs the next candidate and records its time in the autotuner. `run` returns whether the time
// counts; the answer is the same on all ranks.
template <typename Run>
bool try_next(Runtime& runtime, comm::Communicator& communicator, comm::Autotuner& autotuner,
              const std::vector<std::string>& names, const Allreduce& request, int* code, Run run) {
  const std::uint64_t begin = candidate_clock();
  const int candidate = autotuner.next();
  const bool was_settled = autotuner.settled();
  const bool counts = run(candidate);
  if (*code != MPI_SUCCESS || communicator.failed() || !counts) return true;
  const std::uint64_t spent = candidate_clock() - begin;
  const std::uint64_t bytes = std::uint64_t(request.count) * sizeof(float);
  // What this throws costs a row of the report. The others have the sum and may be in their next
  // call.
  if (communicator.rank() == 0)
    (void)caught([&] {
      AutoChoices::all().add(names, bytes, std::size_t(candidate), spent);
      return Status::ok;
    });
  if (!autotuner.record(spent)) return true;
  const Status status = communicator.exchange().all_min(autotuner.times_to_agree());
  if (status != Status::ok) {
    fail_call(runtime, communicator, status, code);
    return true;
  }
  autotuner.agreed();
  if (communicator.rank() == 0)
    (void)caught([&] {
      if (was_settled && !autotuner.settled())
        log_debug("auto: sums of about " + std::to_string(bytes) + " bytes are tried again");
      if (!was_settled && autotuner.settled())
        log_debug(AutoChoices::all().choose(names, bytes, std::size_t(autotuner.next())));
      return Status::ok;
    });
  return true;
}

int bits_of_count(const Allreduce& request) {
  return std::bit_width(std::uint64_t(request.count));
}

// As the report names them. Allocates at the first call only.
const std::vector<std::string>& node_candidates() {
  static const auto& names = *new std::vector<std::string>{"mpi", "in the node"};
  return names;
}

}  // namespace

std::uint64_t (*candidate_clock)() = steady_nanoseconds;

bool run_plan(Runtime& runtime, comm::Communicator& communicator, const comm::Plan& plan,
              const Allreduce& request, int* code) {
  std::optional<BypassReason> reason;
  const Status status =
      caught([&] { return AllreduceCall(runtime, communicator, plan, request).run(&reason); });
  *code = MPI_SUCCESS;
  if (status != Status::ok) {
    fail_call(runtime, communicator, status, code);
    return true;
  }
  if (!reason) return true;
  runtime.left_to_mpi(communicator, *reason, request);
  return false;
}

bool run_fastest(Runtime& runtime, comm::Communicator& communicator, const PreparedCall& prepared,
                 const Allreduce& request, int* code) {
  const std::vector<comm::Plan>& plans = prepared.decision.plans;
  comm::Autotuner* autotuner = nullptr;
  if (const Status status =
          communicator.autotuner(bits_of_count(request), int(plans.size()) + 1, &autotuner);
      status != Status::ok) {
    fail_call(runtime, communicator, status, code);
    return true;
  }
  if (autotuner == nullptr) {
    runtime.left_to_mpi(communicator, BypassReason::failure, request);
    return false;
  }
  return try_next(runtime, communicator, *autotuner, prepared.candidates, request, code,
                  [&](int candidate) {
                    if (candidate == 0) {
                      call_mpi_timed(runtime, communicator, BypassReason::automatic, request, code);
                    } else if (!run_plan(runtime, communicator, plans[std::size_t(candidate - 1)],
                                         request, code)) {
                      *code = pass_to_mpi(request);
                    }
                    return true;
                  });
}

bool run_in_node_fastest(Runtime& runtime, comm::Communicator& communicator, const comm::Plan& plan,
                         const Allreduce& request, int* code) {
  // A transport that was asked for by name is used without trials.
  const bool tries = communicator.config().intra == Intra::automatic;
  // What the ranks need for their decisions they make together: where they decide for MPI, a rank
  // cannot learn any more that another has failed.
  const auto prepare = [&] {
    node_candidates();
    intra::NodeState::of(communicator).order.reserve(communicator.size());
    if (tries) communicator.make_node_autotuners();
    return Status::ok;
  };
  AllreduceCall call(runtime, communicator, plan, request);
  bool possible = false;
  const Status opened = [&] {
    SLIMPI_TRY(communicator.make_for_node(prepare, &possible));
    return possible ? call.open_in_node(&possible) : Status::ok;
  }();
  if (opened != Status::ok) {
    fail_call(runtime, communicator, opened, code);
    return true;
  }
  if (!possible) {
    runtime.left_to_mpi(communicator, BypassReason::single_node, request);
    return false;
  }
  const auto run_in_node = [&] {
    bool usual = true;
    *code = MPI_SUCCESS;
    const Status status = caught([&] { return call.run_in_node(&usual, code); });
    if (status != Status::ok) fail_call(runtime, communicator, status, code);
    return usual;
  };
  if (!tries) {
    run_in_node();
    return true;
  }
  const auto run = [&](int candidate) {
    if (candidate == 0)
      return call_mpi_timed(runtime, communicator, BypassReason::single_node, request, code);
    return run_in_node();
  };
  return try_next(runtime, communicator, communicator.node_autotuner(bits_of_count(request)),
                  node_candidates(), request, code, run);
}

}  // namespace slimpi::call
