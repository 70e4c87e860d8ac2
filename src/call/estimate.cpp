// SPDX-License-Identifier: BSD-3-Clause
#include "call/estimate.h"

#include <algorithm>
#include <bit>
#include <chrono>
#include <cmath>
#include <new>
#include <thread>

#include "base/float_environment.h"
#include "call/element_type.h"
#include "call/runtime.h"
#include "device/device.h"
#include "device/foreign.h"
#include "observe/log.h"

namespace slimpi::call {

namespace {

using Clock = std::chrono::steady_clock;

constexpr std::uint64_t kSampledFloats = 1 << 20;  // of a buffer: its first ones
constexpr std::uint64_t kSamples = 8;              // of a row of the table

const char* type_name(mpi::Datatype type) {
  const mpi::Abi& abi = mpi::abi;
  if (const std::optional<ElementType> summed = element_type(type)) return row_of(*summed).name;
  if (type == abi.type_int) return "int";
  if (type == abi.type_int64_t) return "int64";
  if (type == abi.type_uint64_t) return "uint64";
  return type == abi.type_char || type == abi.type_byte ? "byte" : "other";
}

const char* op_name(mpi::Op op) {
  const mpi::Abi& abi = mpi::abi;
  if (op == abi.op_sum) return "sum";
  return op == abi.op_max ? "max" : op == abi.op_min ? "min" : "other";
}

std::uint64_t nanoseconds_since(Clock::time_point begin) {
  return std::uint64_t(std::chrono::nanoseconds(Clock::now() - begin).count());
}

}  // namespace

void CallEstimate::start(const mpi::Api& api, const Config& config) {
  if (running() != nullptr) return;
  // Never destroyed: exit handlers may still call MPI after static destruction.
  running_.store(new CallEstimate(api, std::max(int(config.ranks_per_node), 1)),
                 std::memory_order_release);
}

CallEstimate::Way CallEstimate::way_of(comm::Communicator& communicator, const comm::Plan& plan) {
  Way way{communicator.layout().nodes(), 1, plan.hierarchy, plan.format.bucket,
          plan.format.stochastic};
  const int per_node = int(communicator.config().ranks_per_node);
  if (way.nodes > 1) {
    way.shards = communicator.inter_node_group(plan.hierarchy).shards;
  } else if (way.nodes == 0 && per_node != 0) {  // the ranks have not met
    way.nodes = (communicator.size() + per_node - 1) / per_node;
    way.shards = plan.hierarchy == Hierarchy::sharded ? per_node : 1;
  }
  return way;
}

BypassReason CallEstimate::reason_of(comm::Communicator& communicator, const Allreduce& call,
                                     const Way& way) {
  if (!has_type(communicator, call)) return BypassReason::datatype;
  if (way.nodes > 1) return BypassReason::off;
  return way.nodes == 1 ? BypassReason::single_node : BypassReason::nonblocking;
}

// MPI has done the call, or policy takes it, so MPI accepts its arguments.
CallEstimate::Key CallEstimate::key_of(const Allreduce& call, bool blocking) const {
  Key key;
  mpi::Count size = 0;
  api_.Type_size_x(call.datatype, &size);
  api_.Comm_size(call.comm, &key.ranks);
  Allreduce measured = call;
  if (call.collective != Collective::allreduce) count_blocks(measured, 0, key.ranks);
  const std::int64_t count = measured.count;
  key.bytes = count > 0 && size > 0 ? std::uint64_t(count) * std::uint64_t(size) : 0;
  // The upper half of a handle's word is not defined.
  key.type = call.datatype;
  key.op = call.op;
  key.blocking = blocking;
  return key;
}

// Encodes and decodes the values as one segment, as a rank does with what it sends.
CallEstimate::Sample CallEstimate::sample_of(const float* values, std::uint64_t count,
                                             const Way& way) {
  const kernels::Kernels& kernels = *device::host().kernels();
  const double bytes = double(count) * sizeof(float);
  std::vector<float> decoded(count);
  std::vector<std::byte> encoded;
  Sample sample;
  for (std::size_t i = 0; i < kEstimatedWidths; ++i) {
    kernels::Format format;
    format.codec = kernels::Codec::quantized;
    format.bits = std::uint8_t(kEstimatedBits[i]);
    format.bucket = way.bucket;
    format.stochastic = way.stochastic;
    encoded.resize(kernels::encoded_bytes(format, count));
    auto begin = Clock::now();
    kernels.encode(format, {}, values, nullptr, count, encoded.data(), nullptr);
    sample.encode[i] = double(nanoseconds_since(begin)) * 1e-9 / bytes;
    begin = Clock::now();
    kernels.decode(format, encoded.data(), count, decoded.data(), nullptr);
    sample.decode[i] = double(nanoseconds_since(begin)) * 1e-9 / bytes;
    double squares[2] = {0, 0};
    kernels.compare(decoded.data(), values, count, squares, nullptr);
    sample.error[i] = std::sqrt(squares[0] / squares[1]);
    sample.valid = std::isfinite(sample.error[i]);
    if (!sample.valid) break;
  }
  return sample;
}

// Samples the first calls of a row, and then ever fewer, until there are enough samples. A sample
// comes before its call. Buffers of a GPU are not sampled; of zeros, infinities and NaNs there is
// no relative error.
void CallEstimate::sample(const Allreduce& call, const Key& key) noexcept {
  const void* const values = call.in == mpi::abi.in_place ? call.out : call.in;
  if (device::locate(values).device != &device::host() || device::foreign_owner(values) != nullptr)
    return;
  try {
    const auto begin = Clock::now();
    const OwnFloats environment;
    const Way& way = key.way;
    std::uint64_t calls = 0, samples = 0;
    {
      const std::lock_guard lock(mutex_);
      if (const auto found = records_.find(shared_row(key)); found != records_.end()) {
        calls = found->second.calls;
        samples = found->second.samples;
      }
    }
    if (samples >= kSamples || !(calls == 0 || std::has_single_bit(calls))) return;
    const std::uint64_t count = std::min(std::uint64_t(call.count), kSampledFloats);
    bool held = true;
    std::vector<float> floats;
    const auto codec = codec_of(type_of(call));
    floats.resize(count);
    if (codec) {
      device::host().kernels()->decode({*codec}, static_cast<const std::byte*>(values), count,
                                       floats.data(), nullptr);
    } else {
      const kernels::Float64Limits limits{double(kernels::kMaxFloat) / (16 * key.ranks),
                                          way.bucket == 0 ? std::size_t(2048) : way.bucket};
      device::host().kernels()->narrow(static_cast<const double*>(values), count, limits,
                                       floats.data(), &held, nullptr);
    }
    Sample sample;
    if (held) sample = sample_of(floats.data(), count, way);
    const std::lock_guard lock(mutex_);
    if (!held) ++records_[shared_row(key)].unheld;
    if (sample.valid) add_sample(records_[shared_row(key)], sample);
    sampling_nanoseconds_ += nanoseconds_since(begin);
  } catch (const std::bad_alloc&) {
    log_once(LogLevel::warn, "SLIMPI_ESTIMATE: no memory for a sample");
  }
}

void CallEstimate::record(const Allreduce& call, BypassReason reason,
                          std::uint64_t nanoseconds) noexcept {
  Key key = key_of(call, true);
  // As in the report, where the type is the first reason. (Runtime::taken_types has all in an
  // estimate.)
  const std::optional<ElementType> type = element_type(call.datatype);
  const Runtime* const runtime = Runtime::started();
  if (reason == BypassReason::small && type && *type != ElementType::float32 &&
      runtime != nullptr && !runtime->config.types.has(*type))
    reason = BypassReason::datatype;
  key.reason = int(reason);
  add_call(key, nanoseconds);
}

// A reason other than datatype is that of the estimate itself.
CallEstimate::Key CallEstimate::key_of(const Allreduce& call, bool blocking, BypassReason reason,
                                       const Way& way) const {
  Key key = key_of(call, blocking);
  key.way = way;
  if (reason == BypassReason::datatype) key.reason = int(reason);
  return key;
}

void CallEstimate::nonblocking(const Allreduce& call) noexcept {
  if (call.comm == mpi::abi.comm_null || call.datatype == mpi::abi.datatype_null) return;
  Key key = key_of(call, false);
  key.reason = int(BypassReason::nonblocking);
  add_call(key, 0);
}

void CallEstimate::nonblocking(const Allreduce& call, BypassReason reason,
                               const Way& way) noexcept {
  const Key key = key_of(call, false, reason, way);
  sample(call, key);
  add_call(key, 0);
}

// Where there are too many rows, calls whose sizes are in one class share one.
CallEstimate::Key CallEstimate::shared_row(Key key) const {
  if (records_.size() >= kMost && !records_.contains(key))
    key.bytes = key.bytes == 0 ? 0 : std::uint64_t(1) << size_class_of(key.bytes);
  return key;
}

void CallEstimate::add_call(const Key& key, std::uint64_t nanoseconds) noexcept {
  try {
    const std::lock_guard lock(mutex_);
    const Key row = shared_row(key);
    if (row != key) ++merged_;
    Record& record = records_[row];
    ++record.calls;
    record.bytes += key.bytes;
    record.nanoseconds += nanoseconds;
    record.least = std::min(record.least, nanoseconds);
  } catch (const std::bad_alloc&) {
    log_once(LogLevel::warn, "SLIMPI_ESTIMATE: no memory to record a call");
  }
}

void CallEstimate::add_sample(Record& record, const Sample& sample) {
  ++record.samples;
  for (std::size_t i = 0; i < kEstimatedWidths; ++i) {
    record.error_sum[i] += sample.error[i];
    if (!timed_codec_ || sample.encode[i] < encode_[i]) encode_[i] = sample.encode[i];
    if (!timed_codec_ || sample.decode[i] < decode_[i]) decode_[i] = sample.decode[i];
  }
  timed_codec_ = true;
}

Estimate CallEstimate::result(const Report& job) const {
  const std::lock_guard lock(mutex_);
  Estimate estimate;
  estimate.job = job;
  estimate.sampling_nanoseconds = sampling_nanoseconds_;
  estimate.ranks_per_node = ranks_per_node_;
  estimate.cores = std::max(std::thread::hardware_concurrency(), 1u);
  estimate.timed_codec = timed_codec_;
  estimate.encode = encode_;
  estimate.decode = decode_;
  estimate.merged = merged_;
  for (const auto& [key, record] : records_) {
    if (record.calls == 0) continue;  // sampled, but MPI refused the call
    const std::optional<ElementType> summed = element_type(key.type);
    CountedCalls calls;
    calls.size = key.bytes;
    calls.ranks = key.ranks;
    calls.type = type_name(key.type);
    calls.op = op_name(key.op);
    calls.width = summed ? row_of(*summed).bytes : 0;
    calls.blocking = key.blocking;
    if (key.reason >= 0) calls.reason = BypassReason(key.reason);
    if (const Way& way = key.way; way.hierarchy != Hierarchy::automatic)
      calls.way = {way.nodes, way.shards, way.hierarchy, way.bucket};
    calls.calls = record.calls;
    calls.bytes = record.bytes;
    calls.nanoseconds = record.nanoseconds;
    calls.least = record.least;
    calls.samples = record.samples;
    calls.unheld = record.unheld;
    calls.error_sum = record.error_sum;
    estimate.counted.push_back(std::move(calls));
  }
  return estimate;
}

}  // namespace slimpi::call
