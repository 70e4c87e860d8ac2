// SPDX-License-Identifier: BSD-3-Clause
// The information that slimpi-info prints, as text and as JSON.
#pragma once
#include <string>
#include <vector>

#include "options/config.h"
#include "topology/topology.h"

namespace slimpi::info {

// The version of slimpi, how it was built, and which of its parts this machine can use.
struct Build {
  struct Path {  // the kernels for one instruction set of the CPU
    std::string name;
    bool built, usable;
  };
  struct Plugin {  // a shared object that is loaded on demand
    std::string name, note;
    bool built, installed;
  };
  std::string commit;  // the commit of the sources; "" if it is not known
  std::string library, compiler, mpis, used_path;
  std::vector<Path> paths;
  std::vector<Plugin> plugins;
  std::vector<std::string> algorithms;  // values of SLIMPI_ALGORITHM
};
Build build();
std::string build_text(const Build& build);

// Returns every option with its value and where the value came from. With `documented` the text is
// a file for SLIMPI_CONFIG that also gives the meaning and the accepted values of each option;
// options that were not set are comments in it.
std::string options_text(const Config& config, bool documented);

// Returns the options for other programs to read: on each line a name, a tab and the accepted
// values.
std::string options_list();

// Returns the options as the items of an mdoc list, for the section ENVIRONMENT of
// slimpi-options.7.
std::string options_mdoc();

// Return the reasons of a bypass. reasons_list() has a line for each: name, tab, meaning.
// reasons_mdoc() has the items of an mdoc list, for slimpi.7.
std::string reasons_list();
std::string reasons_mdoc();

// Returns a sentence about which rank of this machine would communicate with other nodes.
std::string leader_text(const topology::Topology& topology);

// Returns as text the NUMA nodes, GPUs and NICs of this machine, and which rank would communicate
// with other nodes.
std::string topology_text(const topology::Topology& topology);

// Returns the text of --bug, which names no hosts, users, home directories and no command of a job.
// `problem` is the line with which the library would end a job, or ""; `topology` may be null.
std::string bug_text(const Loaded& loaded, const std::string& problem,
                     const topology::Topology* topology);

// Returns the JSON of a report without its hosts and its command.
std::string report_without_names(const std::string& report);

// Returns a JSON object with the keys version, options and topology, each only if its argument is
// not null.
std::string to_json(const Build* build, const Config* config, const topology::Topology* topology);

}  // namespace slimpi::info
