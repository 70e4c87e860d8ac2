// SPDX-License-Identifier: BSD-3-Clause
// What slimpi-info can tell, each as text and as JSON.
#pragma once
#include <string>
#include <vector>

#include "options/config.h"
#include "topology/topology.h"

namespace slimpi::info {

// slimpi's version and how it was built; which of it this machine can use.
struct Build {
  struct Path {  // of the CPU's kernels
    std::string name;
    bool built, usable;
  };
  struct Plugin {  // what is loaded on demand
    std::string name, note;
    bool built, installed;
  };
  std::string library, compiler, mpis, used_path;
  std::vector<Path> paths;
  std::vector<Plugin> plugins;
  std::vector<std::string> algorithms;  // values of SLIMPI_ALGORITHM
};
Build build();
std::string build_text(const Build& build);

// Every option with its value and where that came from. `documented`: with its meaning and values,
// as a file for SLIMPI_CONFIG, in which what was not set is a comment.
std::string options_text(const Config& config, bool documented);

// The table for other programs: name, tab, accepted values.
std::string options_list();

// The options as the items of an mdoc list, for the ENVIRONMENT section of slimpi-options.7.
std::string options_mdoc();

// The reasons of a bypass: name, tab, meaning; or as the items of an mdoc list, for slimpi.7.
std::string reasons_list();
std::string reasons_mdoc();

// A sentence: which rank of this machine would talk to other nodes.
std::string leader_text(const topology::Topology& topology);

// NUMA nodes, GPUs and NICs, and who would talk to other nodes.
std::string topology_text(const topology::Topology& topology);

// An object with a key for each that is not null: version, options, topology.
std::string to_json(const Build* build, const Config* config, const topology::Topology* topology);

}  // namespace slimpi::info
