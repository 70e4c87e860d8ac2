// SPDX-License-Identifier: BSD-3-Clause
// Shared objects that are loaded on demand: slimpi's own plugins, and a user's hook. They stay
// loaded until the process ends, because their threads and exit handlers may outlive what needed
// them.
#pragma once
#include <dlfcn.h>

#include <cstddef>
#include <cstdint>
#include <string>

namespace slimpi {

class Plugin {
 public:
  // Whether libraries that are loaded later find its symbols.
  enum class Symbols { local, global };

  // One of slimpi's own, such as "slimpi-hwloc.so", from slimpi's library directory and nowhere
  // else.
  static Plugin own(const std::string& name, Symbols symbols = Symbols::local);
  // The shared object with this path.
  static Plugin at(const std::string& path, Symbols symbols = Symbols::local);
  // A library that the process has already loaded, by its soname.
  static Plugin present(const char* soname);
  // The program and its libraries, as far as their symbols are global.
  static Plugin program();

  bool loaded() const { return handle_ != nullptr; }
  // Its path; "" if there is no such file.
  const std::string& file() const { return file_; }
  // Why it is not loaded, or why table() returned null.
  const std::string& problem() const { return problem_; }

  void* symbol(const char* name) const;
  template <typename Function>
  Function* function(const char* name) const {
    return reinterpret_cast<Function*>(symbol(name));
  }

  // The table of a plugin that exports a function `name` with the arguments below, if that accepts
  // this version; else null.
  template <typename Table>
  const Table* table(const char* name, std::uint32_t version) {
    using Load = int(std::uint32_t version, const Table** table, char* error, std::size_t size);
    Load* const load = function<Load>(name);
    const Table* found = nullptr;
    char error[256] = "it does not belong to this slimpi";
    if (load != nullptr && load(version, &found, error, sizeof error) == 0) return found;
    problem_ = file_ + " cannot be used: " + error;
    return nullptr;
  }

 private:
  void* handle_ = nullptr;
  std::string file_, problem_;
};

// The function `name` of a library that dlopen() has returned; false where it has none.
template <typename Function>
bool find_function(void* handle, const char* name, Function*& function) {
  function = reinterpret_cast<Function*>(dlsym(handle, name));
  return function != nullptr;
}

}  // namespace slimpi
