// SPDX-License-Identifier: BSD-3-Clause
#include "call/allreduce_call.h"

#include <algorithm>
#include <bit>
#include <chrono>
#include <cmath>
#include <cstring>
#include <new>

#include "algorithm/prepared.h"
#include "base/activity.h"
#include "base/log.h"
#include "base/shape_hints.h"
#include "call/traced_bits.h"
#include "comm/call_sequence.h"
#include "comm/stream_wait.h"
#include "device/device.h"
#include "intra/intra_node.h"
#include "intra/node_state.h"
#include "policy/policy.h"

namespace slimpi::call {

namespace {
// Below this many bytes MPI's own allreduce is as fast inside a node.
constexpr std::uint64_t kShortInNode = 64 << 10;
}  // namespace

AllreduceCall::AllreduceCall(Runtime& runtime, comm::Communicator& communicator,
                             const comm::Plan& plan, const Allreduce& request)
    : runtime_(runtime),
      communicator_(communicator),
      plan_(plan),
      request_(request),
      in_(static_cast<const float*>(request.in == MPI_IN_PLACE ? request.out : request.in)),
      out_(static_cast<float*>(request.out)),
      count_(std::uint64_t(request.count)),
      location_(device::locate(request.out)),
      in_location_(in_ == out_ ? location_ : device::locate(in_)) {
  if (plan.algorithm->shapes) plan_.shape = ShapeHints::all().find(count_);
}

Status AllreduceCall::run(std::optional<BypassReason>* passed) {
  const Inside inside(runtime_.statistics);
  communicator_.use_scratch(scratch_.take());
  SLIMPI_TRY(agree_on_memory(passed));
  if (*passed) return Status::ok;
  SLIMPI_TRY(plan_.algorithm->open(communicator_, plan_));
  if (plan_.hierarchy != Hierarchy::flat)
    SLIMPI_TRY(intra::NodeState::of(communicator_).open_shared(communicator_));
  bool ready = false;
  SLIMPI_TRY(algorithm::prepare(communicator_, plan_, count_, location_, &ready));
  if (!ready) {
    *passed = BypassReason::failure;
    return Status::ok;
  }
  SLIMPI_TRY(communicator_.stream_for(location_, &stream_));
  SLIMPI_TRY(plan_.needs_state ? agree_on_state(passed) : agree_on_finite(passed));
  if (*passed) return Status::ok;
  log_banner();
  const TracedBits bits(plan_);
  number_ = ++communicator_.calls;
  const std::uint64_t every = communicator_.config().verify;
  bool verify = every != 0 && number_ % every == 0;
  if (verify) SLIMPI_TRY(keep_input(&verify));

  const auto start = std::chrono::steady_clock::now();
  const std::uint64_t sent_before = communicator_.exchange().bytes_sent();
  SLIMPI_TRY(colocate_buffers());
  comm::Call call = this->call();
  SLIMPI_TRY(plan_.algorithm->run(call));
  SLIMPI_TRY(finish_stream());
  if (call.passed) {
    *passed = call.passed;
    return Status::ok;
  }
  if (kept_residual_.holds()) SLIMPI_TRY(kept_residual_.restore_unless_finite(call));
  const auto end = std::chrono::steady_clock::now();
  const auto spent = end - start;
  if (Trace* const trace = Trace::running(); trace != nullptr)
    trace->add(plan_.algorithm->name, start, end, count_ * sizeof(float));

  if (state_ != nullptr) {
    ++state_->calls;
    state_->uninitialized = false;
  }
  count(call, std::uint64_t(std::chrono::nanoseconds(spent).count()),
        communicator_.exchange().bytes_sent() - sent_before);
  return verify ? measure_error() : Status::ok;
}

Status AllreduceCall::open_in_node(bool* possible) {
  *possible = false;
  if (count_ * sizeof(float) < kShortInNode ||
      !intra::NodeState::of(communicator_)
           .order.takes(count_, communicator_.size(),
                        communicator_.config().intra != Intra::automatic))
    return Status::ok;
  communicator_.use_scratch(scratch_.take());
  return intra::NodeState::of(communicator_).prepare(communicator_, location_, possible);
}

Status AllreduceCall::run_in_node(bool* usual, int* code) {
  Inside inside(runtime_.statistics);
  SLIMPI_TRY(communicator_.stream_for(location_, &stream_));
  SLIMPI_TRY(colocate_buffers());
  comm::Call call{communicator_, plan_, in_, out_, count_, location_, stream_, 0, nullptr};
  intra::NodeOrder& order = intra::NodeState::of(communicator_).order;
  intra::NodeResult result;
  SLIMPI_TRY(intra::intra_allreduce(call, order.verified(call), &result));
  *usual = !result.unverified;
  if (result.unverified) {
    bool same = false;
    SLIMPI_TRY(order.compare(call, &same));
    result = {};
    result.left_to_mpi = !same;
    if (same) SLIMPI_TRY(intra::intra_allreduce(call, true, &result));
  }
  *code = MPI_SUCCESS;
  if (result.left_to_mpi) {
    inside.end();  // the rest is MPI's time
    runtime_.left_to_mpi(communicator_, BypassReason::single_node, request_);
    *code = finish_by_mpi(result.finished);
  } else {
    runtime_.statistics.exact_in_node();
  }
  return finish_stream();
}

// MPI sums the whole vector, so that it chooses the algorithm of that size. In place, the finished
// ranges hold results, not inputs. They are saved, set to zero during MPI's sum (zeros raise no
// exception), and restored.
int AllreduceCall::finish_by_mpi(const std::vector<comm::Range>& finished) {
  std::vector<std::vector<float>> kept;
  const bool in_place = request_.in == MPI_IN_PLACE;
  for (const auto& [first, count] : finished) {
    if (!in_place) break;
    kept.emplace_back(out_ + first, out_ + first + count);
    std::fill_n(out_ + first, count, 0.0f);
  }
  if (ActiveCall* const active = ActiveCall::current(); active != nullptr) active->in_mpi();
  const int code = pass_to_mpi(request_);
  for (std::size_t i = 0; i < kept.size(); ++i)
    std::copy(kept[i].begin(), kept[i].end(), out_ + finished[i].first);
  return code;
}

// SLIMPI_BUFFERS depends on the memory of the buffers, which may differ among ranks, so the ranks
// agree first.
Status AllreduceCall::agree_on_memory(std::optional<BypassReason>* passed) {
  const Buffers wanted = communicator_.config().buffers;
  if (wanted == Buffers::any) return Status::ok;
  std::uint64_t on_device = location_.device != &device::host() ? 1 : 0;
  SLIMPI_TRY(communicator_.exchange().all_max({&on_device, 1}));
  if ((on_device != 0) != (wanted == Buffers::device)) *passed = BypassReason::off;
  return Status::ok;
}

comm::Call AllreduceCall::call() {
  return {communicator_, plan_, in_, out_, count_, location_, stream_, number_, state_};
}

struct AllreduceCall::Agreement {
  std::uint64_t number, other_number, history, other_history, shape, other_shape;
  std::uint64_t no_memory, nonfinite, large, state_nonfinite;
  std::uint64_t fresh;  // some rank met its buffer for the first time

