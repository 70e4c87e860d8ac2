// SPDX-License-Identifier: BSD-3-Clause
// All JSON of slimpi-bench. It is in one file, because the templates of the JSON library take a
// compiler two seconds in each file.
#include <nlohmann/json.hpp>

#include "tools/bench/predict.h"
#include "tools/bench/report.h"

namespace slimpi::bench {
namespace {

using Json = nlohmann::ordered_json;

std::string text_of(const Json& json) {
  return json.dump(1) + "\n";
}

template <typename T>
Json value_or_null(const std::optional<T>& value) {
  return value ? Json(*value) : Json();
}

}  // namespace

std::string to_json(const Constants& constants, const std::vector<Forecast>& all) {
  Json rows = Json::array();
  for (const Forecast& f : all) {
    rows.push_back({{"nodes", f.layout.nodes},
                    {"ranks_per_node", f.layout.ranks_per_node},
                    {"size", f.bytes},
                    {"schedule", to_string(f.schedule)},
                    {"used", f.used},
                    {"bits", f.bits == 0 ? Json() : Json(f.bits)},
                    {"seconds", f.cost.seconds},
                    {"link_seconds", f.cost.link},
                    {"processor_seconds", f.cost.processor},
                    {"latency_seconds", f.cost.waiting},
                    {"speedup", f.plain_seconds / f.cost.seconds},
                    {"bottleneck", held_by(f.cost)},
                    {"messages", f.cost.messages},
                    {"peers", f.cost.peers},
                    {"memory", f.cost.memory}});
  }
  return text_of({{"beyond_measured", beyond_measured(constants)}, {"predictions", rows}});
}

// Returns the number; a whole number is written without a decimal point.
Json bits_of(double bits) {
  if (bits == 0) return {};
  return bits == double(int(bits)) ? Json(int(bits)) : Json(bits);
}

std::string to_json(const Options& options, const World& world, const std::vector<Row>& rows) {
  Json results = Json::array();
  for (const Row& row : rows) {
    results.push_back({{"size", row.bytes},
                       {"count", row.bytes / sizeof(float)},
                       {"algorithm", row.name},
                       {"bits", bits_of(row.bits)},
                       {"iterations", row.iterations},
                       {"median_seconds", row.median},
                       {"min_seconds", row.least},
                       {"algbw", row.algbw},
                       {"busbw", row.busbw},
                       {"speedup", row.speedup},
                       {"limit_seconds", value_or_null(row.limit)},
                       {"rel_l2_error", value_or_null(row.error)},
                       {"vnmse", value_or_null(row.vnmse)},
                       {"zeros", value_or_null(row.zeros)},
                       {"wrong_signs", value_or_null(row.wrong_signs)},
                       {"same_bytes", value_or_null(row.same)},
                       {"compressed", value_or_null(row.compressed)},
                       {"bytes_sent", value_or_null(row.sent)},
                       {"interface_bytes", value_or_null(row.on_wire)}});
  }
  return text_of({{"slimpi", SLIMPI_PACKAGE_VERSION},
                  {"mpi", world.mpi},
                  {"ranks", world.ranks},
                  {"nodes", world.nodes},
                  {"preloaded", world.preloaded},
                  {"collective", row_of(options.collective).name},
                  {"in_place", options.in_place},
                  {"warmup", options.warmup},
                  {"wire_bits_per_second", options.wire > 0 ? Json(options.wire) : Json()},
                  {"results", results}});
}

}  // namespace slimpi::bench
