// SPDX-License-Identifier: BSD-3-Clause
#include <nlohmann/json.hpp>

#include "tools/estimate/estimate.h"

namespace slimpi::tools {

namespace {

using Json = nlohmann::ordered_json;

// {"8": ..., "4": ..., "2": ...}
Json by_bits(const ByEstimatedBits& values) {
  Json json = Json::object();
  for (std::size_t i = 0; i < kEstimatedWidths; ++i)
    json[std::to_string(kEstimatedBits[i])] = values[i];
  return json;
}

void read_by_bits(const Json& json, ByEstimatedBits& values) {
  for (std::size_t i = 0; i < kEstimatedWidths; ++i)
    json.at(std::to_string(kEstimatedBits[i])).get_to(values[i]);
}

// Predicted seconds: {"plain": ..., "8": ..., ...}; null where no time is predicted.
Json predicted(const Prediction& prediction, double plain, const ByEstimatedBits& values) {
  if (prediction.cluster.wire == 0) return {};
  Json json = {{"plain", plain}};
  json.update(by_bits(values));
  return json;
}

Json with_now(double now, const ByEstimatedBits& values) {
  Json json = {{"now", now}};
  json.update(by_bits(values));
  return json;
}

Json error_of(const EstimateRow& row) {
  if (row.samples == 0) return {};
  ByEstimatedBits means = row.error_sum;
  for (double& mean : means) mean /= double(row.samples);
  return by_bits(means);
}

Json row_json(const Prediction& prediction, const EstimateRow& row) {
  Json json;
  json["from"] = row.empty ? 0 : 1ull << row.size_class;
  json["to"] = row.empty ? 0 : (2ull << row.size_class) - 1;
  json["ranks"] = row.ranks == 0 ? Json() : Json(row.ranks);
  json["type"] = row.type;
  json["op"] = row.op;
  json["blocking"] = row.blocking;
  json["reason"] = row.taken() ? Json() : Json(to_string(*row.reason));
  json["calls"] = row.calls;
  json["bytes_in"] = row.bytes_in;
  json["seconds"] = row.blocking ? Json(in_seconds(row.nanoseconds)) : Json();
  json["least_seconds"] = row.blocking ? Json(in_seconds(row.least)) : Json();
  if (!row.taken() && !row.with_types) {
    json["bytes"] = {{"now", row.bytes_now}};
    return json;
  }
  json["bytes"] = with_now(row.bytes_now, row.bytes);
  json["waiting_seconds"] = row.waiting_seconds;
  json["predicted_seconds"] = predicted(prediction, row.plain_seconds, row.seconds);
  json["with_types"] = row.with_types;
  json["unheld"] = row.unheld;
  json["samples"] = row.samples;
  json["error"] = error_of(row);
  return json;
}

CountedCalls read_calls(const Json& json) {
  CountedCalls calls;
  json.at("size").get_to(calls.size);
  json.at("ranks").get_to(calls.ranks);
  json.at("type").get_to(calls.type);
  json.at("op").get_to(calls.op);
  json.at("width").get_to(calls.width);
  json.at("blocking").get_to(calls.blocking);
  if (const Json& reason = json.at("reason"); !reason.is_null())
    for (std::size_t i = 0; i < kBypassReasons; ++i)
      if (reason == to_string(BypassReason(i))) calls.reason = BypassReason(i);
  if (const Json& way = json.at("way"); !way.is_null()) {
    CountedWay& read = calls.way.emplace();
    way.at("nodes").get_to(read.nodes);
    way.at("shards").get_to(read.shards);
    way.at("bucket").get_to(read.bucket);
    for (const Hierarchy one : {Hierarchy::flat, Hierarchy::leader, Hierarchy::sharded})
      if (way.at("hierarchy") == to_string(one)) read.hierarchy = one;
  }
  json.at("calls").get_to(calls.calls);
  json.at("bytes").get_to(calls.bytes);
  json.at("nanoseconds").get_to(calls.nanoseconds);
  json.at("least_nanoseconds").get_to(calls.least);
  json.at("samples").get_to(calls.samples);
  json.at("unheld").get_to(calls.unheld);
  read_by_bits(json.at("error_sum"), calls.error_sum);
  return calls;
}

}  // namespace

bool is_complete(const std::string& json) {
  return Json::accept(json);
}

std::string read_estimate(const std::string& text, Estimate* counted) {
  try {
    const Json json = Json::parse(text);
    json.at("slimpi").get_to(counted->job.version);
    json.at("mpi").get_to(counted->job.mpi);
    json.at("ranks").get_to(counted->job.ranks);
    json.at("nodes").get_to(counted->job.nodes);
    json.at("wall_seconds").get_to(counted->job.wall_seconds);
    json.at("ranks_per_node").get_to(counted->ranks_per_node);
    json.at("cores").get_to(counted->cores);
    counted->timed_codec = !json.at("encode_seconds_per_byte").is_null();
    if (counted->timed_codec) {
      read_by_bits(json.at("encode_seconds_per_byte"), counted->encode);
      read_by_bits(json.at("decode_seconds_per_byte"), counted->decode);
    }
    json.at("merged").get_to(counted->merged);
    for (const Json& calls : json.at("counted")) counted->counted.push_back(read_calls(calls));
  } catch (const Json::exception& error) {
    return std::string("not written by SLIMPI_ESTIMATE: ") + error.what();
  }
  return "";
}

std::string to_json(const std::string& text, const Prediction& prediction) {
  const EstimateTotals totals = totals_of(prediction);
  Json json = Json::parse(text);
  const Cluster& cluster = prediction.cluster;
  json["wire_bits_per_second"] = cluster.wire == 0 ? Json() : Json(cluster.wire);
  json["predicted_nodes"] = cluster.nodes == 0 ? json.at("nodes") : Json(cluster.nodes);
  json["rows"] = Json::array();
  for (const EstimateRow& row : prediction.rows) json["rows"].push_back(row_json(prediction, row));
  json["total"] = {
      {"calls", totals.calls},
      {"compressed", totals.taken},
      {"bytes", with_now(totals.bytes, totals.bytes_then)},
      {"seconds", {{"now", totals.seconds}}},
      {"predicted_seconds", predicted(prediction, totals.plain_seconds, totals.seconds_then)}};
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace slimpi::tools
