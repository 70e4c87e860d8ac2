// SPDX-License-Identifier: BSD-3-Clause
// What slimpi-info can tell, each as text and as JSON.
#pragma once
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "base/config.h"
#include "topology/topology.h"

namespace slimpi::info {

using Json = nlohmann::ordered_json;

// slimpi's version and how it was built; which of it this machine can use.
std::string version_text();
Json version_json();

// Every option with its value and where that came from. `documented`: with its meaning and values,
// as a file for SLIMPI_CONFIG, in which what was not set is a comment.
std::string options_text(const Config& config, bool documented);
Json options_json(const Config& config);

// The table for other programs: name, tab, accepted values.
std::string options_list();

// The options as the items of an mdoc list, for the ENVIRONMENT section of slimpi-options.7.
std::string options_mdoc();

// The reasons of a bypass: name, tab, meaning; or as the items of an mdoc list, for slimpi.7.
std::string reasons_list();
std::string reasons_mdoc();

// NUMA nodes, GPUs and NICs, and who would talk to other nodes.
std::string topology_text(const topology::Topology& topology);
Json topology_json(const topology::Topology& topology);

}  // namespace slimpi::info
