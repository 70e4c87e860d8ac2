// SPDX-License-Identifier: BSD-3-Clause
#include "base/plugin.h"

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

const char g_here = 0;  // an address in the library or program that this file was linked into

// Returns the full name of the file that the kernel has mapped at `address`, or "".
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

// Returns the library or program that this code was linked into, or "" if that is unknown.
path own_file() {
  std::string file = mapped_file(&g_here);
  Dl_info info;
  if (file.empty() && dladdr(&g_here, &info) != 0 && info.dli_fname != nullptr)
    file = info.dli_fname;
  char* real = realpath(file.c_str(), nullptr);
  const path result = real == nullptr ? path() : path(real);
  free(real);
  return result;
}

bool usable(const path& file) {
  return access(file.c_str(), R_OK) == 0;
}

// Automake leaves this file in every directory that it compiles into and never installs it, so a
// program beside it is in a build tree. Trusting it is safe, because a user who can create it there
// can also replace the program.
constexpr const char* kBuilt = ".dirstamp";

// The subdirectory of lib where Debian's packages put libraries.
#if defined(__x86_64__)
constexpr const char* kDebian = "x86_64-linux-gnu";
#elif defined(__aarch64__)
constexpr const char* kDebian = "aarch64-linux-gnu";
#else
constexpr const char* kDebian = "";
#endif

// Returns the library directory that belongs to a program in the directory `own`, or "" if there is
// none. In a build tree that is .libs, and in an installation with the program in bin it is lib, or
// kDebian in lib if build-deb made the package from a build that was configured for another
// directory. Other directories are not searched, because users who did not install slimpi might
// write to them.
path libraries_of_program(const path& own) {
  if (usable(own / kBuilt)) {
    // Programs of a build tree are in tools/ and tests/..., its libraries in .libs/ beside those.
    for (path inner = own; inner.has_relative_path(); inner = inner.parent_path())
      if (inner.filename() == "tools" || inner.filename() == "tests")
        return inner.parent_path() / ".libs";
  }
  if (own.filename() != path(SLIMPI_BINDIR).filename()) return "";
  const path library = own / path(SLIMPI_LIBDIR).lexically_relative(SLIMPI_BINDIR);
  const path debian = own.parent_path() / "lib" / kDebian;
  const char* const name = "libslimpi.so.0";
  return usable(debian / name) && !usable(library / name) ? debian : library;
}

// Returns the path of the first of `names` that exists in slimpi's library directory, or "". This
// is the directory of libslimpi if this code is part of it, otherwise libraries_of_program().
std::string find(const std::vector<path>& names) {
  const path own = own_file();
  const path directory = own.filename().string().starts_with("libslimpi")
                             ? own.parent_path()
                             : libraries_of_program(own.parent_path());
  if (directory.empty()) return "";
  for (const path& name : names)
    if (const path file = directory / name; usable(file)) return file.lexically_normal().string();
  return "";
}

}  // namespace

std::string find_plugin(const std::string& name) {
  return find({path("slimpi") / name, name});
}

std::string find_library() {
  // libslimpi.so exists only where the files for developers are installed.
  return find({"libslimpi.so", "libslimpi.so.0"});
}

Plugin Plugin::own(const std::string& name, Symbols symbols) {
  const std::string file = find_plugin(name);
  if (!file.empty()) return at(file, symbols);
  Plugin plugin;
  plugin.problem_ = name + " is not installed";
  return plugin;
}

Plugin Plugin::at(const std::string& path, Symbols symbols) {
  Plugin plugin;
  plugin.file_ = path;
  plugin.handle_ =
      dlopen(path.c_str(), RTLD_NOW | (symbols == Symbols::global ? RTLD_GLOBAL : RTLD_LOCAL));
  if (plugin.handle_ == nullptr) {
    const char* const reason = dlerror();
    plugin.problem_ = reason != nullptr ? reason : "unknown error";
  }
  return plugin;
}

Plugin Plugin::present(const char* soname) {
  Plugin plugin;
  plugin.file_ = soname;
  plugin.handle_ = dlopen(soname, RTLD_LAZY | RTLD_NOLOAD);
  return plugin;
}

Plugin Plugin::program() {
  Plugin plugin;
  plugin.handle_ = dlopen(nullptr, RTLD_LAZY);
  return plugin;
}

void* Plugin::symbol(const char* name) const {
  return dlsym(handle_, name);
}

}  // namespace slimpi
