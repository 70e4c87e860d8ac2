// SPDX-License-Identifier: BSD-3-Clause
#include <nlohmann/json.hpp>

#include "base/estimate.h"

namespace slimpi {

namespace {

using Json = nlohmann::ordered_json;

// Incremented when a key changes its meaning or goes away. A new key does not change it.
constexpr int kSchema = 2;

// {"8": ..., "4": ..., "2": ...}
Json by_bits(const std::array<double, kEstimatedWidths>& values) {
  Json json = Json::object();
  for (std::size_t i = 0; i < kEstimatedWidths; ++i)
    json[std::to_string(kEstimatedBits[i])] = values[i];
  return json;
}

// Predicted seconds: {"plain": ..., "8": ..., ...}; null where no time is predicted.
Json predicted(const Estimate& estimate, double plain,
               const std::array<double, kEstimatedWidths>& values) {
  if (estimate.wire == 0) return {};
  Json json = {{"plain", plain}};
  json.update(by_bits(values));
  return json;
}

Json with_now(double now, const std::array<double, kEstimatedWidths>& values) {
  Json json = {{"now", now}};
  json.update(by_bits(values));
  return json;
}

Json error_of(const EstimateRow& row) {
  if (row.samples == 0) return {};
  std::array<double, kEstimatedWidths> means = row.error_sum;
  for (double& mean : means) mean /= double(row.samples);
  return by_bits(means);
}

Json row_json(const Estimate& estimate, const EstimateRow& row) {
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
  json["predicted_seconds"] = predicted(estimate, row.plain_seconds, row.seconds);
  json["with_types"] = row.with_types;
  json["unheld"] = row.unheld;
  json["samples"] = row.samples;
  json["error"] = error_of(row);
  return json;
}

}  // namespace

std::string to_json(const Estimate& estimate) {
  const Report& job = estimate.job;
  const EstimateTotals totals = totals_of(estimate);
  Json json, options = Json::object();
  for (const auto& [name, value] : job.options) options[name] = value;
  json["slimpi"] = job.version;
  json["schema"] = kSchema;
  json["command"] = job.command;
  json["options"] = options;
  json["hosts"] = job.hosts;
  json["date"] = job.date;
  json["wall_seconds"] = estimate.wall_seconds();
  json["sampling_seconds"] = in_seconds(estimate.sampling_nanoseconds);
  json["mpi"] = job.mpi;
  json["ranks"] = job.ranks;
  json["nodes"] = job.nodes;
  json["wire_bits_per_second"] = estimate.wire == 0 ? Json() : Json(estimate.wire);
  json["predicted_nodes"] = estimate.nodes == 0 ? Json(job.nodes) : Json(estimate.nodes);
  json["rows"] = Json::array();
  for (const EstimateRow& row : estimate.rows) json["rows"].push_back(row_json(estimate, row));
  json["merged"] = estimate.merged;
  json["total"] = {
      {"calls", totals.calls},
      {"compressed", totals.taken},
      {"bytes", with_now(totals.bytes, totals.bytes_then)},
      {"seconds", {{"now", totals.seconds}}},
      {"predicted_seconds", predicted(estimate, totals.plain_seconds, totals.seconds_then)}};
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace slimpi
