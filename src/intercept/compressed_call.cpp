// SPDX-License-Identifier: BSD-3-Clause
#include "intercept/compressed_call.h"

#include <chrono>
#include <cmath>

#include "base/log.h"
#include "device/device.h"
#include "policy/policy.h"

namespace slimpi::intercept {

CompressedCall::CompressedCall(Runtime& runtime, algorithm::Communicator& communicator,
                               const algorithm::Plan& plan, const Allreduce& request)
    : runtime_(runtime),
      communicator_(communicator),
      plan_(plan),
      request_(request),
      in_(static_cast<const float*>(request.in == MPI_IN_PLACE ? request.out : request.in)),
      out_(static_cast<float*>(request.out)),
      count_(std::uint64_t(request.count)),
      device_(&device::owner_of(request.out)) {}

Status CompressedCall::run(std::optional<Passed>* passed) {
  SLIMPI_TRY(agree_on_memory(passed));
  if (*passed) return Status::ok;
  SLIMPI_TRY(agree_on_slot(passed));
  if (*passed) return Status::ok;

  bool ready = false;
  SLIMPI_TRY(communicator_.prepare(plan_, count_, *device_, out_, &ready));
  if (!ready) {
    log_once(LogLevel::warn, "no memory for messages on some rank; calls of this size go to MPI: " +
                                 failure_text());
    *passed = Passed::failure;
    return Status::ok;
  }
  introduce();
  SLIMPI_TRY(communicator_.stream_for(*device_, out_, &stream_));
  const std::uint64_t number = ++communicator_.calls;
  const std::uint64_t every = communicator_.config().verify;
  const bool verify = every != 0 && number % every == 0;
  if (verify) SLIMPI_TRY(keep_input());

  const auto start = std::chrono::steady_clock::now();
  SLIMPI_TRY(bring_together());
  algorithm::Call call{communicator_, plan_, in_, out_, count_, *device_, stream_, number, slot_};
  SLIMPI_TRY(plan_.algorithm->run(call));
  SLIMPI_TRY(finish_stream());
  const auto end = std::chrono::steady_clock::now();
  const auto spent = end - start;
  if (Trace* const trace = Trace::running(); trace != nullptr)
    trace->add(plan_.algorithm->name, start, end, count_ * sizeof(float));

  if (slot_ != nullptr) ++slot_->calls;
  const std::uint64_t nodes = std::uint64_t(communicator_.layout().nodes());
  runtime_.statistics.compressed(
      count_ * sizeof(float),
      communicator_.rank() == 0 ? 2 * (nodes - 1) * count_ * sizeof(float) : 0,
      std::uint64_t(std::chrono::nanoseconds(spent).count()), device_ != &device::host());
  return verify ? measure_error() : Status::ok;
}

// SLIMPI_BUFFERS speaks of memory that ranks may have differently, so they ask each other.
Status CompressedCall::agree_on_memory(std::optional<Passed>* passed) {
  const Buffers wanted = communicator_.config().buffers;
  if (wanted == Buffers::any) return Status::ok;
  std::uint64_t on_device = device_ != &device::host() ? 1 : 0;
  SLIMPI_TRY(communicator_.exchange().all_max({&on_device, 1}));
  if ((on_device != 0) != (wanted == Buffers::device)) *passed = Passed::off;
  return Status::ok;
}

// Finds the buffer's state where the plan needs any, and makes sure that all ranks mean the same
// one.
Status CompressedCall::agree_on_slot(std::optional<Passed>* passed) {
  if (plan_.start == 0 && !plan_.error_feedback && !plan_.algorithm->keeps_state) return Status::ok;
  slot_ = &communicator_.slots.find(out_, count_, communicator_.sums++,
                                    communicator_.config().calls_per_step);
  std::uint64_t both[] = {slot_->number, ~slot_->number, slot_->calls, ~slot_->calls};
  SLIMPI_TRY(communicator_.exchange().all_max(both));
  if (both[0] != ~both[1] || both[2] != ~both[3]) {
    algorithm::Slots::drop(*slot_);
    runtime_.statistics.dropped();
    if (communicator_.rank() == 0)
      log_once(LogLevel::warn,
               "the ranks use their buffers in different orders, so state of earlier calls is "
               "dropped; SLIMPI_CALLS_PER_STEP names buffers by the order of calls");
  }
  if (slot_->calls < plan_.start) {
    ++slot_->calls;
    *passed = Passed::start;
  }
  return Status::ok;
}

// Input and output in memory of different kinds: the output's kind does the work.
Status CompressedCall::bring_together() {
  if (in_ == out_) return Status::ok;
  const device::Device& from = device::owner_of(in_);
  if (&from == device_) return Status::ok;
  if (device_ == &device::host()) {
    device::Stream* stream = nullptr;
    SLIMPI_TRY(communicator_.stream_for(from, in_, &stream));
    SLIMPI_TRY(from.copy(out_, in_, count_ * sizeof(float), stream));
    SLIMPI_TRY(algorithm::wait_for_stream(from, stream));
  } else {
    SLIMPI_TRY(device_->copy(out_, in_, count_ * sizeof(float), stream_));
  }
  in_ = out_;
  return Status::ok;
}

Status CompressedCall::finish_stream() {
  return algorithm::wait_for_stream(*device_, stream_);
}

Status CompressedCall::keep_input() {
  input_.resize(count_);
  const device::Device& from = device::owner_of(in_);
  device::Stream* stream = nullptr;
  SLIMPI_TRY(communicator_.stream_for(from, in_, &stream));
  SLIMPI_TRY(from.copy(input_.data(), in_, count_ * sizeof(float), stream));
  return algorithm::wait_for_stream(from, stream);
}

Status CompressedCall::measure_error() {
  const mpi::Api& api = communicator_.exchange().api();
  constexpr std::uint64_t kMost = 1u << 30;  // an int counts no further
  for (std::uint64_t first = 0; first < count_; first += kMost) {
    const int code =
        api.Allreduce(MPI_IN_PLACE, input_.data() + first, int(std::min(kMost, count_ - first)),
                      MPI_FLOAT, MPI_SUM, communicator_.exchange().comm());
    if (code != MPI_SUCCESS)
      return fail(Status::mpi, "the exact sum of SLIMPI_VERIFY: " + mpi::error_text(api, code));
  }
  std::vector<float> result(count_);
  SLIMPI_TRY(device_->copy(result.data(), out_, count_ * sizeof(float), stream_));
  SLIMPI_TRY(finish_stream());
  double squares[2] = {0, 0};
  device::host().kernels()->compare(result.data(), input_.data(), count_, squares, nullptr);
  const double relative =
      squares[1] > 0 ? std::sqrt(squares[0] / squares[1]) : std::sqrt(squares[0]);
  // With an infinity or a NaN in the exact sum there is no error to speak of.
  if (std::isfinite(relative)) runtime_.statistics.error(relative);
  log_debug("call " + std::to_string(communicator_.calls) + ": relative L2 error " +
            std::to_string(relative));
  return Status::ok;
}

void CompressedCall::introduce() {
  if (communicator_.rank() != 0 || runtime_.introduced.exchange(true)) return;
  std::string text = std::string("slimpi ") + SLIMPI_PACKAGE_VERSION + ": " +
                     policy::describe(plan_) + "; " + std::to_string(communicator_.size()) +
                     " ranks on " + std::to_string(communicator_.layout().nodes()) + " nodes; " +
                     device_->name + " memory, " + device_->kernels()->name + " kernels; " +
                     runtime_.mpi_version;
  const auto& rows = option_rows();
  for (std::size_t i = 0; i < rows.size(); ++i)
    if (communicator_.config().given[i].source != Source::built_in)
      text += "; " + rows[i].variable + "=" + communicator_.config().given[i].text;
  log_info(text);
}

}  // namespace slimpi::intercept
