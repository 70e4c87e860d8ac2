// SPDX-License-Identifier: BSD-3-Clause
// All JSON of slimpi-bench. It is in one file, because the templates of the JSON library take a
// compiler two seconds in each file.
#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include <fstream>

#include "tools/bench/predict.h"
#include "tools/bench/report.h"

namespace slimpi::bench {
namespace {

using Json = nlohmann::ordered_json;

// The constants by their names, except those that have a value for each number of bits.
constexpr std::pair<const char*, double Constants::*> kNumbers[] = {
    {"latency", &Constants::latency},
    {"overhead", &Constants::overhead},
    {"link", &Constants::link},
    {"exchange", &Constants::exchange},
    {"copy", &Constants::copy},
    {"add", &Constants::add},
    {"node_copy", &Constants::node_copy},
    {"peer_memory", &Constants::peer_memory},
    {"peer_setup", &Constants::peer_setup}};

Json json_of(const Constants& c) {
  Json json;
  for (const auto& [name, number] : kNumbers) json[name] = c.*number;
  json["encode"] = c.encode;
  json["decode"] = c.decode;
  json["cores"] = c.cores;
  json["measured_link"] = c.measured_link;
  return json;
}

std::string text_of(const Json& json) {
  return json.dump(1) + "\n";
}

template <typename T>
Json value_or_null(const std::optional<T>& value) {
  return value ? Json(*value) : Json();
}

}  // namespace

std::string to_json(const Constants& constants) {
  return text_of(json_of(constants));
}

std::string read_json(const std::string& path, Constants& c) {
  try {
    std::ifstream file(path);
    const Json json = Json::parse(file);
    for (const auto& [name, number] : kNumbers) json.at(name).get_to(c.*number);
    json.at("encode").get_to(c.encode);
    json.at("decode").get_to(c.decode);
    json.at("cores").get_to(c.cores);
  } catch (const Json::exception& error) {
    return fmt::format("{}: not written by --calibrate: {}", path, error.what());
  }
  return "";
}

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
                    {"peer_memory", f.cost.memory},
                    {"setup_seconds", f.cost.setup}});
  }
  return text_of({{"constants", json_of(constants)},
                  {"beyond_measured", constants.beyond_measured()},
                  {"predictions", rows}});
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
                       {"interface_bytes", value_or_null(row.on_wire)},
                       {"predicted_seconds", value_or_null(row.predicted)}});
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
