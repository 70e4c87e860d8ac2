// SPDX-License-Identifier: BSD-3-Clause
#include "call/sum.h"

#include <algorithm>
#include <chrono>

#include "algorithm/algorithm.h"
#include "algorithm/policy.h"
#include "algorithm/residual_limit.h"
#include "base/described_tensor.h"
#include "base/exceptions.h"
#include "base/fiber.h"
#include "call/candidates.h"
#include "call/element_type.h"
#include "comm/call.h"
#include "comm/stream_wait.h"
#include "device/device.h"
#include "intra/intra_node.h"
#include "intra/node_state.h"
#include "observe/activity.h"
#include "observe/log.h"

namespace slimpi::call {

namespace {
// Returns the bits per value in messages between nodes, for the trace, or 0 if a hook (the user's
// codec) or SLIMPI_MAX_ERROR determines them.
int bits_of(const comm::Plan& plan) {
  if (plan.hook != nullptr || plan.max_error > 0) return 0;
  return plan.format.codec == kernels::Codec::float64 ? 64 : kernels::value_bits(plan.format);
}

// Returns the plan for elements of this type. An exact algorithm sends the program's own elements;
// it adds doubles as doubles, and 16-bit floats as floats, rounding their sum once.
comm::Plan plan_for(const comm::Plan& plan, ElementType type) {
  comm::Plan result = plan;
  if (plan.algorithm->exact && plan.max_error == 0)
    result.format.codec = codec_of(type).value_or(kernels::Codec::float64);
  return result;
}
}  // namespace

Sum::Sum(Runtime& runtime, comm::Communicator& communicator, const comm::Plan& plan,
         const Request& request)
    : runtime_(runtime),
      communicator_(communicator),
      request_(request),
      type_(type_of(request)),
      plan_(plan_for(plan, type_)),
      call_{.communicator = communicator,
            .scratch = *scratch_,
            .plan = plan_,
            .in = static_cast<const float*>(programs_input()),
            .out = static_cast<float*>(request.out),
            .count = floats_of(request.count),
            .location = type_ == ElementType::float32 ? device::locate(request.buffer())
                                                      : device::Location()},
      input_count_(floats_of(request.input_count())),
      result_count_(floats_of(request.result_count())),
      left_on_device_(type_ != ElementType::float32 &&
                      (device::locate(request.buffer()).device != &device::host() ||
                       device::locate(call_.in).device != &device::host())),
      in_location_(type_ != ElementType::float32 || call_.in == call_.out || input_count_ == 0
                       ? call_.location
                       : device::locate(call_.in)),
      key_(plan.needs_state ? tensor_key() : comm::TensorKey()) {
  if (request.collective != Collective::allreduce) make_blocks();
  if (plan.algorithm->shapes && request.tensor != nullptr) use_matrices();
}

Sum::~Sum() {
  // The slice of a call that now goes to MPI must not show the bits of the plan.
  if (ActiveCall* const active = ActiveCall::current(); active != nullptr) active->traced.bits = 0;
  const bool idle = ended_ || communicator_.streams_end({call_.location, in_location_});
  if (!idle || communicator_.exchange().memory_left()) scratch_.leave();
}

// Passes the described matrices to the algorithm, if they fit into the buffer.
void Sum::use_matrices() {
  std::uint64_t left = call_.count;
  for (const auto& [rows, columns] : request_.tensor->matrices) {
    if (rows * columns > left) {  // slimpi_describe_next has checked the product
      log_once(LogLevel::warn,
               "slimpi_describe_next: the matrices of a sum of " + std::to_string(call_.count) +
                   " floats have more than that, so they are ignored; describe the parts of its "
                   "buffer");
      return;
    }
    left -= rows * columns;
  }
  plan_.matrices = request_.tensor->matrices;
}

// Runs a step of SLIMPI_VERIFY or SLIMPI_SELFTEST, and adds its time to verify_nanoseconds_.
template <typename Step>
Status Sum::timed_verify(const Step& step) {
  const std::uint64_t begin = candidate_clock();
  const Status status = step();
  verify_nanoseconds_ += candidate_clock() - begin;
  return status;
}

// Runs the steps of a sum. Until agree() returns, all ranks together can still leave the call to
// MPI. After that, only Algorithm::run() can decide so.
comm::Verdict Sum::run_steps() {
  const Timed inside(runtime_.statistics, &Counts::nanoseconds);
  if (communicator_.on_one_node()) return run_in_node();
  if (converts()) conversion_ = take_floats();
  SLIMPI_TRY(plan_.algorithm->open(call_));
  if (plan_.hierarchy != Hierarchy::flat)
    SLIMPI_TRY(intra::NodeState::of(communicator_).open_shared(communicator_));
  if (communicator_.config().selftest != 0)
    SLIMPI_TRY(timed_verify([&] { return run_selftest(); }));
  bool ready = false;
  SLIMPI_TRY(algorithm::prepare(call_, &ready));
  if (!ready) return BypassReason::failure;
  SLIMPI_TRY(communicator_.stream_for(call_.location, &call_.stream));
  SLIMPI_TRY(agree());
  log_banner();
  (void)caught([&] { warn_of_rounding(); });  // out of memory here costs only the warning
  if (ActiveCall* const active = ActiveCall::current(); active != nullptr)
    active->traced.bits = std::uint8_t(bits_of(plan_));
  call_.number = ++communicator_.compressed_calls;
  const std::uint64_t every = communicator_.config().verify;
  bool verify = every != 0 && call_.number % every == 0;
  if (verify) SLIMPI_TRY(timed_verify([&] { return keep_input(&verify); }));
  SLIMPI_TRY(run_plan());
  if (!verify) return Status::ok;
  return timed_verify([&] { return verify_result(); });
}

// Brings input and output to one device, runs the algorithm, and waits until the device has
// finished.
comm::Verdict Sum::run_plan() {
  const auto start = std::chrono::steady_clock::now();
  const std::uint64_t sent_before = communicator_.exchange().bytes_sent();
  SLIMPI_TRY(colocate_buffers());
  const comm::Verdict verdict = plan_.algorithm->run(call_);
  SLIMPI_TRY(verdict.status());
  SLIMPI_TRY(comm::synchronize(call_.device_stream()));
  if (verdict.left()) return verdict;
  if (converts()) give_result();
  const auto end = std::chrono::steady_clock::now();
  if (Trace* const trace = Trace::running(); trace != nullptr)
    trace->add(plan_.algorithm->name, start, end, bytes_of(request_));
  if (call_.state != nullptr) {
    ++call_.state->calls;
    call_.state->uninitialized = false;
  }
  const auto nanoseconds = std::uint64_t(std::chrono::nanoseconds(end - start).count());
  const std::uint64_t sent = communicator_.exchange().bytes_sent() - sent_before;
  count(nanoseconds, sent);
  return Status::ok;
}

const void* Sum::programs_input() const {
  if (request_.in != mpi::abi.in_place) return request_.in;
  return request_.gathers() ? programs_block(communicator_.rank()) : request_.out;
}

// Returns where a rank's block is in the program's result of an all-gather.
std::byte* Sum::programs_block(int rank) const {
  return static_cast<std::byte*>(request_.out) +
         request_.blocks.place_of(rank) * std::int64_t(row_of(type_of(request_)).bytes);
}

// Converts the values to floats. Does nothing if the buffers are on a GPU, because the ranks leave
// that call to MPI. If float32 cannot hold the doubles, clears float32_holds_, and the ranks leave
// the call to MPI as well. Doubles above algorithm::safe_limit(), the limit for error feedback,
// also count as too large, so that the sum in float32 cannot overflow.
Status Sum::take_floats() {
  if (left_on_device_) return Status::ok;
  comm::Memory& copy = call_.scratch.floats;
  SLIMPI_TRY(copy.reserve(call_.location, device::Place::device, call_.count * sizeof(float),
                          runtime_.statistics));
  call_.out = copy.floats();
  float* const in = call_.out + own_place();
  call_.in = in;
  const Timed timed(runtime_.statistics, Stage::encode, "to float32", bytes_of(request_));
  const kernels::Kernels& host = *device::host().kernels();
  if (const auto codec = codec_of(type_)) {
    host.decode({*codec}, static_cast<const std::byte*>(programs_input()), input_count_, in,
                nullptr);
    return Status::ok;
  }
  kernels::Format quantized;
  quantized.codec = kernels::Codec::quantized;
  const kernels::Float64Limits limits{
      algorithm::safe_limit(quantized, communicator_.size()),
      plan_.format.bucket == 0 ? std::size_t(2048) : plan_.format.bucket};
  host.narrow(static_cast<const double*>(programs_input()), input_count_, limits, in,
              &float32_holds_, nullptr);
  return Status::ok;
}

// Converts the result to the program's type. After an allreduce all ranks have the same floats, and
// therefore get the same elements.
void Sum::give_result() {
  const Timed timed(runtime_.statistics, Stage::decode, "from float32", bytes_of(request_));
  const kernels::Kernels& host = *device::host().kernels();
  const auto give = [&](const float* from, std::uint64_t count, std::byte* to) {
    if (const auto codec = codec_of(type_))
      host.encode({*codec}, {}, from, nullptr, count, to, nullptr);
    else
      host.widen(from, count, reinterpret_cast<double*>(to), nullptr);
  };
  if (!gather_) return give(call_.out, result_count_, static_cast<std::byte*>(request_.out));
  for (int rank = 0; rank < communicator_.size(); ++rank)
    if (const comm::Range block = gather_->place(rank); block.count != 0)
      give(call_.out + block.first, block.count, programs_block(rank));
}

void Sum::make_blocks() {
  std::pmr::memory_resource* const memory = &call_.scratch.objects;
  std::pmr::vector<comm::Range> blocks(std::size_t(communicator_.size()), memory);
  std::uint64_t first = 0;
  for (int rank = 0; rank < communicator_.size(); ++rank) {
    const std::uint64_t count = floats_of(request_.blocks.of(rank));
    blocks[std::size_t(rank)] = {first, count};
    first += count;
  }
  if (request_.gathers()) {
    gather_.emplace(memory);
    for (int rank = 0; rank < communicator_.size(); ++rank)
      gather_->places.push_back(converts() ? blocks[std::size_t(rank)].first
                                           : floats_of(request_.blocks.place_of(rank)));
    gather_->blocks = std::move(blocks);
    call_.gather = &*gather_;
    return;
  }
  scatter_.emplace(communicator_.layout(), communicator_.inter_node_group(plan_.hierarchy),
                   std::move(blocks), memory);
  call_.scatter = &*scatter_;
  call_.copies_input = in_location_ != call_.location;
}

// Returns which elements of the sum are in the output after the call.
comm::Range Sum::result_range() const {
  return scatter_ ? scatter_->blocks[std::size_t(communicator_.rank())]
                  : comm::Range{0, call_.count};
}

// Sums floats among ranks that share one node, where some rank has its buffer on a GPU.
comm::Verdict Sum::run_in_node() {
  intra::NodeState& node = intra::NodeState::of(communicator_);
  if (!node.ready()) SLIMPI_TRY(node.prepare(call_));
  if (!*node.ready()) return BypassReason::single_node;
  // The memory is reserved at every call, because each call may lease a different set of scratch
  // memory, and this set may be smaller.
  SLIMPI_TRY(intra::reserve_intra_allreduce(call_));
  SLIMPI_TRY(communicator_.stream_for(call_.location, &call_.stream));
  SLIMPI_TRY(colocate_buffers());
  SLIMPI_TRY(intra::intra_allreduce(call_));
  runtime_.statistics.count(&Counts::exact_in_node);
  return comm::synchronize(call_.device_stream());
}

// Copies the input if input and output are on different devices or different GPUs. The sum runs on
// the output's device, so the copy goes to the output or, in an all-gather, to this rank's block of
// it. The output of a reduce-scatter is too short, so the copy goes to scratch memory.
Status Sum::colocate_buffers() {
  if (call_.in == call_.out || in_location_ == call_.location) return Status::ok;
  const device::Device &from = *in_location_.device, &to = *call_.location.device;
  float* const copy =
      call_.scatter == nullptr ? call_.out + own_place() : call_.scratch.colocated.floats();
  if (&from == &to || &to == &device::host()) {
    device::Stream* stream = nullptr;
    SLIMPI_TRY(communicator_.stream_for(in_location_, &stream));
    SLIMPI_TRY(from.copy(copy, call_.in, input_count_ * sizeof(float), stream));
    SLIMPI_TRY(comm::synchronize({from, stream}));
  } else {
    SLIMPI_TRY(to.copy(copy, call_.in, input_count_ * sizeof(float), call_.stream));
  }
  call_.in = copy;
  in_location_ = call_.location;
  return Status::ok;
}

// Counts a call that slimpi ran between nodes.
void Sum::count(std::uint64_t nanoseconds, std::uint64_t sent) {
  const comm::NodeLayout& layout = communicator_.layout();
  CompressedCall done;
  done.algorithm = plan_.algorithm->id;
  done.codec = call_.used_codec.value_or(plan_.hook == nullptr ? comm::used_codec(plan_.format)
                                                               : comm::kHookCodec);
  done.bytes = bytes_of(request_);
  done.type = type_;
  done.collective = request_.collective;
  const std::uint64_t all_ranks =
      row_of(request_.collective).phases * std::uint64_t(layout.nodes() - 1) * done.bytes;
  done.plain_bytes = layout.part_of(all_ranks, plan_.hierarchy);
  if (const comm::InterNodeGroup& group = communicator_.inter_node_group(plan_.hierarchy);
      scatter_ && !group.flat && group.shard_index >= 0)
    done.plain_bytes = done.bytes / call_.count *
                       (scatter_->shards[std::size_t(group.shard_index)].count -
                        scatter_->chunks[std::size_t(group.index)].count);
  done.sent_bytes = sent;
  done.nanoseconds = nanoseconds;
  done.on_device = call_.location.device != &device::host();
  runtime_.statistics.compressed(done);
}

// Warns once per job that sums are rounded. Users who chose the algorithm, the bits, the error
// bound or rows of rules know it, so they get no warning.
void Sum::warn_of_rounding() {
  if (runtime_.world_rank != 0 || plan_.format.codec != kernels::Codec::quantized ||
      runtime_.rounding_told.load(std::memory_order_relaxed))
    return;
  const Config& config = communicator_.config();
  if (config.is_set(Option::algorithm) || config.is_set(Option::bits) || config.max_error ||
      !runtime_.rules_of(communicator_).empty())
    return;
  if (runtime_.rounding_told.exchange(true)) return;
  const std::uint64_t least = config.min_size;
  const std::string size =
      least % 1024 == 0 ? std::to_string(least / 1024) + " KiB" : std::to_string(least) + " bytes";
  const std::string bits = std::to_string(plan_.format.bits);
  const std::string sums = std::string(row_of(type_).name) + " sums";
  log_warn((least == 0 ? "all " + sums : sums + " of " + size + " and more") + " are rounded to " +
           bits +
           " bits a value. --algorithm off leaves all sums to MPI, a file that --rules names some; "
           "--bits " +
           bits + " accepts the rounding and ends this warning.");
}

void Sum::log_banner() {
  if (communicator_.rank() != 0 || runtime_.banner_logged.exchange(true)) return;
  std::string text = std::string("slimpi ") + SLIMPI_PACKAGE_VERSION + ": " +
                     algorithm::describe(plan_) + "; " + std::to_string(communicator_.size()) +
                     " ranks on " + std::to_string(communicator_.layout().nodes()) + " nodes; " +
                     call_.location.device->name + " memory, " +
                     call_.location.device->kernels()->name + " kernels; " + runtime_.mpi_version;
  const auto& rows = option_rows();
  for (std::size_t i = 0; i < rows.size(); ++i)
    if (communicator_.config().is_set(Option(i)))
      text += "; " + rows[i].variable + "=" + communicator_.config().given[i].text;
  log_info(text);
}

// Failures of calls that slimpi has taken over.

namespace {

// Adds a description of the call to the failure text of a bad message, unless the text has it
// already: check_message() names only the header fields that differ.
Status add_call_to_failure(Status status) {
  const ActiveCall* const active = ActiveCall::current();
  const std::string text = failure_text();
  if (status == Status::bad_message && active != nullptr && text.find(" in call ") == text.npos)
    return fail(status, text + ", in " + describe_call(active->record()));
  return status;
}

}  // namespace

Logging report_failed_call(comm::Communicator& communicator, Status status) {
  // All ranks know that the hook has failed, and no message is in flight, so later calls can
  // succeed.
  if (status == Status::hook) return Logging::here;
  // All ranks know of a disagreement, too, and rank 0 has logged it.
  if (status == Status::disagreement) return Logging::elsewhere;
  communicator.give_up(status);
  (void)caught([&] { return add_call_to_failure(status); });
  communicator.exchange().report_failure(status);
  return communicator.exchange().failure_reported() ? Logging::elsewhere : Logging::here;
}

int fail_call(Runtime& runtime, comm::Communicator& communicator, Status status) {
  const Logging logging = report_failed_call(communicator, status);
  return runtime.errors.raise(communicator.user(), status, logging);
}

}  // namespace slimpi::call
