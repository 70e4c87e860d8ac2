// SPDX-License-Identifier: BSD-3-Clause
#include "tools/bench/constants.h"

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include <fstream>

#include "base/environment.h"
#include "tools/bench/candidate.h"

namespace slimpi::bench {

nlohmann::ordered_json to_json(const Constants& c) {
  return {{"latency", c.latency},
          {"overhead", c.overhead},
          {"link", c.link},
          {"exchange", c.exchange},
          {"copy", c.copy},
          {"add", c.add},
          {"encode", c.encode},
          {"decode", c.decode},
          {"node_copy", c.node_copy},
          {"peer_memory", c.peer_memory},
          {"peer_setup", c.peer_setup},
          {"cores", c.cores},
          {"measured_link", c.measured_link}};
}

std::string read_constants(const Options& options, Constants& c) {
  if (!options.constants.empty()) {
    try {
      std::ifstream file(options.constants);
      const nlohmann::json json = nlohmann::json::parse(file);
      for (auto& [name, field] : {std::pair{"latency", &c.latency},
                                  {"overhead", &c.overhead},
                                  {"link", &c.link},
                                  {"exchange", &c.exchange},
                                  {"copy", &c.copy},
                                  {"add", &c.add},
                                  {"node_copy", &c.node_copy},
                                  {"peer_memory", &c.peer_memory},
                                  {"peer_setup", &c.peer_setup}})
        json.at(name).get_to(*field);
      json.at("encode").get_to(c.encode);
      json.at("decode").get_to(c.decode);
      json.at("cores").get_to(c.cores);
    } catch (const nlohmann::json::exception& error) {
      return fmt::format("{}: not written by --calibrate: {}", options.constants, error.what());
    }
  }
  c.measured_link = c.link;
  if (options.latency > 0) c.latency = options.latency;
  if (options.wire > 0) {
    const double slower = c.exchange / c.link;  // what MPI loses beside the link itself
    c.link = 8 / (options.wire * cost::kPayload);
    c.exchange = c.link * slower;
  }
  return "";
}

Layout layout_of(double nodes, double ranks, const Constants& constants) {
  const bool lab = !environment_variable("SLIMPILAB").empty();
  return {nodes, ranks / nodes, double(constants.cores), lab};
}

}  // namespace slimpi::bench
