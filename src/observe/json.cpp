// SPDX-License-Identifier: BSD-3-Clause
// The JSON of the report, and that of the estimate. They are one file because the templates of the
// library cost a compiler two seconds in each.
#include <nlohmann/json.hpp>

#include "observe/estimate.h"
#include "observe/report.h"

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

// What the compressed calls were, in several ways.
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
  json["collectives"] = by_name(own.collectives, job.collectives, kCollectives,
                                [](std::size_t i) { return kCollectiveRows[i].name; });
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
  return {{"checked", errors.checked},
          {"mean_rel_l2", errors.mean},
          {"max_rel_l2", errors.max},
          {"mean_vnmse", errors.vnmse},
          {"zeros", errors.share(errors.zeros)},
          {"wrong_signs", errors.share(errors.wrong_signs)}};
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

// As kReportSchema; also of what tools/estimate adds.
constexpr int kEstimateSchema = 3;

// {"8": ..., "4": ..., "2": ...}
Json by_bits(const ByEstimatedBits& values) {
  Json json = Json::object();
  for (std::size_t i = 0; i < kEstimatedWidths; ++i)
    json[std::to_string(kEstimatedBits[i])] = values[i];
  return json;
}

Json counted_json(const CountedCalls& calls) {
  Json way;
  if (calls.way)
    way = {{"nodes", calls.way->nodes},
           {"shards", calls.way->shards},
           {"hierarchy", to_string(calls.way->hierarchy)},
           {"bucket", calls.way->bucket}};
  return {{"size", calls.size},
          {"ranks", calls.ranks},
          {"type", calls.type},
          {"op", calls.op},
          {"width", calls.width},
          {"blocking", calls.blocking},
          {"reason", calls.reason ? Json(to_string(*calls.reason)) : Json()},
          {"way", way},
          {"calls", calls.calls},
          {"bytes", calls.bytes},
          {"nanoseconds", calls.nanoseconds},
          {"least_nanoseconds", calls.least},
          {"samples", calls.samples},
          {"unheld", calls.unheld},
          {"error_sum", by_bits(calls.error_sum)}};
}

}  // namespace

std::string to_json(const Estimate& estimate) {
  const Report& job = estimate.job;
  Json json =
      job_json(job, kEstimateSchema, job.wall_seconds - in_seconds(estimate.sampling_nanoseconds));
  json["sampling_seconds"] = in_seconds(estimate.sampling_nanoseconds);
  json["ranks_per_node"] = estimate.ranks_per_node;
  json["cores"] = estimate.cores;
  json["encode_seconds_per_byte"] = estimate.timed_codec ? by_bits(estimate.encode) : Json();
  json["decode_seconds_per_byte"] = estimate.timed_codec ? by_bits(estimate.decode) : Json();
  json["merged"] = estimate.merged;
  json["counted"] = Json::array();
  for (const CountedCalls& calls : estimate.counted) json["counted"].push_back(counted_json(calls));
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace slimpi
