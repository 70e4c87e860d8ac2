// SPDX-License-Identifier: BSD-3-Clause
#include "call/estimate.h"

#include <algorithm>
#include <bit>
#include <chrono>
#include <cmath>
#include <thread>
#include <vector>

#include "base/exceptions.h"
#include "base/float_environment.h"
#include "base/log.h"
#include "call/element_type.h"
#include "device/device.h"

namespace slimpi::call {

namespace {

using Clock = std::chrono::steady_clock;

constexpr std::uint64_t kSampledFloats = 1 << 20;  // of a buffer: its first ones
constexpr std::uint64_t kSamples = 8;              // of a row of the table

std::uint64_t nanoseconds_since(Clock::time_point begin) {
  return std::uint64_t(std::chrono::nanoseconds(Clock::now() - begin).count());
}

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

kernels::Format format_of(const CallEstimate::Way& way, int bits) {
  kernels::Format format;
  format.codec = kernels::Codec::quantized;
  format.bits = std::uint8_t(bits);
  format.bucket = way.bucket;
  format.stochastic = way.stochastic;
  return format;
}

// What all ranks put between nodes in one call. In a flat group, messages inside a node are none of
// it.
double bytes_between_nodes(const CallEstimate::Way& way, std::uint64_t count, int bits) {
  const kernels::Format format = format_of(way, bits);
  double bytes = 0;
  for (int shard = 0; shard < way.shards; ++shard) {
    const std::uint64_t part =
        comm::chunk_of(count, way.shards, shard, comm::chunk_alignment(format)).count;
    bytes += cost::pairwise_bytes({format, part, way.group_size});
  }
  if (!way.flat || way.group_size < 2) return bytes;
  const double per_node = double(way.group_size) / way.nodes;
  return bytes * (way.group_size - per_node) / (way.group_size - 1);
}

// The values of a call as floats. False: doubles that float32 cannot hold.
bool read_floats(const Allreduce& call, const CallEstimate::Way& way, std::vector<float>& floats) {
  const void* const values = call.in == mpi::abi.in_place ? call.out : call.in;
  const kernels::Kernels& kernels = *device::host().kernels();
  if (const auto codec = codec_of(type_of(call))) {
    kernels.decode({*codec}, static_cast<const std::byte*>(values), floats.size(), floats.data(),
                   nullptr);
    return true;
  }
  bool held = true;
  const kernels::Float64Limits limits{double(kernels::kMaxFloat) / (16 * way.ranks),
                                      way.bucket == 0 ? std::size_t(2048) : way.bucket};
  kernels.narrow(static_cast<const double*>(values), floats.size(), limits, floats.data(), &held,
                 nullptr);
  return held;
}

}  // namespace

CallEstimate::CallEstimate(const mpi::Api& api, const Config& config)
    : api_(api),
      wire_(config.wire.value_or(0)),
      nodes_(int(config.nodes)),
      ranks_per_node_(std::max(int(config.ranks_per_node), 1)) {
  if (wire_ > 0) constants_.link = constants_.exchange = 8 / (wire_ * cost::kPayload);
}

void CallEstimate::start(const mpi::Api& api, const Config& config) {
  if (running() != nullptr) return;
  // Never destroyed: exit handlers may still call MPI after static destruction.
  running_.store(new CallEstimate(api, config), std::memory_order_release);
}

std::optional<CallEstimate::Way> CallEstimate::way_of(comm::Communicator& communicator,
                                                      const comm::Plan& plan,
                                                      int world_size) const {
  Way way;
  way.bucket = plan.format.bucket;
  way.stochastic = plan.format.stochastic;
  way.nodes = communicator.layout().nodes();
  way.ranks = communicator.size();
  const int per_node = int(communicator.config().ranks_per_node);
  if (nodes_ == 0 && !communicator.agreed()) {
    if (per_node == 0 || per_node >= way.ranks) return std::nullopt;
    way.nodes = (way.ranks + per_node - 1) / per_node;
    way.flat = plan.hierarchy == Hierarchy::flat || per_node == 1;
    way.shards = plan.hierarchy == Hierarchy::sharded ? per_node : 1;
  } else if (nodes_ == 0) {
    if (way.nodes < 2) return std::nullopt;
    const comm::InterNodeGroup& group = communicator.inter_node_group(plan.hierarchy);
    way.flat = group.flat;
    way.shards = group.shards;
  } else {
    way.nodes = int(std::int64_t(nodes_) * way.ranks / std::max(world_size, 1));
    if (way.nodes < 2) return std::nullopt;
    way.ranks = way.nodes * ranks_per_node_;
    way.flat = plan.hierarchy == Hierarchy::flat;
    way.shards = plan.hierarchy == Hierarchy::sharded ? ranks_per_node_ : 1;
  }
  way.group_size = way.flat ? way.ranks : way.nodes;
  return way;
}

std::uint64_t CallEstimate::buffer_bytes(const Allreduce& call) const {
  mpi::Count size = 0;
  api_.Type_size_x(call.datatype, &size);
  return call.count > 0 && size > 0 ? std::uint64_t(call.count) * std::uint64_t(size) : 0;
}

// MPI has done the call, or policy takes it, so MPI accepts its arguments.
CallEstimate::Key CallEstimate::key_of(const Allreduce& call, bool blocking,
                                       std::optional<BypassReason> reason, const Way& way) const {
  const std::uint64_t bytes = buffer_bytes(call);
  Key key{.reason = reason,
          .below = kSizeClasses - size_class_of(bytes),
          .type = type_name(call.datatype),
          .op = op_name(call.op),
          .nonblocking = !blocking,
          .empty = bytes == 0,
          .way = way};
  api_.Comm_size(call.comm, &key.ranks);
  return key;
}

// Needs mutex_.
EstimateRow& CallEstimate::find_row(const Key& key) {
  const auto [found, is_new] = rows_.try_emplace(key);
  EstimateRow& row = found->second;
  if (!is_new) return row;
  row.size_class = kSizeClasses - key.below;
  row.empty = key.empty;
  row.ranks = key.ranks;
  row.type = key.type;
  row.op = key.op;
  row.blocking = !key.nonblocking;
  row.reason = key.reason;
  return row;
}

void CallEstimate::record(const Allreduce& call, const Key& key,
                          std::uint64_t nanoseconds) noexcept {
  const Status status = caught([&] {
    const std::uint64_t bytes = buffer_bytes(call);
    const std::lock_guard lock(mutex_);
    EstimateRow& row = find_row(key);
    const double per_byte = double(nanoseconds) / double(std::max<std::uint64_t>(bytes, 1));
    row.least = row.calls == 0 ? nanoseconds : std::min(row.least, nanoseconds);
    row.fastest = row.calls == 0 ? per_byte : std::min(row.fastest, per_byte);
    ++row.calls;
    row.bytes_in += bytes;
    row.elements += std::uint64_t(call.count);
    row.nanoseconds += nanoseconds;
  });
  if (status != Status::ok) log_once(LogLevel::warn, "SLIMPI_ESTIMATE: no memory to record a call");
}

void CallEstimate::left(const Allreduce& call, BypassReason reason,
                        std::uint64_t nanoseconds) noexcept {
  record(call, key_of(call, true, reason, {}), nanoseconds);
}

void CallEstimate::left_begun(const Allreduce& call) noexcept {
  if (call.comm == mpi::abi.comm_null || call.datatype == mpi::abi.datatype_null) return;
  record(call, key_of(call, false, BypassReason::nonblocking, {}), 0);
}

void CallEstimate::begins(const Allreduce& call, const Way& way) noexcept {
  const Key key = key_of(call, false, {}, way);
  sample(call, key);
  record(call, key, 0);
}

// Encodes and decodes the values as one segment, as a rank does with what it sends.
CallEstimate::Sample CallEstimate::sample_of(const std::vector<float>& values, const Way& way) {
  const kernels::Kernels& kernels = *device::host().kernels();
  const std::uint64_t count = values.size();
  std::vector<float> decoded(count);
  Sample sample;
  const auto timed = [&](double& seconds_per_byte, const auto& run) {
    const auto begin = Clock::now();
    run();
    seconds_per_byte = double(nanoseconds_since(begin)) * 1e-9 / double(count * sizeof(float));
  };
  for (std::size_t i = 0; i < kEstimatedWidths; ++i) {
    const kernels::Format format = format_of(way, kEstimatedBits[i]);
    std::vector<std::byte> encoded(kernels::encoded_bytes(format, count));
    timed(sample.encode[i], [&] {
      kernels.encode(format, {}, values.data(), nullptr, count, encoded.data(), nullptr);
    });
    timed(sample.decode[i],
          [&] { kernels.decode(format, encoded.data(), count, decoded.data(), nullptr); });
    double squares[2] = {0, 0};
    kernels.compare(decoded.data(), values.data(), count, squares, nullptr);
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
  if (device::locate(values).device != &device::host()) return;
  const Status status = caught([&] {
    const auto begin = Clock::now();
    const OwnFloats environment;
    {
      const std::lock_guard lock(mutex_);
      const EstimateRow& row = find_row(key);
      if (row.samples >= kSamples || !(row.calls == 0 || std::has_single_bit(row.calls))) return;
    }
    std::vector<float> floats(std::min(std::uint64_t(call.count), kSampledFloats));
    const bool held = read_floats(call, key.way, floats);
    Sample sample;
    if (held) sample = sample_of(floats, key.way);
    const std::lock_guard lock(mutex_);
    if (!held) ++find_row(key).unheld;
    if (sample.valid) add_sample(find_row(key), sample);
    sampling_nanoseconds_ += nanoseconds_since(begin);
  });
  if (status != Status::ok) log_once(LogLevel::warn, "SLIMPI_ESTIMATE: no memory for a sample");
}

void CallEstimate::add_sample(EstimateRow& row, const Sample& sample) {
  ++row.samples;
  for (std::size_t i = 0; i < kEstimatedWidths; ++i) {
    const auto bits = std::size_t(kEstimatedBits[i]);
    row.error_sum[i] += sample.error[i];
    if (!timed_codec_ || sample.encode[i] < constants_.encode[bits])
      constants_.encode[bits] = sample.encode[i];
    if (!timed_codec_ || sample.decode[i] < constants_.decode[bits])
      constants_.decode[bits] = sample.decode[i];
  }
  timed_codec_ = true;
}

// What would become of the calls of a row, each of the mean size.
void CallEstimate::predict(const Way& way, EstimateRow& row) const {
  const double calls = double(row.calls), plain = double(row.bytes_in) / calls;
  const std::uint64_t count = row.elements / row.calls;
  const double bytes = double(count) * sizeof(float);
  for (std::size_t i = 0; i < kEstimatedWidths; ++i)
    row.bytes[i] = calls * bytes_between_nodes(way, count, kEstimatedBits[i]);
  // Beyond its fastest call MPI waited for ranks that came late. They would come as late with
  // slimpi.
  row.waiting_seconds =
      1e-9 * std::max(0.0, double(row.nanoseconds) - double(row.bytes_in) * row.fastest);
  if (wire_ == 0) return;
  using cost::Schedule;
  const cost::Layout layout{double(way.nodes), double(way.ranks) / way.nodes,
                            double(std::thread::hardware_concurrency()), false};
  const Schedule cheapest = cost::cheapest(true, plain, 8, layout, constants_);
  const auto seconds = [&](Schedule schedule, double size, int bits) {
    return calls * cost::predict(schedule, size, bits, layout, constants_).seconds +
           row.waiting_seconds;
  };
  row.plain_seconds = seconds(cheapest, plain, 8);
  for (std::size_t i = 0; i < kEstimatedWidths; ++i) {
    const int bits = kEstimatedBits[i];
    row.seconds[i] =
        seconds(way.flat ? Schedule::flat : cost::used(bytes, bits, layout), bytes, bits);
  }
}

Estimate CallEstimate::result(const Report& job) const {
  const std::lock_guard lock(mutex_);
  Estimate estimate;
  estimate.job = job;
  estimate.sampling_nanoseconds = sampling_nanoseconds_;
  estimate.wire = wire_;
  estimate.nodes = nodes_;
  estimate.ranks_per_node = ranks_per_node_;
  for (const auto& [key, recorded] : rows_) {
    if (recorded.calls == 0) continue;  // sampled, but MPI refused the call
    EstimateRow& row = estimate.rows.emplace_back(recorded);
    const int nodes = row.taken()  ? key.way.nodes
                      : nodes_ > 0 ? nodes_
                                   : std::min(job.nodes, key.ranks);
    row.bytes_now = 2.0 * std::max(nodes - 1, 0) * double(row.bytes_in);
    if (row.taken()) predict(key.way, row);
  }
  return estimate;
}

}  // namespace slimpi::call
