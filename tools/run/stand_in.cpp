// SPDX-License-Identifier: BSD-3-Clause
#include "tools/run/stand_in.h"

#include <dlfcn.h>
#include <link.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <functional>
#include <iterator>
#include <map>

#include "base/process.h"
#include "tools/run/stub.h"

namespace slimpi::tools {

namespace {

// By which programs ask for an MPI: of MPICH's ABI, of Open MPI, of the standard ABI.
constexpr const char* kNames[] = {
    "libmpi.so",         "libmpi.so.12", "libmpich.so",   "libmpich.so.12",  "libmpi_cray.so",
    "libmpi_cray.so.12", "libmpi.so.40", "libmpi_abi.so", "libmpi_abi.so.0", "libmpi_abi.so.1"};

std::string real_path(const std::string& path) {
  char* const real = realpath(path.c_str(), nullptr);
  const std::string result = real != nullptr ? real : "";
  free(real);
  return result;
}

// The file that the dynamic linker finds under this name; "" if there is none. It is loaded here
// for that, because only the dynamic linker knows where it looks.
std::string found(const char* name) {
  void* const handle = dlopen(name, RTLD_LAZY | RTLD_LOCAL);
  link_map* map = nullptr;
  if (handle == nullptr || dlinfo(handle, RTLD_DI_LINKMAP, &map) != 0) return "";
  return map->l_name;
}

// A directory of this user's, which nobody else can write.
bool make_own(const std::string& path) {
  struct stat entry;
  return (mkdir(path.c_str(), 0700) == 0 || errno == EEXIST) && lstat(path.c_str(), &entry) == 0 &&
         S_ISDIR(entry.st_mode) && entry.st_uid == geteuid() && (entry.st_mode & 022) == 0;
}

// Other ranks write the same file at the same time.
bool write_whole(const std::string& path, const std::string& bytes) {
  std::ifstream there(path, std::ios::binary);
  if (std::string(std::istreambuf_iterator<char>(there), {}) == bytes) return true;
  const std::string part = path + "." + std::to_string(getpid());
  std::ofstream file(part, std::ios::binary);
  const bool good = bool(file << bytes << std::flush);
  return good && std::rename(part.c_str(), path.c_str()) == 0;
}

}  // namespace

StandIn make_stand_in(const std::string& library) {
  std::map<std::string, std::string> files;
  std::string key;
  const std::string temporary = environment_variable("TMPDIR");
  const std::string user =
      (temporary.empty() ? "/tmp" : real_path(temporary)) + "/slimpi-" + std::to_string(geteuid());
  for (const char* name : kNames)
    if (const std::string path = found(name); !path.empty()) {
      if (path.starts_with(user + "/"))
        return {"", "--stand-in is already in use here: LD_LIBRARY_PATH has " + user};
      files[name] = shared_library(library, {real_path(library), path});
      key += name + files[name];
    }
  if (files.empty())
    return {"",
            "--stand-in: the dynamic linker finds no libmpi by its name; add the directory of "
            "your MPI's libraries to LD_LIBRARY_PATH"};
  char hash[20];
  std::snprintf(hash, sizeof hash, "/%016zx", std::hash<std::string>{}(key));
  const std::string directory = user + hash;
  bool good = make_own(user) && make_own(directory);
  for (const auto& [name, bytes] : files) good = good && write_whole(directory + "/" + name, bytes);
  if (!good)
    return {"", "--stand-in: cannot write " + directory + " (" + std::strerror(errno) +
                    "); set TMPDIR to a directory that you can write"};
  return {directory, ""};
}

}  // namespace slimpi::tools
