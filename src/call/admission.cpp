// SPDX-License-Identifier: BSD-3-Clause
#include "call/admission.h"

#include "algorithm/hook.h"
#include "algorithm/policy.h"
#include "base/described_tensor.h"
#include "base/fiber.h"
#include "base/float_environment.h"
#include "call/arguments.h"
#include "call/candidates.h"
#include "call/communicator_attribute.h"
#include "call/element_type.h"
#include "call/entry.h"
#include "call/estimate.h"
#include "call/queue.h"
#include "call/sum.h"
#include "device/plugins.h"
#include "device/process_memory.h"
#include "mpi/internal_comm.h"
#include "observe/activity.h"
#include "observe/log.h"

namespace slimpi::call {

namespace {

// Asks MPI, once per process, whether it takes buffers in GPU memory. MPI must be initialized.
void ask_mpi_about_devices() {
  static const bool takes = [] {
    const bool says = mpi::takes_gpu_memory();
    if (says) log_info("MPI takes device memory: it gets buffers and messages there as they are");
    return says;
  }();
  device::set_mpi_takes_device_memory(takes);
}

// Loads the support for kinds of memory, such as a GPU's, that the process has begun to use since
// the last call. If the buffers of a call may be on a device, this is called early, because MPI may
// need copies of them. Otherwise admit_sum() calls it last, so that most calls that are left to MPI
// do not pay for it.
void find_devices() {
  device::load_plugins();
  if (device::others()) ask_mpi_about_devices();
  device::begin_call();
}

// Returns whether both buffers are known to be in host memory. Returns false for a derived
// datatype, because its elements may lie outside the buffer.
bool on_host(const Request& request) {
  // Before count_blocks(), buffer() does not know the result of an all-gather.
  const void* const result = request.gathers() ? request.out : request.buffer();
  return mpi::is_predefined(request.datatype) && device::in_process_memory(result) &&
         (request.in == mpi::abi.in_place || device::in_process_memory(request.in));
}

// Guesses from the handle alone whether the communicator can have other ranks: the handle may be
// invalid, so it must not be passed to MPI here.
bool may_have_others(const Request& request) {
  const auto comm = request.comm;
  return comm != mpi::abi.comm_self && comm != mpi::abi.comm_null;
}

bool has_type_of(const Request& request) {
  const std::optional<ElementType> type = element_type(request.datatype);
  if (!type || *type == ElementType::float32) return type.has_value();
  const Runtime* const runtime = Runtime::started();
  return runtime != nullptr && runtime->config.types.has(*type);
}

// Prints that all ranks share one node, so that nothing will be compressed, in place of the banner
// (the line at the first call).
void log_one_node(Runtime& runtime, const comm::Communicator& communicator) {
  if (communicator.rank() != 0 || communicator.size() < runtime.world_size ||
      runtime.banner_logged.exchange(true))
    return;
  log_info(std::to_string(communicator.size()) +
           " ranks on 1 node: MPI makes the sums of host buffers, nothing to compress (to try: "
           "--ranks-per-node 1, or slimpi-lab)");
}

// Makes the ranks compare their options, and offers the communicator to the report
// (JobReport::offer). Called before the first call, and again after MPI_Comm_set_info.
Status begin_communicator(Runtime& runtime, comm::Communicator& communicator) {
  const Config& config = communicator.config();
  const Rules& rules = runtime.rules_of(communicator);
  prepare_calls(runtime, communicator);
  SLIMPI_TRY(communicator.compare_options(
      algorithm::rules_apply(config) ? describe(rules, communicator.name()) : ""));
  return runtime.report.offer(communicator);
}

// Ends a call after a collective step has failed: as a failure, or by leaving it to MPI if slimpi
// cannot use the communicator at all.
Outcome fail_or_leave(Runtime& runtime, comm::Communicator& communicator, const Request& request,
                      Status status) {
  if (!communicator.unusable()) return Outcome::finished(fail_call(runtime, communicator, status));
  // Status::unsupported is not an error: MPI's limit of communicators is reached (mpi::refuse).
  if (communicator.rank() == 0)
    log_failure_once(status == Status::unsupported ? LogLevel::info : LogLevel::warn,
                     "calls on a communicator go to MPI");
  return bypass(runtime, BypassReason::failure, communicator, request);
}

// Ends the job if only some of the ranks have left the sum to MPI, because an error cannot be
// reported to ranks that are inside MPI.
void end_if_unlike(Runtime& runtime, comm::Communicator& communicator) {
  if (communicator.refusal() < mpi::Refusal::single_threaded) return;
  runtime.errors.end_job(communicator.user(), failure_text());
}

// Called for a sum that slimpi would take if SLIMPI_ESTIMATE were not set: leaves it to MPI, and
// counts what slimpi would have done.
Outcome estimate_call(Runtime& runtime, comm::Communicator& communicator, const Request& request) {
  comm::Verdict found = Status::ok;
  {
    const ActiveCall active(subject(communicator, request));
    found = find_nodes_and_memory(runtime, communicator, request);
  }
  if (is_done(found) && communicator.on_one_node()) found = BypassReason::single_node;
  if (!is_done(found)) return end_call(runtime, communicator, request, found);
  count_bypass(runtime, BypassReason::off, communicator, request);
  return Outcome::finished(
      CallEstimate::running()->call_mpi(request, communicator.layout().nodes()));
}

// Runs a sum that slimpi takes, under a plan of the decision.
Outcome run_taken(Runtime& runtime, comm::Communicator& communicator,
                  const algorithm::Decision& decision, const Request& request) {
  const std::vector<comm::Plan>& plans = decision.plans;
  // The floating-point environment is set only here, because setting it costs more than all steps
  // of a call that is left to MPI.
  const OwnFloats environment;
  const ActiveCall active(subject(communicator, request));
  const comm::Verdict found = find_nodes_and_memory(runtime, communicator, request);
  if (!is_done(found)) return end_call(runtime, communicator, request, found);
  if (decision.automatic && !communicator.on_one_node())
    return run_fastest(runtime, communicator, decision, request);
  return run_plan(runtime, communicator, plans.front(), request);
}

}  // namespace

Outcome bypass(Runtime& runtime, BypassReason reason, const Request* float_sum) {
  if (float_sum != nullptr && is_float_sum(*float_sum) && may_have_others(*float_sum))
    runtime.statistics.count(&Counts::bytes_bypassed_elsewhere,
                             row_of(float_sum->collective).phases * bytes_of(*float_sum));
  return bypass(runtime, reason);
}

void count_bypass(Runtime& runtime, BypassReason reason, const comm::Communicator& communicator,
                  const Request& request) {
  Statistics& statistics = runtime.statistics;
  statistics.bypassed(reason);
  const comm::NodeLayout& layout = communicator.layout();
  const std::uint64_t bytes = row_of(request.collective).phases * bytes_of(request);
  if (layout.nodes() == 0)
    statistics.count(&Counts::bytes_bypassed_elsewhere, bytes);
  else
    statistics.count(
        &Counts::bytes_bypassed,
        layout.part_of(std::uint64_t(layout.nodes() - 1) * bytes, communicator.config().hierarchy));
}

Outcome bypass(Runtime& runtime, BypassReason reason, const comm::Communicator& communicator,
               const Request& request) {
  count_bypass(runtime, reason, communicator, request);
  return Outcome::bypassed(reason);
}

void prepare_calls(Runtime& runtime, comm::Communicator& communicator) {
  communicator.attachment<Decisions>().prepare(communicator.config(),
                                               runtime.rules_of(communicator), communicator.name());
}

comm::Verdict find_nodes_and_memory(Runtime& runtime, comm::Communicator& communicator,
                                    const Request& request) {
  SLIMPI_TRY(communicator.find_nodes(request.buffer()));
  if (const int nodes = communicator.layout().nodes(); nodes > runtime.nodes) runtime.nodes = nodes;
  if (communicator.on_one_node()) log_one_node(runtime, communicator);
  if (stays_on_node(communicator, request)) return BypassReason::single_node;
  return agree_on_memory(communicator, request);
}

Outcome end_call(Runtime& runtime, comm::Communicator& communicator, const Request& request,
                 const comm::Verdict& verdict) {
  return verdict.left() ? bypass(runtime, *verdict.left(), communicator, request)
                        : fail_or_leave(runtime, communicator, request, verdict.status());
}

const algorithm::Decision* decide(Runtime& runtime, comm::Communicator& communicator,
                                  const Request& request, Outcome* outcome) {
  if (communicator.unusable()) {
    *outcome = bypass(runtime, BypassReason::failure, communicator, request);
    return nullptr;
  }
  if (!communicator.agreed() && !communicator.failed()) {
    communicator.read_name();  // for subject() below
    const OwnFloats environment;
    // The comparison has a number of its own, because other ranks may still be in the previous
    // call, and because this call gets no number if it goes to MPI.
    communicator.begin_comparison();
    const ActiveCall active(subject(communicator, request));
    const Status begun = begin_communicator(runtime, communicator);
    if (begun != Status::ok) {
      end_if_unlike(runtime, communicator);
      *outcome = fail_or_leave(runtime, communicator, request, begun);
      return nullptr;
    }
  }
  // If the comparison of options failed in an earlier call on this rank alone, the other ranks have
  // their decisions and act on them: a call that slimpi takes fails, and any other goes to MPI. So
  // this rank prepares its decisions now, in order to act in the same way.
  if (communicator.failed() && !communicator.agreed()) prepare_calls(runtime, communicator);
  const algorithm::Decision& decision = communicator.attachment<Decisions>().find(request);
  if (!decision.take) *outcome = bypass(runtime, decision.reason, communicator, request);
  return &decision;
}

Outcome refuse_failed(Runtime& runtime, comm::Communicator& communicator) {
  const Status status =
      fail(communicator.failed_by(),
           "an earlier float sum on this communicator failed; make a new communicator");
  return Outcome::finished(runtime.errors.raise(communicator.user(), status));
}

Outcome decide_and_run(Runtime& runtime, comm::Communicator& communicator, const Request& request) {
  Outcome outcome;
  const algorithm::Decision* const decision = decide(runtime, communicator, request, &outcome);
  if (decision == nullptr) return outcome;
  if (decision->take || decision->reason != BypassReason::small) communicator.states.count_call();
  return decision->take ? run(runtime, communicator, *decision, request) : outcome;
}

Outcome run(Runtime& runtime, comm::Communicator& communicator, const algorithm::Decision& decision,
            const Request& request) {
  if (communicator.failed()) return refuse_failed(runtime, communicator);
  if (const Status status = communicator.check_revoked(); status != Status::ok)
    return Outcome::finished(fail_call(runtime, communicator, status));
  if (stays_on_node(communicator, request))
    return bypass(runtime, BypassReason::single_node, communicator, request);
  communicator.begin_numbered();
  // After another rank has reported a failure, no rank would receive the messages of this call.
  if (communicator.exchange().failure_reported())
    return fail_or_leave(runtime, communicator, request, communicator.exchange().check());
  if (const Status status = agree_on_blocks(communicator, request, false); status != Status::ok)
    return fail_or_leave(runtime, communicator, request, status);
  return CallEstimate::running() == nullptr ? run_taken(runtime, communicator, decision, request)
                                            : estimate_call(runtime, communicator, request);
}

bool is_float_sum(const Request& request) {
  return request.op == mpi::abi.op_sum && request.count > 0 && has_type_of(request);
}

namespace {

// Warns of a sum that is missing in the report, because the report was written in MPI_Finalize and
// a session of the program made the sum later. After slimpi_finish() no warning is due.
[[gnu::cold]] void warn_of_late_sum(const Runtime& runtime, const Request& request) {
  if (runtime.world_rank != 0 || request.gathers() || !element_type(request.datatype) ||
      mpi::has_world(runtime.api))
    return;
  log_once(LogLevel::warn,
           "float sums after MPI_Finalize are left to MPI, and the report does not count them");
}

// Runs the steps of admit() that need no communicator. Most calls that are left to MPI end here, so
// every instruction matters. Sets *its_runtime. Returns nothing if admit_sum() must continue.
[[gnu::always_inline]] inline std::optional<Outcome> bypassed_at_sight(const Request& request,
                                                                       Runtime** its_runtime) {
  if (Finalizing::is_finalizing()) return Outcome();
  Runtime* const runtime = *its_runtime = Runtime::get(request.comm);
  if (runtime == nullptr) return Outcome();
  if (runtime->finished.load(std::memory_order_relaxed)) [[unlikely]] {
    warn_of_late_sum(*runtime, request);
    return Outcome();
  }
  if (request.gathers() && !runtime->gathers.load(std::memory_order_relaxed)) return Outcome();
  if (!on_host(request)) find_devices();
  if (algorithm::inside_hook()) return Outcome();
  // own_count is negative only when the program's own call arrives, so each call is counted once.
  if (request.collective != Collective::allreduce && request.own_count < 0)
    runtime->statistics.count(request.gathers() ? &Counts::allgathers : &Counts::reduce_scatters);
  if (!Runtime::on.load(std::memory_order_relaxed))
    return bypass(*runtime, BypassReason::off, &request);
  const std::optional<ElementType> type = element_type(request.datatype);
  if (!type || (request.gathers() && request.in != mpi::abi.in_place &&
                element_type(request.sent.datatype) != type))
    return bypass(*runtime, BypassReason::datatype);
  if (request.op != mpi::abi.op_sum)
    return bypass(*runtime,
                  *type == ElementType::float32 ? BypassReason::op : BypassReason::datatype);
  if (*type != ElementType::float32 &&
      request.comm ==
          runtime->communicators.refused_types[std::size_t(*type)].load(std::memory_order_relaxed))
    return bypass(*runtime, BypassReason::datatype);
  return std::nullopt;
}

// Runs the steps of admit() that need the communicator, but no other rank.
[[gnu::always_inline]] inline comm::Communicator* admit_sum(Runtime* runtime, Request& request,
                                                            Way way, Outcome* outcome) {
  const ElementType type = type_of(request);
  // A type that SLIMPI_TYPES does not name is counted as `datatype`, even if there are other
  // reasons for leaving the call to MPI.
  const bool named = runtime->config.types.has(type);
  const auto ended = [&](const Outcome& with) -> comm::Communicator* {
    *outcome = with;
    return nullptr;
  };
  const auto bypass_for = [&](BypassReason reason) {
    return bypass(*runtime, named ? reason : BypassReason::datatype);
  };
  const bool has_blocks = request.collective != Collective::allreduce;
  if (!has_blocks && is_invalid(request)) return ended(bypass_for(BypassReason::small));
  const mpi::Comm comm = request.comm;
  std::optional<int> raised;
  comm::Communicator* const communicator = runtime->communicators.find_or_follow(comm, &raised);
  if (communicator == nullptr)
    return ended(raised ? Outcome::finished(*raised) : bypass_for(BypassReason::comm));
  if (!runtime->option_error.empty()) runtime->errors.end_job(comm, runtime->option_error);
  // Runtime::gathers may be true on some ranks only, but the options of the communicator are the
  // same on all ranks.
  if (request.gathers() && !communicator->config().calls.has(Collective::allgather))
    return ended(bypass(*runtime, BypassReason::function));
  const bool has_peers = communicator->has_peers();
  if (has_blocks && has_peers) {
    count_blocks(request, communicator->rank(), communicator->size());
    if (is_invalid(request)) return ended(bypass_for(BypassReason::small));
  }
  if (!named) {
    if (has_peers) communicator->refuse_type(type);
    runtime->communicators.refused_types[std::size_t(type)].store(comm, std::memory_order_relaxed);
    return ended(bypass(*runtime, BypassReason::datatype));
  }
  if (!has_peers) return ended(bypass(*runtime, BypassReason::comm));
  // Most calls that are left to MPI are small blocking sums, so these leave here, before the steps
  // that cost more. A small nonblocking sum leaves in decide_at_once() or in its fiber, and a
  // persistent one once the ranks have compared its count.
  if (way == Way::blocking && communicator->agreed() && !communicator->unusable() &&
      bytes_of(request) < communicator->config().min_size)
    return ended(bypass(*runtime, BypassReason::small, *communicator, request));
  if (on_host(request)) find_devices();
  return communicator;
}

// Runs the remaining steps of dispatch().
[[gnu::noinline]] Outcome dispatch_sum(Runtime* runtime, Request& request) {
  Outcome outcome;
  comm::Communicator* const communicator = admit_sum(runtime, request, Way::blocking, &outcome);
  if (communicator == nullptr) return outcome;
  wait_for_sums(*communicator);
  return decide_and_run(*runtime, *communicator, request);
}

}  // namespace

comm::Communicator* admit(Request& request, Way way, Outcome* outcome) {
  Runtime* runtime = nullptr;
  const std::optional<Outcome> bypassed = bypassed_at_sight(request, &runtime);
  if (!bypassed) return admit_sum(runtime, request, way, outcome);
  *outcome = *bypassed;
  return nullptr;
}

void take_description(Request& request) {
  if (!DescribedTensor::has_next()) return;
  Runtime::get(request.comm);  // finds MPI and its handles of float types
  if (request.op == mpi::abi.op_sum && !request.gathers() && has_type_of(request))
    request.tensor = std::make_shared<const DescribedTensor>(DescribedTensor::take_next());
}

Outcome dispatch(Request& request) {
  if (DescribedTensor::has_next()) [[unlikely]]
    take_description(request);
  Runtime* runtime = nullptr;
  const std::optional<Outcome> bypassed = bypassed_at_sight(request, &runtime);
  return bypassed ? *bypassed : dispatch_sum(runtime, request);
}

}  // namespace slimpi::call
