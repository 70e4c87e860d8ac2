// SPDX-License-Identifier: BSD-3-Clause
// All JSON of slimpi-info. It is in one file, because the templates of the JSON library take a
// compiler two seconds in each file.
#include <nlohmann/json.hpp>

#include <algorithm>

#include "tools/info/attach.h"
#include "tools/info/info.h"

namespace slimpi::info {
namespace {

using Json = nlohmann::ordered_json;
using topology::Topology;

Json text_or_null(const std::string& value) {
  return value.empty() ? Json() : Json(value);
}

Json number_or_null(int index) {
  return index < 0 ? Json() : Json(index);
}

Json json_of(const Build& build) {
  Json built = Json::array(), usable = Json::array(), plugins = Json::object();
  for (const Build::Path& path : build.paths) {
    if (path.built) built.push_back(path.name);
    if (path.usable) usable.push_back(path.name);
  }
  for (const Build::Plugin& plugin : build.plugins) plugins[plugin.name] = plugin.installed;
  return {{"slimpi", SLIMPI_PACKAGE_VERSION},
          {"commit", text_or_null(build.commit)},
          {"library", text_or_null(build.library)},
          {"compiler", build.compiler},
          {"mpi", build.mpis},
          {"cpu", {{"built", built}, {"usable", usable}, {"used", build.used_path}}},
          {"plugins", plugins},
          {"algorithms", build.algorithms}};
}

Json json_of(const Config& config) {
  Json list = Json::array();
  for (std::size_t i = 0; i < option_rows().size(); ++i) {
    const OptionRow& row = option_rows()[i];
    const Config::Given& given = config.given[i];
    list.push_back({{"name", row.name},
                    {"variable", row.variable},
                    {"value", text_or_null(given.text)},
                    {"source", to_string(given.source)},
                    {"default", text_or_null(row.standard)},
                    {"accepted", row.accepted},
                    {"must_agree", row.scope == Scope::agree || row.scope == Scope::job},
                    {"info_key", row.scope == Scope::agree || row.scope == Scope::contents},
                    {"meaning", row.meaning}});
  }
  return list;
}

Json json_of(const Topology& topology) {
  Json nodes = Json::array(), gpus = Json::array(), nics = Json::array();
  for (const topology::NumaNode& node : topology.numa_nodes)
    nodes.push_back({{"index", node.index}, {"cores", node.cores}, {"memory", node.memory}});
  for (std::size_t i = 0; i < topology.gpus.size(); ++i) {
    const topology::Device& gpu = topology.gpus[i];
    const int nic = topology::nearest_nic(topology, int(i));
    gpus.push_back({{"bus_id", gpu.bus_id},
                    {"model", text_or_null(gpu.model)},
                    {"numa_node", number_or_null(gpu.numa_node)},
                    {"nearest_nic", number_or_null(nic)},
                    {"distance", to_string(topology::distance_to_nic(topology, gpu.bus_id))},
                    {"leads", int(i) == topology::leading_gpu(topology)}});
  }
  for (const topology::Device& nic : topology.nics)
    nics.push_back({{"name", text_or_null(nic.name)},
                    {"bus_id", text_or_null(nic.bus_id)},
                    {"model", text_or_null(nic.model)},
                    {"numa_node", number_or_null(nic.numa_node)}});
  return {{"hostname", topology.hostname},
          {"packages", topology.packages},
          {"cores", topology.cores},
          {"hardware_threads", topology.processing_units},
          {"bound_numa_node", number_or_null(topology.bound_numa_node)},
          {"numa_nodes", nodes},
          {"gpus", gpus},
          {"nics", nics}};
}

Json json_of(const Activity& call, const Attached& attached) {
  constexpr const char* kStates[] = {"works", "waits", "in_mpi"};
  const bool waits = call.state == Activity::State::waits;
  Json json = {{"state", kStates[std::min<std::size_t>(std::size_t(call.state), 2)]},
               {"communicator", call.communicator},
               {"name", call.name},
               {"rank", call.rank},
               {"size", call.size},
               {"call", call.call},
               {"count", call.count},
               {"seconds", seconds(attached.now - call.since)},
               {"stage", nullptr},
               {"wait_seconds", nullptr},
               {"report", nullptr}};
  if (waits) json["stage"] = to_string(call.stage);
  if (call.state != Activity::State::works)
    json["wait_seconds"] = seconds(attached.now - call.waits_since);
  if (waits) json["report"] = text_or_null(call.report);
  return json;
}

std::string text_of(const Json& json) {
  return json.dump(2) + "\n";
}

}  // namespace

std::string report_without_names(const std::string& report) {
  Json json = Json::parse(report, nullptr, false);
  if (!json.is_object()) return "  it is not a report\n";
  if (json.contains("hosts") && json["hosts"].is_array()) json["hosts"] = json["hosts"].size();
  if (json.contains("command")) json.erase("command");
  return json.dump(2) + "\n";
}

std::string to_json(const Build* build, const Config* config, const Topology* topology) {
  Json json = Json::object();
  if (build != nullptr) json["version"] = json_of(*build);
  if (config != nullptr) json["options"] = json_of(*config);
  if (topology != nullptr) json["topology"] = json_of(*topology);
  return text_of(json);
}

std::string to_json(const Attached& attached) {
  const bool ranked = attached.rank >= 0;
  Json json = {{"pid", attached.pid},
               {"rank", ranked ? Json(attached.rank) : Json()},
               {"size", ranked ? Json(attached.size) : Json()},
               {"started", attached.started},
               {"calls", Json::array()}};
  for (const Activity& call : attached.calls) json["calls"].push_back(json_of(call, attached));
  return text_of(json);
}

}  // namespace slimpi::info
