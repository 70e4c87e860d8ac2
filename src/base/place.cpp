// SPDX-License-Identifier: BSD-3-Clause
#include "base/place.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <unistd.h>

#include <cinttypes>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <vector>

namespace slimpi {

namespace {

using std::filesystem::path;

const char g_here = 0;  // lies in the library or program that this file was linked into

// What the kernel has mapped at `address`, by its full name.
std::string mapped_file(const void* address) {
  const auto wanted = reinterpret_cast<std::uintptr_t>(address);
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    std::uintptr_t first = 0, end = 0;
    if (std::sscanf(line.c_str(), "%" SCNxPTR "-%" SCNxPTR, &first, &end) != 2) continue;
    const std::size_t name = line.find('/');
    if (wanted >= first && wanted < end && name != line.npos) return line.substr(name);
  }
  return "";
}

path own_directory() {
  std::string file = mapped_file(&g_here);
  Dl_info info;
  if (file.empty() && dladdr(&g_here, &info) != 0 && info.dli_fname != nullptr)
    file = info.dli_fname;
  char* real = realpath(file.c_str(), nullptr);
  const path result = real == nullptr ? path() : path(real).parent_path();
  free(real);
  return result;
}

bool usable(const path& file) {
  return access(file.c_str(), R_OK) == 0;
}

// The first of `names` that exists below a directory that can be slimpi's library directory: the
// one that we lie in, the one that belongs to the bin/ that we lie in, or that of a build tree.
std::string find(const std::vector<path>& names) {
  const path own = own_directory();
  if (own.empty()) return "";
  std::vector<path> directories = {own};
  if (own.filename() == path(SLIMPI_BINDIR).filename())
    directories.push_back(own / path(SLIMPI_LIBDIR).lexically_relative(SLIMPI_BINDIR));
  // In a build tree programs lie in tools/ and tests/..., libraries in .libs/. Only below these
  // names is a .libs further up ours.
  for (path inner = own; inner.has_relative_path(); inner = inner.parent_path())
    if (inner.filename() == "tools" || inner.filename() == "tests")
      directories.push_back(inner.parent_path() / ".libs");
  for (const path& directory : directories)
    for (const path& name : names)
      if (const path file = directory / name; usable(file)) return file.lexically_normal().string();
  return "";
}

}  // namespace

std::string find_part(const std::string& name) {
  return find({path("slimpi") / name, name});
}

std::string find_library() {
  return find({"libslimpi.so"});
}

}  // namespace slimpi
