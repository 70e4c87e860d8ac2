// SPDX-License-Identifier: BSD-3-Clause
#include <fmt/core.h>

#include "algorithm/algorithm.h"
#include "base/plugin.h"
#include "config.h"
#include "kernels/cpu/cpu.h"
#include "tools/common/text.h"
#include "tools/info/commit.h"
#include "tools/info/info.h"

namespace slimpi::info {

using namespace tools;

namespace {

#ifdef __clang__
constexpr const char* kCompiler = "clang++ " __clang_version__;
#else
constexpr const char* kCompiler = "g++ " __VERSION__;
#endif
#ifdef WITH_AVX512
constexpr bool kWithAvx512 = true;
#else
constexpr bool kWithAvx512 = false;
#endif
#ifdef WITH_AVX2
constexpr bool kWithAvx2 = true;
#else
constexpr bool kWithAvx2 = false;
#endif
#ifdef WITH_CUDA
constexpr bool kWithCuda = true;
#else
constexpr bool kWithCuda = false;
#endif

Build::Path path(const char* name, CpuPath path, bool built) {
  return {name, built, kernels::usable(path)};
}

Build::Plugin plugin(const char* name, const char* file, bool built, const char* note) {
  return {name, note, built, !find_plugin(file).empty()};
}

}  // namespace

Build build() {
  Build build;
  build.commit = SLIMPI_COMMIT;
  build.library = find_library();
  build.compiler = kCompiler;
  build.mpis = "MPICH and others of its ABI, Open MPI 4 and 5, the ABI of MPI 5.0";
  build.paths = {path("avx512", CpuPath::avx512, kWithAvx512),
                 path("avx2", CpuPath::avx2, kWithAvx2), path("generic", CpuPath::generic, true)};
  build.used_path = kernels::cpu_kernels(CpuPath::automatic)->name;
  build.plugins = {plugin("hwloc", "slimpi-hwloc.so", true, ""),
                   plugin("cuda", "slimpi-cuda.so", kWithCuda, "; has run on single GPUs only")};
  for (const algorithm::Algorithm& row : algorithm::all())
    build.algorithms.push_back(std::string(row.name) + (row.has_argument() ? ":PATH" : ""));
  build.algorithms.insert(build.algorithms.end(), {"auto", "off"});
  return build;
}

std::string build_text(const Build& build) {
  std::string paths, algorithms, plugins;
  for (const Build::Path& path : build.paths) {
    const char* state = !path.built                    ? "not built"
                        : !path.usable                 ? "not for this CPU"
                        : path.name == build.used_path ? "used"
                                                       : "usable";
    paths += fmt::format("{}{} ({})", paths.empty() ? "" : ", ", path.name, state);
  }
  for (const std::string& name : build.algorithms)
    algorithms += (algorithms.empty() ? "" : ", ") + name;
  for (const Build::Plugin& plugin : build.plugins)
    plugins += fmt::format("{}{} ({}{})", plugins.empty() ? "" : ", ", plugin.name,
                           plugin.installed ? "installed"
                           : plugin.built   ? "not installed"
                                            : "not built",
                           plugin.built ? plugin.note : "");
  return "slimpi " PACKAGE_VERSION "\n" +
         wrapped("  commit      ", build.commit.empty() ? "not known" : build.commit) +
         wrapped("  library     ",
                 build.library.empty() ? "not found beside this program" : build.library) +
         wrapped("  compiler    ", build.compiler) + wrapped("  MPI         ", build.mpis) +
         wrapped("  CPU paths   ", paths) + wrapped("  algorithms  ", algorithms) +
         wrapped("  plugins     ", plugins);
}

}  // namespace slimpi::info
