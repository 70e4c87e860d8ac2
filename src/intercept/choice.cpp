// SPDX-License-Identifier: BSD-3-Clause
#include "intercept/choice.h"

#include <bit>
#include <chrono>
#include <new>

#include "intercept/compressed_call.h"

namespace slimpi::intercept {

namespace {

using Clock = std::chrono::steady_clock;

// A failure half way: the other ranks are told, and no later call on this communicator can trust
// what is still on its way.
bool fail_call(Runtime& runtime, algorithm::Communicator& communicator, Status status, int* code) {
  // A failure of a hook is one that all ranks know of, with no message left on its way.
  if (status == Status::hook) {
    *code = runtime.raise(communicator.user(), status, true);
    return true;
  }
  // So is a disagreement, and rank 0 has said it.
  if (status == Status::disagreement) {
    *code = runtime.raise(communicator.user(), status, false);
    return true;
  }
  communicator.broken = true;
  communicator.exchange().tell_failure(status);
  *code = runtime.raise(communicator.user(), status, !communicator.exchange().was_told());
  return true;
}

// No exception leaves the library.
template <typename Run>
Status without_exceptions(Run run) {
  try {
    return run();
  } catch (const std::bad_alloc&) {
    return fail(Status::no_memory, "no host memory");
  }
}

bool pass_timed(Runtime& runtime, Passed reason, const Allreduce& request, int* code) {
  runtime.statistics.passed(reason);
  *code = pass_to_mpi(request);
  return true;
}

// Runs the candidate that is next and tells the tuner what it took. `run` returns whether the time
// counts, alike on all ranks.
template <typename Run>
bool try_next(Runtime& runtime, algorithm::Communicator& communicator, algorithm::Tuner& tuner,
              int* code, Run run) {
  const auto begin = Clock::now();
  const bool counts = run(tuner.next());
  if (*code != MPI_SUCCESS || communicator.broken || !counts) return true;
  const std::chrono::nanoseconds spent = Clock::now() - begin;
  if (!tuner.record(std::uint64_t(spent.count()))) return true;
  const Status status = communicator.exchange().all_min(tuner.times_to_agree());
  if (status != Status::ok) return fail_call(runtime, communicator, status, code);
  tuner.agreed();
  return true;
}

int size_class(const Allreduce& request) {
  return std::bit_width(std::uint64_t(request.count));
}

}  // namespace

bool answer_with(Runtime& runtime, algorithm::Communicator& communicator,
                 const algorithm::Plan& plan, const Allreduce& request, int* code) {
  std::optional<Passed> reason;
  const Status status = without_exceptions(
      [&] { return CompressedCall(runtime, communicator, plan, request).run(&reason); });
  if (status != Status::ok) return fail_call(runtime, communicator, status, code);
  *code = MPI_SUCCESS;
  if (!reason) return true;
  runtime.statistics.passed(*reason);
  return false;
}

bool answer_fastest(Runtime& runtime, algorithm::Communicator& communicator,
                    const std::vector<algorithm::Plan>& plans, const Allreduce& request,
                    int* code) {
  algorithm::Tuner& tuner = communicator.tuner(size_class(request), int(plans.size()) + 1);
  return try_next(runtime, communicator, tuner, code, [&](int candidate) {
    if (candidate == 0) {
      pass_timed(runtime, Passed::automatic, request, code);
    } else if (!answer_with(runtime, communicator, plans[std::size_t(candidate - 1)], request,
                            code)) {
      *code = pass_to_mpi(request);
    }
    return true;
  });
}

bool answer_in_node(Runtime& runtime, algorithm::Communicator& communicator,
                    const algorithm::Plan& plan, const Allreduce& request, int* code) {
  CompressedCall call(runtime, communicator, plan, request);
  bool possible = false;
  if (const Status status = call.open_in_node(&possible); status != Status::ok)
    return fail_call(runtime, communicator, status, code);
  if (!possible) {
    runtime.statistics.passed(Passed::single_node);
    return false;
  }
  algorithm::Tuner& tuner = communicator.tuner(-size_class(request), 2);
  return try_next(runtime, communicator, tuner, code, [&](int candidate) {
    if (candidate == 0) return pass_timed(runtime, Passed::single_node, request, code);
    bool usual = true;
    *code = MPI_SUCCESS;
    const Status status = without_exceptions([&] { return call.run_in_node(&usual, code); });
    if (status != Status::ok) fail_call(runtime, communicator, status, code);
    return usual;
  });
}

}  // namespace slimpi::intercept
