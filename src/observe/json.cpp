// SPDX-License-Identifier: BSD-3-Clause
// The JSON of the report and of the estimate. Both are in one file, because the templates of the
// JSON library cost the compiler two seconds per file.
#include <algorithm>
#include <nlohmann/json.hpp>

#include "observe/estimate.h"
#include "observe/report.h"

namespace slimpi {

namespace {

using Json = nlohmann::ordered_json;

// Incremented when a key changes its meaning or is removed, but not for a new key.
constexpr int kReportSchema = 3;

// Returns the job description that opens both JSON files, the report's and the estimate's.
Json job_json(const Report& job, int schema) {
  Json json, options = Json::object();
  for (const auto& [name, value] : job.options) options[name] = value;
  json["slimpi"] = job.version;
  json["schema"] = schema;
  json["command"] = job.command;
  json["options"] = options;
  json["hosts"] = job.hosts;
  json["date"] = job.date;
  json["wall_seconds"] = job.wall_seconds;
  json["mpi"] = job.mpi;
  json["ranks"] = job.ranks;
  json["nodes"] = job.nodes;
  return json;
}

// Returns an array that has, for each size class i where any(i) is true, row(i) with its range of
// sizes.
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

const std::string& name_of(const std::string& name) {
  return name;
}
template <typename Row>
const char* name_of(const Row& row) {
  return row.name;
}

// Returns the shares of algorithms, codecs and so on, by the names of their rows.
template <std::size_t kRows, typename Names>
Json shares(const Report& report, std::array<Share, kRows> Counts::*by, const Names& names) {
  Json rows = Json::object();
  for (std::size_t i = 0; i < std::size(names); ++i)
    if (const Share& own = (report.own.*by)[i]; own.calls != 0)
      rows[name_of(names[i])] = share(own, (report.job.*by)[i]);
  return rows;
}

Json shares_by_size(const Report& report) {
  const auto &own = report.own.sizes, &job = report.job.sizes;
  return by_size([&](std::size_t i) { return own[i].calls != 0; },
                 [&](std::size_t i) { return share(own[i], job[i]); });
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

Json error(const VerifiedErrors& errors) {
  return {{"checked", errors.checked},
          {"mean_rel_l2", errors.mean(errors.relative_l2)},
          {"max_rel_l2", errors.most_relative_l2},
          {"mean_vnmse", errors.mean(errors.vnmse)},
          {"zeros", errors.share(errors.zeros)},
          {"wrong_signs", errors.share(errors.wrong_signs)}};
}

Json errors(const Report& report) {
  VerifiedErrors total;
  for (const VerifiedErrors& errors : report.errors) total.add(errors);
  Json json = error(total);
  json["sizes"] = by_size([&](std::size_t i) { return report.errors[i].checked != 0; },
                          [&](std::size_t i) { return error(report.errors[i]); });
  return json;
}

Json passed(const Report& report) {
  Json json;
  for (std::size_t i = 0; i < kBypassReasons; ++i)
    json[to_string(BypassReason(i))] = report.own.bypassed[i];
  return json;
}

// Sets the value of a key of counters.def, where "seconds.total" is json["seconds"]["total"].
void set(Json& json, std::string key, const Json& value) {
  std::replace(key.begin(), key.end(), '.', '/');
  json[Json::json_pointer("/" + key)] = value;
}

void set_counter(Json& json, const std::string& key, std::uint64_t value) {
  if (key.empty()) return;
  set(json, key, key.starts_with("seconds.") ? Json(in_seconds(value)) : Json(value));
}

}  // namespace

std::string to_json(const Report& report) {
  Json json = job_json(report, kReportSchema);
#define SLIMPI_COUNTER(name, key, whose, api) set_counter(json, key, report.whose.name);
#define SLIMPI_DERIVED(key, value) set(json, key, value);
#include "observe/counters.def"
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

namespace {

constexpr int kEstimateSchema = 4;

Json bytes_json(const Estimate& estimate, const CountedCalls& calls) {
  Json json = {{"plain", calls.plain_bytes}};
  for (const int bits : kEstimatedBits)
    json[std::to_string(bits)] = bytes_at(estimate, calls, bits);
  return json;
}

Json counted_json(const Estimate& estimate, const CountedCalls& calls) {
  return {{"from", calls.empty ? 0 : 1ull << calls.size_class},
          {"to", calls.empty ? 0 : (2ull << calls.size_class) - 1},
          {"ranks", calls.ranks},
          {"function", row_of(calls.collective).name},
          {"type", calls.type},
          {"op", calls.op},
          {"blocking", calls.blocking},
          {"reason", calls.reason ? Json(to_string(*calls.reason)) : Json()},
          {"calls", calls.calls},
          {"bytes_in", calls.bytes},
          {"seconds", calls.blocking ? Json(in_seconds(calls.nanoseconds)) : Json()},
          {"bytes", bytes_json(estimate, calls)}};
}

}  // namespace

std::string to_json(const Estimate& estimate) {
  Json json = job_json(estimate.job, kEstimateSchema);
  json["rows"] = Json::array();
  for (const CountedCalls& calls : estimate.counted)
    json["rows"].push_back(counted_json(estimate, calls));
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace slimpi