  // all_max gives the maximum of a word and the maximum of its complement. They are complements of
  // each other only where all ranks have the same word.
  bool alike() const { return number == ~other_number && history == ~other_history; }
  bool shapes_alike() const { return shape == ~other_shape; }
};

// Compares the tensor state with the other ranks'. Claims it and reserves its arrays where the call
// needs them.
Status AllreduceCall::compare_states(Agreement* agreement) {
  comm::TensorStates::claim(*state_, plan_.algorithm, location_);
  *agreement = {};
  if (state_->calls >= plan_.start) {
    comm::Call call = this->call();
    if (plan_.algorithm->reserve_state(call) != Status::ok) agreement->no_memory = 1;
    const Status status = check_values(agreement);
    if (status == Status::no_memory)
      agreement->no_memory = 1;
    else
      SLIMPI_TRY(status);
  }
  agreement->number = state_->number;
  agreement->history = 2 * state_->calls + (state_->uninitialized ? 1 : 0);
  const Shape shape = plan_.algorithm->shape(plan_, communicator_.config(), count_);
  agreement->shape = shape.rows ^ std::rotl(shape.columns, 32);
  agreement->other_shape = ~agreement->shape;
  agreement->other_number = ~agreement->number;
  agreement->other_history = ~agreement->history;
  agreement->state_nonfinite = state_->nonfinite != 0 ? 1 : 0;
  agreement->fresh = fresh_ ? 1 : 0;
  std::uint64_t words[sizeof(Agreement) / sizeof(std::uint64_t)];
  std::memcpy(words, agreement, sizeof words);
  SLIMPI_TRY(communicator_.exchange().all_max(words));
  std::memcpy(agreement, words, sizeof words);
  return Status::ok;
}

// Finds the buffer's tensor state and ensures that all ranks use the same one.
Status AllreduceCall::agree_on_state(std::optional<BypassReason>* passed) {
  comm::TensorStates& slots = communicator_.states;
  find_state();
  Agreement agreement{};
  SLIMPI_TRY(compare_states(&agreement));
  communicator_.attachment<comm::CallSequence>().agreed(agreement.fresh != 0);
  if (!agreement.alike() || agreement.state_nonfinite != 0) {
    if (agreement.alike()) {
      log_debug("state became infinite; all ranks drop it and start over");
    } else {
      runtime_.statistics.dropped();
      if (communicator_.rank() == 0)
        log_once(LogLevel::warn,
                 "the ranks use their buffers in different orders, so state of earlier calls is "
                 "dropped; SLIMPI_CALLS_PER_STEP names buffers by the order of calls");
    }
    std::uint64_t number = slots.next_number(count_);
    SLIMPI_TRY(communicator_.exchange().all_max({&number, 1}));
    slots.realign(*state_, number);
    SLIMPI_TRY(compare_states(&agreement));
    if (!agreement.alike())
      return communicator_.describe_disagreement(
          "the state of a buffer", std::to_string(state_->number),
          "number " + std::to_string(state_->number), "all ranks make the same calls in one order");
  }
  if (state_->calls < plan_.start) {
    ++state_->calls;
    *passed = BypassReason::start;
  } else if (!agreement.shapes_alike()) {
    return name_shapes();
  } else if (agreement.no_memory != 0) {
    log_once(LogLevel::warn, "no memory for state on some rank; calls that need it go to MPI");
    comm::TensorStates::drop(*state_);
    *passed = BypassReason::failure;
  } else if (agreement.nonfinite != 0) {
    // The program will discard this training step, so the residual is kept for the next one.
    if (plan_.algorithm->finite_only)
      *passed = BypassReason::nonfinite;
    else
      plan_.error_feedback = false;
  } else if (agreement.large != 0) {
    // A rank without memory for a copy does not change its residual in any case.
    if (kept_residual_.keep(call()) != Status::ok) plan_.error_feedback = false;
  }
  return Status::ok;
}

// Reports that some rank has a shape from slimpi_set_shape that others do not have, or not yet.
Status AllreduceCall::name_shapes() {
  const Shape shape = plan_.algorithm->shape(plan_, communicator_.config(), count_);
  const std::string text = std::to_string(shape.rows) + "x" + std::to_string(shape.columns);
  return communicator_.describe_disagreement(
      "the shape of buffers of " + std::to_string(count_) + " floats", text, text,
      "call slimpi_set_shape with the same shape at the same point on all ranks");
}

Status AllreduceCall::agree_on_finite(std::optional<BypassReason>* passed) {
  if (!plan_.algorithm->finite_only) return Status::ok;
  std::uint64_t found[] = {0, 0};  // non-finite value found; no memory
  const Status status = find_nonfinite(&found[0]);
  if (status == Status::no_memory)
    found[1] = 1;
  else
    SLIMPI_TRY(status);
  SLIMPI_TRY(communicator_.exchange().all_max(found));
  if (found[0] != 0) *passed = BypassReason::nonfinite;
  if (found[1] != 0) *passed = BypassReason::failure;
  return Status::ok;
}

// Whether this rank's input has an infinity or a NaN.
Status AllreduceCall::find_nonfinite(std::uint64_t* found) {
  bool here = false;
  SLIMPI_TRY(
      comm::find_beyond(communicator_, in_location_, in_, count_, kernels::kMaxFloat, &here));
  *found = here ? 1 : 0;
  return Status::ok;
}

// Checks this rank's input and residual for values that the algorithm or error feedback cannot
// take: non-finite values, and values whose sum may overflow.
Status AllreduceCall::check_values(Agreement* agreement) {
  const bool feedback = plan_.error_feedback && !plan_.algorithm->finds_nonfinite;
  if (!feedback)
    return plan_.algorithm->finite_only ? find_nonfinite(&agreement->nonfinite) : Status::ok;
  const float limit = algorithm::safe_limit(plan_.format, communicator_.size());
  const algorithm::Residual residual = algorithm::residual_of(*state_);
  bool large = false;
  SLIMPI_TRY(comm::find_beyond(communicator_, in_location_, in_, count_, limit, &large));
  if (large)
    SLIMPI_TRY(find_nonfinite(&agreement->nonfinite));
  else if (residual.count != 0)
    SLIMPI_TRY(comm::find_beyond(communicator_, residual.location, residual.data, residual.count,
                                 limit, &large));
  agreement->large = large ? 1 : 0;
  return Status::ok;
}

// Where input and output are in memory of different devices or of different GPUs, copies the input
// to the output. The output's device does the work.
Status AllreduceCall::colocate_buffers() {
  if (in_ == out_) return Status::ok;
  if (in_location_ == location_) return Status::ok;
  const device::Device &from = *in_location_.device, &to = *location_.device;
  if (&from == &to || &to == &device::host()) {
    device::Stream* stream = nullptr;
    SLIMPI_TRY(communicator_.stream_for(in_location_, &stream));
    SLIMPI_TRY(from.copy(out_, in_, count_ * sizeof(float), stream));
    SLIMPI_TRY(comm::synchronize(from, stream));
  } else {
    SLIMPI_TRY(to.copy(out_, in_, count_ * sizeof(float), stream_));
  }
  in_ = out_;
  in_location_ = location_;
  return Status::ok;
}

Status AllreduceCall::finish_stream() {
  return comm::synchronize(*location_.device, stream_);
}

// All ranks verify the call, or none: none where some rank has no memory for the two copies.
Status AllreduceCall::keep_input(bool* kept) {
  std::uint64_t buffer = 1;
  try {
    input_.resize(count_);
    result_.resize(count_);
  } catch (const std::bad_alloc&) {
    buffer = 0;
  }
  SLIMPI_TRY(communicator_.exchange().all_min({&buffer, 1}));
  *kept = buffer != 0;
  if (!*kept) {
    log_once(LogLevel::warn, "no memory for the exact sum of SLIMPI_VERIFY on some rank");
    return Status::ok;
  }
  const device::Device& from = *in_location_.device;
  device::Stream* stream = nullptr;
  SLIMPI_TRY(communicator_.stream_for(in_location_, &stream));
  SLIMPI_TRY(from.copy(input_.data(), in_, count_ * sizeof(float), stream));
  return comm::synchronize(from, stream);
}

Status AllreduceCall::measure_error() {
  const Inside verifying(runtime_.statistics, Inside::What::verify);
  const mpi::Api& api = communicator_.exchange().api();
  constexpr std::uint64_t kMost = 1u << 30;  // MPI takes the count as an int
  for (std::uint64_t first = 0; first < count_; first += kMost) {
    const int code =
        api.Allreduce(MPI_IN_PLACE, input_.data() + first, int(std::min(kMost, count_ - first)),
                      MPI_FLOAT, MPI_SUM, communicator_.exchange().comm());
    if (code != MPI_SUCCESS)
      return fail(Status::mpi, "the exact sum of SLIMPI_VERIFY: " + mpi::error_text(api, code));
  }
  SLIMPI_TRY(location_.device->copy(result_.data(), out_, count_ * sizeof(float), stream_));
  SLIMPI_TRY(finish_stream());
  double squares[2] = {0, 0};
  device::host().kernels()->compare(result_.data(), input_.data(), count_, squares, nullptr);
  const double relative =
      squares[1] > 0 ? std::sqrt(squares[0] / squares[1]) : std::sqrt(squares[0]);
  // With an infinity or a NaN in the exact sum the relative error is not defined.
  if (std::isfinite(relative)) runtime_.statistics.error(relative);
  log_debug("call " + std::to_string(communicator_.calls) + ": relative L2 error " +
            std::to_string(relative));
  return Status::ok;
}

}  // namespace slimpi::call
