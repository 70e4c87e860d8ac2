// SPDX-License-Identifier: BSD-3-Clause
// The information that slimpi-info prints, as text and as JSON.
#pragma once
#include <string>
#include <vector>

#include "options/config.h"
#include "topology/topology.h"

namespace slimpi::info {

// slimpi's version, how slimpi was built, and which of its parts this machine can use.
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

// Returns every option with its value and the source of the value. With `documented` the text also
// has the meaning and the accepted values of each option, and is a file for SLIMPI_CONFIG, in which
// an option that was not set is a comment.
std::string options_text(const Config& config, bool documented);

// Returns the options for other programs, one a line: name, tab, accepted values.
std::string options_list();

// The options as the items of an mdoc list, for the ENVIRONMENT section of slimpi-options.7.
std::string options_mdoc();

// Return the reasons of a bypass: reasons_list() one a line (name, tab, meaning), reasons_mdoc() as
// the items of an mdoc list, for slimpi.7.
std::string reasons_list();
std::string reasons_mdoc();

// Returns a sentence that says which rank of this machine would talk to other nodes.
std::string leader_text(const topology::Topology& topology);

// Returns the NUMA nodes, GPUs and NICs, and the rank that would talk to other nodes.
std::string topology_text(const topology::Topology& topology);

// Returns what a report of a defect needs, without hosts, users, home directories and the job's
// command. `problem` is the line that would end a job; `topology` may be null.
std::string bug_text(const Loaded& loaded, const std::string& problem,
                     const topology::Topology* topology);

// Returns the JSON of a report without the names of hosts and without the command.
std::string report_without_names(const std::string& report);

// Returns a JSON object with a key for each argument that is not null: version, options, topology.
std::string to_json(const Build* build, const Config* config, const topology::Topology* topology);

}  // namespace slimpi::info
