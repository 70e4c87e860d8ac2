// SPDX-License-Identifier: BSD-3-Clause
#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include <string>
#include <vector>

#include "algorithm/algorithm.h"
#include "base/place.h"
#include "config.h"
#include "kernels/cpu/cpu.h"
#include "tools/common/text.h"
#include "tools/info/info.h"

namespace slimpi::info {

using namespace tools;

namespace {

#ifdef __clang__
constexpr const char* kCompiler = "clang++ " __clang_version__;
#else
constexpr const char* kCompiler = "g++ " __VERSION__;
#endif

struct Path {
  const char* name;
  CpuPath path;
  bool built;
};

constexpr Path kPaths[] = {
#ifdef WITH_AVX512
    {"avx512", CpuPath::avx512, true},
#else
    {"avx512", CpuPath::avx512, false},
#endif
#ifdef WITH_AVX2
    {"avx2", CpuPath::avx2, true},
#else
    {"avx2", CpuPath::avx2, false},
#endif
    {"generic", CpuPath::generic, true},
};

#ifdef WITH_CUDA
constexpr bool kWithCuda = true;
#else
constexpr bool kWithCuda = false;
#endif

// What is loaded on demand, and whether this build has it.
constexpr struct {
  const char* name;
  const char* file;
  bool built;
  const char* note;
} kPlugins[] = {{"hwloc", "slimpi-hwloc.so", true, ""},
                {"cuda", "slimpi-cuda.so", kWithCuda, "; has not run on a GPU yet"}};

constexpr const char* kMpis = "MPICH and others of its ABI, Open MPI 4 and 5, the ABI of MPI 5.0";

// The values of SLIMPI_ALGORITHM that this build takes.
std::vector<std::string> algorithm_values() {
  std::vector<std::string> values;
  for (const algorithm::Algorithm& row : algorithm::all())
    values.push_back(std::string(row.name) + (row.has_argument() ? ":PATH" : ""));
  values.insert(values.end(), {"auto", "off"});
  return values;
}

const char* used_path() {
  return kernels::cpu_kernels(CpuPath::automatic)->name;
}

}  // namespace

Json version_json() {
  Json built = Json::array(), usable = Json::array(), algorithms = Json::array();
  for (const Path& path : kPaths) {
    if (path.built) built.push_back(path.name);
    if (kernels::usable(path.path)) usable.push_back(path.name);
  }
  for (const std::string& name : algorithm_values()) algorithms.push_back(name);
  Json plugins = Json::object();
  for (const auto& plugin : kPlugins) plugins[plugin.name] = !find_plugin(plugin.file).empty();
  const std::string library = find_library();
  return {{"slimpi", PACKAGE_VERSION},
          {"library", library.empty() ? Json() : Json(library)},
          {"compiler", kCompiler},
          {"mpi", kMpis},
          {"cpu", {{"built", built}, {"usable", usable}, {"used", used_path()}}},
          {"plugins", plugins},
          {"algorithms", algorithms}};
}

std::string version_text() {
  std::string paths, algorithms, plugins;
  for (const Path& path : kPaths) {
    const char* state = !path.built                             ? "not built"
                        : !kernels::usable(path.path)           ? "not for this CPU"
                        : path.name == std::string(used_path()) ? "used"
                                                                : "usable";
    paths += fmt::format("{}{} ({})", paths.empty() ? "" : ", ", path.name, state);
  }
  for (const std::string& name : algorithm_values())
    algorithms += (algorithms.empty() ? "" : ", ") + name;
  for (const auto& plugin : kPlugins)
    plugins += fmt::format("{}{} ({}{})", plugins.empty() ? "" : ", ", plugin.name,
                           !find_plugin(plugin.file).empty() ? "installed"
                           : plugin.built                    ? "not installed"
                                                             : "not built",
                           plugin.built ? plugin.note : "");
  const std::string library = find_library();
  return "slimpi " PACKAGE_VERSION "\n" +
         wrapped("  library     ", library.empty() ? "not found beside this program" : library) +
         wrapped("  compiler    ", kCompiler) + wrapped("  MPI         ", kMpis) +
         wrapped("  CPU paths   ", paths) + wrapped("  algorithms  ", algorithms) +
         wrapped("  plugins     ", plugins);
}

}  // namespace slimpi::info
