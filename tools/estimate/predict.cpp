// SPDX-License-Identifier: BSD-3-Clause
// The rows of the estimate, made from what was counted.
#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "comm/node_layout.h"
#include "tools/estimate/cost.h"
#include "tools/estimate/estimate.h"

namespace slimpi::tools {

namespace {

// How slimpi would do a sum between nodes.
struct Way {
  int nodes = 0, ranks = 0, group_size = 0, shards = 1;
  bool flat = false;
  std::uint32_t bucket = 512;
};

// On the nodes of the cluster, or where that has none, of the job. Empty where slimpi would leave
// the calls to MPI, on one node above all.
std::optional<Way> way_of(const Estimate& counted, const Cluster& cluster,
                          const CountedCalls& calls) {
  if (!calls.way || calls.width == 0) return std::nullopt;
  Way way{calls.way->nodes, calls.ranks, 0, calls.way->shards, false, calls.way->bucket};
  way.flat = calls.way->hierarchy == Hierarchy::flat;
  if (cluster.nodes != 0) {
    way.nodes = int(std::int64_t(cluster.nodes) * calls.ranks / std::max(counted.job.ranks, 1));
    way.ranks = way.nodes * counted.ranks_per_node;
    way.shards = calls.way->hierarchy == Hierarchy::sharded ? counted.ranks_per_node : 1;
  }
  if (way.nodes < 2) return std::nullopt;
  way.group_size = way.flat ? way.ranks : way.nodes;
  return way;
}

// What all ranks put between nodes in one call. In a flat group, messages inside a node are none of
// it.
double bytes_between_nodes(const Way& way, std::uint64_t count, int bits) {
  kernels::Format format;
  format.codec = kernels::Codec::quantized;
  format.bits = std::uint8_t(bits);
  format.bucket = way.bucket;
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

cost::Constants constants_of(const Estimate& counted, double wire) {
  cost::Constants constants;
  constants.link = constants.exchange = 8 / (wire * cost::kPayload);
  for (std::size_t i = 0; counted.timed_codec && i < kEstimatedWidths; ++i) {
    constants.encode[std::size_t(kEstimatedBits[i])] = counted.encode[i];
    constants.decode[std::size_t(kEstimatedBits[i])] = counted.decode[i];
  }
  return constants;
}

// Adds calls of one size to the row that they belong to.
void add_prediction(const Estimate& counted, double wire, const CountedCalls& one, const Way& way,
                    EstimateRow& row) {
  const auto calls = double(one.calls);
  const std::uint64_t count = one.bytes / std::max<std::uint64_t>(one.calls, 1) / one.width;
  const double bytes = double(count) * sizeof(float), plain = double(count * one.width);
  for (std::size_t i = 0; i < kEstimatedWidths; ++i) {
    row.bytes[i] += calls * bytes_between_nodes(way, count, kEstimatedBits[i]);
    row.error_sum[i] += one.error_sum[i];
  }
  row.samples += one.samples;
  row.unheld += one.unheld;
  // Beyond its fastest call MPI waited for ranks that came late. They would come as late with
  // slimpi.
  const double waiting = in_seconds(one.nanoseconds - one.calls * one.least);
  row.waiting_seconds += waiting;
  if (wire == 0) return;
  using cost::Schedule;
  const cost::Constants constants = constants_of(counted, wire);
  const cost::Layout layout{double(way.nodes), double(way.ranks) / way.nodes, double(counted.cores),
                            false};
  const Schedule cheapest = cost::cheapest(true, plain, 8, layout, constants);
  row.plain_seconds +=
      calls * cost::predict(cheapest, plain, 8, layout, constants).seconds + waiting;
  for (std::size_t i = 0; i < kEstimatedWidths; ++i) {
    const int bits = kEstimatedBits[i];
    const Schedule schedule = way.flat ? Schedule::flat : cost::used(bytes, bits, layout);
    row.seconds[i] +=
        calls * cost::predict(schedule, bytes, bits, layout, constants).seconds + waiting;
  }
}

}  // namespace

Prediction predict(Estimate counted, const Cluster& cluster) {
  using Place = std::tuple<bool, std::size_t, int, std::string, std::string, bool, int>;
  std::map<Place, EstimateRow> rows;
  for (const CountedCalls& one : counted.counted) {
    const std::size_t size_class = size_class_of(one.size);
    const std::optional<Way> way = way_of(counted, cluster, one);
    std::optional<BypassReason> left = one.reason;
    if (!left && !way)
      left = one.way->nodes == 0 ? BypassReason::nonblocking : BypassReason::single_node;
    const int reason = left ? int(*left) : -1;
    // What would be compressed, and of it the longest buffers, comes first.
    EstimateRow& row = rows[{reason >= 0, kSizeClasses - size_class, one.ranks, one.type, one.op,
                             one.blocking, 4 * reason + (one.size == 0 ? 1 : 0) + (way ? 2 : 0)}];
    row.size_class = size_class;
    row.empty = one.size == 0;
    row.ranks = one.ranks;
    row.type = one.type;
    row.op = one.op;
    row.blocking = one.blocking;
    row.reason = left;
    row.least = row.calls == 0 ? one.least : std::min(row.least, one.least);
    row.calls += one.calls;
    row.bytes_in += one.bytes;
    row.nanoseconds += one.nanoseconds;
    row.with_types = way && !row.taken();
    const int nodes = way                 ? way->nodes
                      : cluster.nodes > 0 ? cluster.nodes
                                          : std::min(counted.job.nodes, one.ranks);
    row.bytes_now += 2.0 * std::max(nodes - 1, 0) * double(one.bytes);
    if (way) add_prediction(counted, cluster.wire, one, *way, row);
  }
  Prediction prediction;
  prediction.counted = std::move(counted);
  prediction.cluster = cluster;
  for (auto& [place, row] : rows) prediction.rows.push_back(std::move(row));
  return prediction;
}

}  // namespace slimpi::tools
