// SPDX-License-Identifier: BSD-3-Clause
// SLIMPI_ESTIMATE at the end of the job: the rows of its table, made from what was recorded.
#include <algorithm>
#include <thread>
#include <tuple>

#include "call/element_type.h"
#include "call/estimate.h"
#include "call/runtime.h"

namespace slimpi::call {

namespace {

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

}  // namespace

// Adds a record to the row that it belongs to, with the calls of one size at a time.
void CallEstimate::predict(const Key& key, const Record& record, EstimateRow& row) const {
  const double calls = double(record.calls);
  const std::size_t width = row_of(*element_type(key.type)).bytes;
  const std::uint64_t count = record.bytes / std::max<std::uint64_t>(record.calls, 1) / width;
  const double bytes = double(count) * sizeof(float), plain = double(count * width);
  for (std::size_t i = 0; i < kEstimatedWidths; ++i) {
    row.bytes[i] += calls * bytes_between_nodes(key.way, count, kEstimatedBits[i]);
    row.error_sum[i] += record.error_sum[i];
  }
  row.samples += record.samples;
  row.unheld += record.unheld;
  // Beyond its fastest call MPI waited for ranks that came late. They would come as late with
  // slimpi.
  const double waiting = in_seconds(record.nanoseconds - record.calls * record.least);
  row.waiting_seconds += waiting;
  if (wire_ == 0) return;
  using cost::Schedule;
  const cost::Layout layout{double(key.way.nodes), double(key.way.ranks) / key.way.nodes,
                            double(std::thread::hardware_concurrency()), false};
  const auto seconds = [&](Schedule schedule, int bits) {
    return cost::predict(schedule, bytes, bits, layout, constants_).seconds;
  };
  const Schedule cheapest = cost::cheapest(true, plain, 8, layout, constants_);
  row.plain_seconds +=
      calls * cost::predict(cheapest, plain, 8, layout, constants_).seconds + waiting;
  for (std::size_t i = 0; i < kEstimatedWidths; ++i) {
    const int bits = kEstimatedBits[i];
    const Schedule schedule = key.way.flat ? Schedule::flat : cost::used(bytes, bits, layout);
    row.seconds[i] += calls * seconds(schedule, bits) + waiting;
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
  estimate.merged = merged_;
  using Place = std::tuple<bool, std::size_t, int, std::string, std::string, bool, int>;
  std::map<Place, EstimateRow> rows;
  for (const auto& [key, record] : records_) {
    if (record.calls == 0) continue;  // sampled, but MPI refused the call
    const std::size_t size_class = size_class_of(key.bytes);
    const std::string type = type_name(key.type), op = op_name(key.op);
    const bool predicted = key.way.nodes != 0;
    // What would be compressed, and of it the longest buffers, comes first.
    EstimateRow& row =
        rows[{key.reason >= 0, kSizeClasses - size_class, key.ranks, type, op, key.blocking,
              4 * key.reason + (key.bytes == 0 ? 1 : 0) + (predicted ? 2 : 0)}];
    row.size_class = size_class;
    row.empty = key.bytes == 0;
    row.ranks = key.ranks;
    row.type = type;
    row.op = op;
    row.blocking = key.blocking;
    if (key.reason >= 0) row.reason = BypassReason(key.reason);
    row.least = row.calls == 0 ? record.least : std::min(row.least, record.least);
    row.calls += record.calls;
    row.bytes_in += record.bytes;
    row.nanoseconds += record.nanoseconds;
    row.with_types = predicted && !row.taken();
    const int nodes = predicted    ? key.way.nodes
                      : nodes_ > 0 ? nodes_
                                   : std::min(job.nodes, key.ranks);
    row.bytes_now += 2.0 * std::max(nodes - 1, 0) * double(record.bytes);
    if (predicted) predict(key, record, row);
  }
  for (auto& [place, row] : rows) estimate.rows.push_back(row);
  return estimate;
}

}  // namespace slimpi::call
