// SPDX-License-Identifier: BSD-3-Clause
// The JSON of the report, and that of the estimate. They are one file because the templates of the
// library cost a compiler two seconds in each.
#include <nlohmann/json.hpp>

#include "base/estimate.h"
#include "base/report.h"

namespace slimpi {

namespace {

using Json = nlohmann::ordered_json;

// Incremented when a key changes its meaning or goes away. A new key does not change it.
constexpr int kReportSchema = 3;

// What both say of the job, first.
Json job_json(const Report& job, int schema, double wall_seconds) {
  Json json, options = Json::object();
  for (const auto& [name, value] : job.options) options[name] = value;
  json["slimpi"] = job.version;
  json["schema"] = schema;
  json["command"] = job.command;
  json["options"] = options;
  json["hosts"] = job.hosts;
  json["date"] = job.date;
  json["wall_seconds"] = wall_seconds;
  json["mpi"] = job.mpi;
  json["ranks"] = job.ranks;
  json["nodes"] = job.nodes;
  return json;
}

// By size class, from an array that is by class: what row(i) says of those for which any(i).
template <typename Any, typename Row>
Json by_size(const Any& any, const Row& row) {
  Json rows = Json::array();
  for (std::size_t i = 0; i < kSizeClasses; ++i) {
    if (!any(i)) continue;
    Json made = {{"from", 1ull << i}, {"to", (2ull << i) - 1}};
    made.update(row(i));
    rows.push_back(made);
  }
  return rows;
}

Json share(const Share& own, const Share& job) {
  return {{"calls", own.calls},
          {"bytes_in", job.bytes_in},
          {"bytes_sent", job.bytes_sent},
          {"seconds", in_seconds(own.nanoseconds)}};
}

// What the compressed calls were, in three ways.
void add_shares(const Report& report, Json& json) {
  const auto by_name = [&](const auto& own, const auto& job, std::size_t count, auto name) {
    Json shares = Json::object();
    for (std::size_t i = 0; i < count; ++i)
      if (own[i].calls != 0) shares[name(i)] = share(own[i], job[i]);
    return shares;
  };
  const Counts &own = report.own, &job = report.job;
  json["algorithms"] = by_name(own.algorithms, job.algorithms, kAlgorithms,
                               [](std::size_t i) { return to_string(AlgorithmId(i)); });
  json["codecs"] = by_name(own.codecs, job.codecs, report.codecs.size(),
                           [&](std::size_t i) { return report.codecs[i]; });
  json["sizes"] = by_size([&](std::size_t i) { return own.sizes[i].calls != 0; },
                          [&](std::size_t i) { return share(own.sizes[i], job.sizes[i]); });
  json["types"] = by_name(own.types, job.types, kElementTypes,
                          [](std::size_t i) { return kElementRows[i].name; });
}

Json choices(const Report& report) {
  Json rows = Json::array();
  for (const AutoChoice& choice : report.choices) {
    Json candidates = Json::object();
    for (const AutoChoice::Candidate& each : choice.candidates)
      candidates[each.name] = {{"calls", each.calls}, {"least_seconds", in_seconds(each.least)}};
    rows.push_back({{"from", choice.from_bytes},
                    {"chosen", choice.chosen.empty() ? Json() : Json(choice.chosen)},
                    {"decisions", choice.decisions},
                    {"candidates", candidates}});
  }
  return rows;
}

Json error(const Errors& errors) {
  return {{"checked", errors.checked}, {"mean_rel_l2", errors.mean}, {"max_rel_l2", errors.max}};
}

Json errors(const Report& report) {
  Json json = error(total_of(report.errors));
  json["sizes"] = by_size([&](std::size_t i) { return report.errors[i].checked != 0; },
                          [&](std::size_t i) { return error(report.errors[i]); });
  return json;
}

Json calls(const Report& report) {
  Json passed;
  for (std::size_t i = 0; i < kBypassReasons; ++i)
    passed[to_string(BypassReason(i))] = report.own.bypassed[i];
  const CallsBetweenNodes between = calls_between_nodes(report);
  return {{"total", report.own.calls},
          {"compressed", between.compressed},
          {"float32", between.float32},
          {"exact_in_node", report.own.exact_in_node},
          {"passed", passed}};
}

Json times(const Report& report) {
  Json json;
  json["total"] = in_seconds(report.own.nanoseconds);
  for (std::size_t i = 0; i < kStages; ++i)
    json[to_string(Stage(i))] = in_seconds(report.own.stage_nanoseconds[i]);
  json["verify"] = in_seconds(report.own.verify_nanoseconds);
  return json;
}

}  // namespace

std::string to_json(const Report& report) {
  const Totals totals = totals_of(report);
  Json json = job_json(report, kReportSchema, report.wall_seconds);
  json["algorithm"] = algorithms_of(report);
  json["calls"] = calls(report);
  json["bytes"] = {
      {"in", report.job.bytes_in},       {"sent", report.job.bytes_sent},
      {"plain", report.job.bytes_plain}, {"all_plain", totals.plain},
      {"all_done", totals.done},         {"compressed_share", totals.compressed_share}};
  json["seconds"] = times(report);
  json["buffers"] = {{"host", report.own.host_buffers},
                     {"device", report.own.device_buffers},
                     {"staged", report.own.staged_calls}};
  json["error"] = errors(report);
  json["error"]["beyond_bound"] = report.job.beyond_bound;
  json["memory"] = {{"state", report.own.state_bytes},
                    {"scratch", report.most_scratch},
                    {"segments", report.most_segments},
                    {"segment_bytes", report.most_segment_bytes}};
  json["state"] = {{"calls", report.own.state_calls},
                   {"first_times", report.own.state_first_times},
                   {"never_reused", states_never_reused(report.own)}};
  json["state_dropped"] = report.own.state_dropped;
  add_shares(report, json);
  json["auto"] = choices(report);
  json["unmatched_rules"] = report.unmatched_rules;
  json["repeated"] = report.own.repeated;
  json["overflowed"] = report.job.overflowed;
  json["ranks_counted"] = report.ranks_counted;
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

namespace {

// As kReportSchema.
constexpr int kEstimateSchema = 2;

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
  Json json = job_json(job, kEstimateSchema, estimate.wall_seconds());
  json["sampling_seconds"] = in_seconds(estimate.sampling_nanoseconds);
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
